//! [`ArrayTableFactory`]: makes the tables of `CREATE EXTERNAL TABLE`.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider, TableProviderFactory};
use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::logical_expr::CreateExternalTable;

use super::ArrayOpener;
use super::declared_table::DeclaredTable;

/// The table factory for `STORED AS ARRAY`, which recognises the format, or for one format: `STORED AS TET`.
///
/// ```sql
/// CREATE EXTERNAL TABLE temperature STORED AS ARRAY LOCATION 'stations.tet'
/// OPTIONS ('dataset' 'temperature', 'index_columns' 'true');
///
/// CREATE EXTERNAL TABLE overlap STORED AS TILEDB LOCATION 'arrays/overlap'
/// OPTIONS ('timestamp' '2024-03-01', 'fill_as_null' 'true');
///
/// -- A new array, which the first rows make.
/// CREATE EXTERNAL TABLE readings (time TIMESTAMP, station TEXT, value REAL) STORED AS ZARR
/// LOCATION 'readings.zarr' OPTIONS ('dimensions' 'time, station');
/// ```
#[derive(Debug, Default)]
pub struct ArrayTableFactory {
    /// The name of the format; `None` to recognise it.
    format: Option<&'static str>,
}

impl ArrayTableFactory {
    /// The name in `STORED AS` that makes the factory recognise the format.
    pub const FILE_TYPE: &'static str = "ARRAY";

    /// Makes a factory for the tables of the format with this name.
    pub fn for_format(format: &'static str) -> Self {
        Self { format: Some(format) }
    }
}

/// Fails for clauses that array tables do not have: columns, partitions, order, `UNBOUNDED`, constraints.
fn refuse_clauses(cmd: &CreateExternalTable) -> Result<()> {
    let file_type = &cmd.file_type;
    if !cmd.schema.fields().is_empty() && file_type == ArrayTableFactory::FILE_TYPE {
        return plan_err!(
            "a {file_type} table takes its columns from the stored arrays; leave the column list out, or name a format for a new array: STORED AS ZARR"
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
    Ok(())
}

#[async_trait]
impl TableProviderFactory for ArrayTableFactory {
    async fn create(
        &self,
        state: &dyn Session,
        cmd: &CreateExternalTable,
    ) -> Result<Arc<dyn TableProvider>> {
        refuse_clauses(cmd)?;
        if let Some(format) = self.format.filter(|_| !cmd.schema.fields().is_empty()) {
            return Ok(Arc::new(DeclaredTable::try_new(cmd, format, state).await?));
        }
        let opener = ArrayOpener::from_session(state);
        let options = opener.options_of_sql(&cmd.options, self.format)?;
        let table = opener.table(cmd.locations.as_slice(), self.format, &options).await?;
        Ok(table.into_provider())
    }
}
