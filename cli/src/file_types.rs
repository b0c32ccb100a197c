//! Checks the file types that statements name, before DataFusion does.
//!
//! DataFusion replaces an unknown type by the ending of the file. For `CREATE OR REPLACE`, it drops the old
//! table before it checks the type of the new one.

use std::path::Path;
use std::sync::Arc;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{plan_datafusion_err, plan_err};
use datafusion::datasource::file_format::parquet::ParquetSink;
use datafusion::datasource::sink::DataSinkExec;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionStateDefaults;
use datafusion::logical_expr::CreateExternalTable;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::{CopyToStatement, Statement};
use gridfusion::exec::parquet_type;

use crate::alike::{list, meant};

/// The phrase for the types that `COPY` writes, in messages.
const WRITABLE: &str = "types that can be written";

/// Returns the file types that `COPY` writes, sorted: table types that are also file formats.
pub(crate) fn writable(ctx: &SessionContext) -> Vec<String> {
    let state = ctx.state();
    let types = state.table_factories().keys().map(|file_type| file_type.to_lowercase());
    let mut types: Vec<String> =
        types.filter(|it| state.get_file_format_factory(it).is_some()).collect();
    types.sort_unstable();
    types
}

/// Whether DataFusion itself reads tables of a type, rather than an array format.
pub(crate) fn is_datafusions(file_type: &str) -> bool {
    SessionStateDefaults::default_table_factories().contains_key(&file_type.to_uppercase())
}

/// Checks the type of the file that a statement writes.
///
/// # Errors
/// If the type after `STORED AS` is unknown. Without `STORED AS`, if the file name does not end in a known
/// type.
pub(crate) fn check(ctx: &SessionContext, statement: &Statement) -> Result<()> {
    match statement {
        Statement::CopyTo(copy) => check_copy(ctx, copy),
        Statement::Explain(explain) => check(ctx, &explain.statement),
        _ => Ok(()),
    }
}

fn check_copy(ctx: &SessionContext, copy: &CopyToStatement) -> Result<()> {
    let ending = || Path::new(&copy.target).extension().and_then(|it| it.to_str());
    let Some(file_type) = copy.stored_as.as_deref().or_else(ending) else {
        let known = list(WRITABLE, writable(ctx).into_iter());
        return plan_err!(
            "the file name has no ending such as .csv; name the type, as in STORED AS csv; {known}"
        );
    };
    match ctx.state().get_file_format_factory(file_type) {
        Some(_) => Ok(()),
        None => Err(unknown(file_type, WRITABLE, &writable(ctx))),
    }
}

/// Checks the type of a new external table.
///
/// # Errors
/// If the type is unknown. If the table exists already, DataFusion reports that instead.
pub(crate) fn check_table(ctx: &SessionContext, table: &CreateExternalTable) -> Result<()> {
    let state = ctx.state();
    let known = state.table_factories();
    if known.contains_key(&table.file_type.to_uppercase())
        || !table.or_replace && ctx.table_exist(table.name.clone())?
    {
        return Ok(());
    }
    // Case does not matter in SQL, and names in lower case need no quotes in the hint.
    let known: Vec<String> = known.keys().map(|file_type| file_type.to_lowercase()).collect();
    Err(unknown(&table.file_type, "types", &known))
}

/// Refuses rows for a Parquet table whose columns would become plain integers. `COPY` casts such columns, but a table keeps the types
/// that its declaration gives it.
///
/// # Errors
/// If a column has times in seconds; the message names it.
pub(crate) fn check_columns(plan: &Arc<dyn ExecutionPlan>) -> Result<()> {
    plan.apply(|node| {
        let sink = node.downcast_ref::<DataSinkExec>().map(DataSinkExec::sink);
        let Some(sink) = sink.filter(|sink| sink.is::<ParquetSink>()) else {
            return Ok(TreeNodeRecursion::Continue);
        };
        for field in sink.schema().fields() {
            if parquet_type(field.data_type()).is_some() {
                return plan_err!(
                    "Parquet would store the column \"{}\" ({}) as plain integers; declare it as TIMESTAMP(3)",
                    field.name(),
                    field.data_type()
                );
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })
    .map(drop)
}

fn unknown(file_type: &str, kind: &str, known: &[String]) -> DataFusionError {
    let hint = meant(file_type, kind, known.iter().map(String::as_str));
    let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
    plan_datafusion_err!("there is no file type '{}'{hint}", file_type.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::errors::describe;
    use crate::statement::{parse, plan};

    #[tokio::test]
    async fn a_table_is_not_lost_to_a_slip_of_the_pen() {
        let ctx = SessionContext::new();
        ctx.sql("CREATE TABLE t AS SELECT 1").await.unwrap();
        let run = async |sql: &str| {
            let statement = parse(&ctx, sql).unwrap().pop_front().unwrap();
            plan(&ctx, statement).await.map(|_| ()).map_err(|error| describe(&error))
        };
        let table = "EXTERNAL TABLE t STORED AS CSVV LOCATION 'x.csv'";
        let expected = "there is no file type 'csvv'; did you mean csv?".to_owned();
        assert_eq!(run(&format!("CREATE OR REPLACE {table}")).await, Err(expected));
        assert!(ctx.table_exist("t").unwrap());
        let there = run(&format!("CREATE {table}")).await.unwrap_err();
        assert!(there.contains("already exists"), "{there}");
        let table = "EXTERNAL TABLE IF NOT EXISTS t STORED AS CSVV LOCATION 'x.csv'";
        assert_eq!(run(&format!("CREATE {table}")).await, Ok(()));
    }
}
