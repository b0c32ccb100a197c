//! Queries: planned, run and printed here, so that one can watch what they do.
//!
//! ```text
//!   statement ──▶ physical plan ──▶ rows ──▶ datafusion-cli prints them
//!                      │
//!                      └── metrics ──▶ progress, timing
//! ```
//!
//! What is printed is what datafusion-cli prints; it would run the plan where nobody sees it, and
//! collect rows that can be printed one by one.

use std::future::ready;
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use datafusion::common::instant::Instant;
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::spill::get_record_batch_memory_size;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, execute_stream};
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::Statement as SqlStatement;
use datafusion_cli::print_format::PrintFormat;
use datafusion_cli::print_options::{MaxRows, PrintOptions};
use futures::{TryStreamExt, stream};

use crate::progress::Progress;
use crate::reads::Reads;
use crate::run::execute;
use crate::session::Output;
use crate::timing::Timing;

/// Whether a statement is planned as a whole and yields rows. `COPY` to another machine needs an
/// object store, which datafusion-cli knows how to make.
pub(crate) fn is_query(statement: &Statement) -> bool {
    match statement {
        Statement::Statement(statement) => {
            matches!(statement.as_ref(), SqlStatement::Query(_) | SqlStatement::Insert(_))
        }
        Statement::Explain(_) => true,
        Statement::CopyTo(copy) => !copy.target.contains("://"),
        Statement::CreateExternalTable(_) | Statement::Reset(_) => false,
    }
}

/// A statement with its physical plan.
pub(crate) struct Query {
    plan: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
    print: PrintOptions,
    /// Whether to show how far it is.
    progress: bool,
    /// Whether rows are printed as they come: JSON is one array and a table has aligned columns, so
    /// these need all rows first.
    is_streamed: bool,
    start: Instant,
    planning: Duration,
}

impl Query {
    /// Plans a statement for which [`is_query`] holds; its time began at `start`.
    pub(crate) async fn plan(
        ctx: &SessionContext,
        statement: Statement,
        output: &Output,
        start: Instant,
    ) -> Result<Self> {
        let progress = output.progress;
        let (is_streamed, print) = printed(&statement, &output.print);
        let frame = execute(ctx, statement).await?;
        let context = Arc::new(frame.task_ctx());
        let plan = Box::pin(frame.create_physical_plan()).await?;
        let planning = start.elapsed();
        Ok(Self { plan, context, print, progress, is_streamed, start, planning })
    }

    /// Whether it may never end. datafusion-cli prints the rows of such queries as they come, in
    /// formats that allow it, and refuses the others.
    pub(crate) fn is_endless(&self) -> bool {
        self.plan.boundedness().is_unbounded()
    }

    /// Runs it and prints its rows.
    pub(crate) async fn run(self) -> Result<Timing> {
        let begin = Instant::now();
        let progress = self.progress.then(|| Reads::watch(&self.plan));
        let rows = execute_stream(Arc::clone(&self.plan), Arc::clone(&self.context))?;
        let (rows, execution) = if self.is_streamed {
            let rows = self.print_streamed(rows, progress).await?;
            (rows, begin.elapsed())
        } else {
            self.print_collected(rows, progress, begin).await?
        };
        let reads = Reads::of(self.plan.as_ref());
        Ok(Timing::Query { planning: self.planning, execution, rows, reads })
    }

    /// Prints rows as they come, in memory that does not grow with their number.
    async fn print_streamed(
        &self,
        rows: SendableRecordBatchStream,
        progress: Option<Progress>,
    ) -> Result<usize> {
        // Rows on the terminal are progress enough; in a file nobody sees them.
        let is_seen = io::stdout().is_terminal();
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        // The header is printed with the first batch, and lost if that has no rows.
        let schema = rows.schema();
        let rows = rows.try_filter(|batch| ready(batch.num_rows() > 0));
        let rows = stream::try_unfold((rows, progress), move |(mut rows, progress)| {
            let counted = Arc::clone(&counted);
            async move {
                let Some(batch) = rows.try_next().await? else { return Ok(None) };
                counted.fetch_add(batch.num_rows(), Ordering::Relaxed);
                let progress = progress.filter(|_| !is_seen);
                Ok(Some((batch, (rows, progress))))
            }
        });
        let rows = RecordBatchStreamAdapter::new(schema, Box::pin(rows));
        let format = &self.context.session_config().options().format;
        self.print.print_stream(Box::pin(rows), self.start, format).await?;
        Ok(count.load(Ordering::Relaxed))
    }

