//! `CREATE EXTERNAL TABLE … STORED AS TET` and `… STORED AS TILEDB`.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider, TableProviderFactory};
use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::logical_expr::CreateExternalTable;

use super::open_table;
use super::open_table::defaults;
use super::open_tiledb_table;
use crate::exec::to_datafusion;
use crate::options::{TetReadOptions, TileDbReadOptions};

/// Makes tables for `STORED AS TET`.
///
/// ```sql
/// CREATE EXTERNAL TABLE temperature STORED AS TET LOCATION 'stations.tet'
/// OPTIONS ('dataset' 'temperature', 'index_columns' 'true');
///
/// CREATE EXTERNAL TABLE before STORED AS TET LOCATION 'stations.tet.d'
/// OPTIONS ('dataset' 'temperature', 'generation' '1');
/// ```
#[derive(Debug, Default)]
pub struct TetTableFactory;

impl TetTableFactory {
    /// The name in `STORED AS`.
    pub const FILE_TYPE: &'static str = "TET";
}

/// Makes tables for `STORED AS TILEDB`.
///
/// ```sql
/// CREATE EXTERNAL TABLE overlap STORED AS TILEDB LOCATION 'arrays/overlap'
/// OPTIONS ('timestamp' '2024-03-01', 'fill_as_null' 'true');
/// ```
#[derive(Debug, Default)]
pub struct TileDbTableFactory;

impl TileDbTableFactory {
    /// The name in `STORED AS`.
    pub const FILE_TYPE: &'static str = "TILEDB";
}

/// The locations of a table that takes its columns from what is stored, and everything else from
/// options.
fn only_locations<'a>(cmd: &'a CreateExternalTable, file_type: &str) -> Result<&'a [String]> {
    if !cmd.schema.fields().is_empty() {
        return plan_err!(
            "a {file_type} table takes its columns from what is stored; leave the column list out"
        );
    }
    for (clause, is_there) in [
        ("PARTITIONED BY", !cmd.table_partition_cols.is_empty()),
        ("WITH ORDER; the order of its rows is known", !cmd.order_exprs.is_empty()),
        ("UNBOUNDED", cmd.unbounded),
        ("constraints", !cmd.constraints.is_empty()),
    ] {
        if is_there {
            return plan_err!("a {file_type} table has no {clause}");
        }
    }
    Ok(&cmd.locations)
}

#[async_trait]
impl TableProviderFactory for TetTableFactory {
    async fn create(
        &self,
        state: &dyn Session,
        cmd: &CreateExternalTable,
    ) -> Result<Arc<dyn TableProvider>> {
        let locations = only_locations(cmd, Self::FILE_TYPE)?;
        let options = TetReadOptions::from_sql(&cmd.options).map_err(to_datafusion)?;
        let options = options.with_defaults(&defaults(state));
        let table = open_table(locations, &options, state.runtime_env()).await;
        Ok(Arc::new(table.map_err(to_datafusion)?))
    }
}

#[async_trait]
impl TableProviderFactory for TileDbTableFactory {
    async fn create(
        &self,
        state: &dyn Session,
        cmd: &CreateExternalTable,
    ) -> Result<Arc<dyn TableProvider>> {
        let locations = only_locations(cmd, Self::FILE_TYPE)?;
        let options = TileDbReadOptions::from_sql(&cmd.options).map_err(to_datafusion)?;
        let options = options.with_defaults(&defaults(state));
        let table = open_tiledb_table(locations, &options, state.runtime_env()).await;
        Ok(Arc::new(table.map_err(to_datafusion)?))
    }
}
