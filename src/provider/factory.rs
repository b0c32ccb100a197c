//! `CREATE EXTERNAL TABLE … STORED AS TET`.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider, TableProviderFactory};
use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::logical_expr::CreateExternalTable;

use super::{GridTable, TetReadOptions, open};
use crate::exec::to_datafusion;

/// Makes tables for `STORED AS TET`.
///
/// ```sql
/// CREATE EXTERNAL TABLE temperature STORED AS TET LOCATION 'stations.tet'
/// OPTIONS ('dataset' 'temperature', 'index_columns' 'true');
/// ```
#[derive(Debug, Default)]
pub struct TetTableFactory;

impl TetTableFactory {
    /// The name in `STORED AS`.
    pub const FILE_TYPE: &'static str = "TET";
}

#[async_trait]
impl TableProviderFactory for TetTableFactory {
    async fn create(
        &self,
        state: &dyn Session,
        cmd: &CreateExternalTable,
    ) -> Result<Arc<dyn TableProvider>> {
        if !cmd.schema.fields().is_empty() {
            return plan_err!(
                "a TET table takes its columns from the file; leave the column list out"
            );
        }
        if !cmd.table_partition_cols.is_empty() || !cmd.order_exprs.is_empty() || cmd.unbounded {
            return plan_err!(
                "a TET table takes neither PARTITIONED BY nor WITH ORDER, and is not UNBOUNDED"
            );
        }
        let [location] = cmd.locations.as_slice() else {
            return plan_err!("a TET table has one LOCATION, found {}", cmd.locations.len());
        };
        let options = TetReadOptions::from_sql(&cmd.options).map_err(to_datafusion)?;
        let file = open(location, options.io, state.runtime_env()).await.map_err(to_datafusion)?;
        let table = GridTable::open(&file, &options).await.map_err(to_datafusion)?;
        Ok(Arc::new(table))
    }
}