    /// Prints rows once all are there; those that will not be shown are only counted.
    async fn print_collected(
        &self,
        mut rows: SendableRecordBatchStream,
        progress: Option<Progress>,
        begin: Instant,
    ) -> Result<(usize, Duration)> {
        let most = match self.print.maxrows {
            MaxRows::Limited(most) => most,
            MaxRows::Unlimited => usize::MAX,
        };
        let reservation = MemoryConsumer::new("result").register(self.context.memory_pool());
        let mut batches = vec![];
        let mut count = 0_usize;
        while let Some(batch) = rows.try_next().await? {
            let is_shown = count <= most;
            count += batch.num_rows();
            if is_shown {
                reservation.try_grow(get_record_batch_memory_size(&batch))?;
                batches.push(batch);
            }
        }
        let execution = begin.elapsed();
        drop(progress);
        let format = &self.context.session_config().options().format;
        self.print.print_batches(self.plan.schema(), &batches, self.start, count, format)?;
        Ok((count, execution))
    }
}

/// Whether the rows of a statement are printed as they come, and how they are printed.
fn printed(statement: &Statement, print: &PrintOptions) -> (bool, PrintOptions) {
    let mut print = print.clone();
    if print.format == PrintFormat::Automatic {
        print.format = PrintFormat::Table;
    }
    if matches!(statement, Statement::Explain(_)) {
        print.maxrows = MaxRows::Unlimited;
    }
    let has_rows = match statement {
        Statement::Statement(statement) => matches!(statement.as_ref(), SqlStatement::Query(_)),
        _ => false,
    };
    let by_row = matches!(print.format, PrintFormat::Csv | PrintFormat::Tsv | PrintFormat::NdJson);
    (has_rows && by_row, print)
}

#[cfg(test)]
mod tests {
    use datafusion::sql::parser::DFParser;
    use datafusion_cli::object_storage::instrumented::InstrumentedObjectStoreRegistry;

    use super::*;

    fn parse(sql: &str) -> Statement {
        DFParser::parse_sql(sql).unwrap().pop_front().unwrap()
    }

    #[test]
    fn what_is_planned_here() {
        for (sql, ours) in [
            ("SELECT 1", true),
            ("WITH a AS (SELECT 1) SELECT * FROM a", true),
            ("EXPLAIN ANALYZE SELECT 1", true),
            ("INSERT INTO t SELECT 1", true),
            ("COPY (SELECT 1) TO 'a.parquet'", true),
            ("COPY (SELECT 1) TO 's3://bucket/a.parquet'", false),
            ("SHOW TABLES", false),
            ("DESCRIBE t", false),
            ("CREATE TABLE t AS SELECT 1", false),
            ("CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'x'", false),
        ] {
            assert_eq!(is_query(&parse(sql)), ours, "{sql}");
        }
    }

    #[test]
    fn queries_are_streamed_in_formats_that_allow_it() {
        let streamed = |sql: &str, format| {
            let options = PrintOptions {
                format,
                quiet: true,
                maxrows: MaxRows::Limited(40),
                color: false,
                instrumented_registry: Arc::new(InstrumentedObjectStoreRegistry::new()),
            };
            printed(&parse(sql), &options).0
        };
        for format in [PrintFormat::Csv, PrintFormat::Tsv, PrintFormat::NdJson] {
            assert!(streamed("SELECT 1", format));
            assert!(streamed("WITH a AS (SELECT 1) SELECT * FROM a", format));
            assert!(!streamed("EXPLAIN SELECT 1", format));
        }
        for format in [PrintFormat::Table, PrintFormat::Automatic, PrintFormat::Json] {
            assert!(!streamed("SELECT 1", format));
        }
    }
}
