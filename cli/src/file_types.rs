//! Types of files, where a statement names one that there is not.
//!
//! They are looked for before DataFusion does, which takes the ending of a file for a type that it does not know, and
//! drops the table that `CREATE OR REPLACE` names before it looks at the type of the new one.

use std::path::Path;

use datafusion::common::{plan_datafusion_err, plan_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionStateDefaults;
use datafusion::logical_expr::CreateExternalTable;
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::{CopyToStatement, Statement};

use crate::alike::{list, meant};

/// The name of the types that `COPY` writes, for messages.
const WRITABLE: &str = "types that can be written";

/// The types of files that `COPY` writes, in order: those of tables that are formats of files too.
pub(crate) fn writable(ctx: &SessionContext) -> Vec<String> {
    let state = ctx.state();
    let types = state.table_factories().keys().map(|file_type| file_type.to_lowercase());
    let mut types: Vec<String> =
        types.filter(|it| state.get_file_format_factory(it).is_some()).collect();
    types.sort_unstable();
    types
}

/// Whether tables of a type are read by DataFusion itself, rather than by a format of arrays.
pub(crate) fn is_datafusions(file_type: &str) -> bool {
    SessionStateDefaults::default_table_factories().contains_key(&file_type.to_uppercase())
}

/// Checks the type of the file that a statement writes.
///
/// # Errors
/// If it is said and there is no such type, or it is not said and the name of the file does not end in one.
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
            "the name of the file does not end in its type, as .csv does; say it: STORED AS csv; {known}"
        );
    };
    match ctx.state().get_file_format_factory(file_type) {
        Some(_) => Ok(()),
        None => Err(unknown(file_type, WRITABLE, &writable(ctx))),
    }
}

/// Checks the type of what a new table is at.
///
/// # Errors
/// If there is no such type, unless the table is there already: then that is what there is to say.
pub(crate) fn check_table(ctx: &SessionContext, table: &CreateExternalTable) -> Result<()> {
    let state = ctx.state();
    let known = state.table_factories();
    if known.contains_key(&table.file_type.to_uppercase())
        || !table.or_replace && ctx.table_exist(table.name.clone())?
    {
        return Ok(());
    }
    // In lower case, which is as good, and needs no quotes.
    let known: Vec<String> = known.keys().map(|file_type| file_type.to_lowercase()).collect();
    Err(unknown(&table.file_type, "types", &known))
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
