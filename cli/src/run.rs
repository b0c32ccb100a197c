//! Runs the statements of SQL text, one after the other.
//!
//! Each statement is planned only after the ones before have run: it may read a table that they create.

use std::time::Instant;

use datafusion::error::Result;
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement;
use gridfusion::without_panics;

use crate::hints::explained;
use crate::query::Query;
use crate::secrets::learn_sql;
use crate::session::Output;
use crate::statement;
use crate::summarize::summarize;
use crate::timing::Timing;

/// Runs the statements of `sql` and prints their results. Stops at the first error.
pub(crate) async fn run_sql(ctx: &SessionContext, sql: &str, output: &Output) -> Result<()> {
    learn_sql(sql);
    for text in statement::texts(ctx, sql)? {
        if let Err(error) = without_panics(Box::pin(run_text(ctx, &text, output))).await {
            return Err(explained(error, ctx, &text).await);
        }
    }
    Ok(())
}

/// Runs SQL as [`run_sql`] does, until it ends or the user presses Ctrl-C.
pub(crate) async fn unless_interrupted(
    ctx: &SessionContext,
    sql: &str,
    output: &Output,
) -> Result<()> {
    tokio::select! {
        outcome = run_sql(ctx, sql, output) => outcome,
        Ok(()) = tokio::signal::ctrl_c() => {
            eprintln!("^C");
            Ok(())
        }
    }
}

/// Runs a statement, again if a worker fails and `--retries` allows it. Planning anew leaves out the worker.
async fn run_statement(
    ctx: &SessionContext,
    statement: Statement,
    output: &Output,
    start: Instant,
) -> Result<Timing> {
    let mut left = output.retries;
    loop {
        let query = Query::plan(ctx, statement.clone(), output, start).await?;
        match query.run().await {
            Err(error) if left > 0 && query.may_run_again(&error) => {
                log::warn!("{error}; the query runs again");
                left -= 1;
            }
            outcome => return outcome,
        }
    }
}

/// Runs the statement of a text. The text may also be empty, or hold several statements if
/// [`statement::texts`] splits differently from the parser.
async fn run_text(ctx: &SessionContext, text: &str, output: &Output) -> Result<()> {
    let start = Instant::now();
    let summary = Box::pin(summarize(ctx, text)).await?;
    let text = summary.as_deref().unwrap_or(text);
    for statement in statement::parse(ctx, text)? {
        let timing = run_statement(ctx, statement, output, start).await?;
        if output.timing {
            timing.report();
        }
    }
    Ok(())
}
