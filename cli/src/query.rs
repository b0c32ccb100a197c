//! Plans, runs and prints statements, with progress and timing.
//!
//! ```text
//!   statement ──▶ physical plan ──▶ rows ──▶ print
//!                   │     │
//!                   │     └── metrics ──▶ progress, timing
//!                   └── COPY, INSERT ──▶ staging: files appear when all rows are written
//! ```
//!
//! The program runs plans itself, so it can watch their metrics during the query. Metrics of workers arrive after the
//! last row, and counters for the progress line before.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::plan_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::spill::get_record_batch_memory_size;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, execute_stream};
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::Statement as SqlStatement;
use futures::future::ready;
use futures::stream::{self, BoxStream, FuturesOrdered};
use futures::{Stream, StreamExt, TryStreamExt};
use gridfusion::io::{Remote, RequestCounts};
use gridfusion_distributed::is_worker_failure;

use crate::pager::Pager;
use crate::print::{Format, MaxRows, PrintOptions, Printer};
use crate::progress::Progress;
use crate::reads::Reads;
use crate::requests::{Requests, gridfusion_config, remote_of};
use crate::results::Results;
use crate::session::Output;
use crate::staging::Staging;
use crate::statement::{self, PlannedStatement};
use crate::timing::Timing;

/// A statement with its physical plan.
pub(crate) struct Query {
    plan: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
    kind: StatementKind,
    /// Holds the files that the statement writes until all are complete.
    staging: Option<Arc<Staging>>,
    print: PrintOptions,
    pager: Pager,
    /// Where rows are printed.
    results: Results,
    /// Whether to show a progress line.
    progress: bool,
    /// Whether the figures are reported.
    timing: bool,
    start: Instant,
    planning: Duration,
    remote: Remote,
    /// The requests of the session before this statement.
    earlier: RequestCounts,
    /// Whether the query may run on workers.
    has_workers: bool,
    /// Whether rows were printed.
    has_printed: AtomicBool,
}

/// The kind of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StatementKind {
    /// Yields rows.
    Rows,
    /// Shows a plan.
    Explain,
    /// Writes files, and yields their number of rows.
    Write,
    /// Is done when it is planned (`SET`, `CREATE`), or shows a few facts (`SHOW`).
    Other,
}

impl StatementKind {
    pub(crate) fn new(statement: &Statement) -> Self {
        match statement {
            Statement::Statement(statement) => match statement.as_ref() {
                SqlStatement::Query(_) => Self::Rows,
                SqlStatement::Insert(_) => Self::Write,
                _ => Self::Other,
            },
            Statement::Explain(_) => Self::Explain,
            Statement::CopyTo(_) => Self::Write,
            Statement::CreateExternalTable(_) | Statement::Reset(_) => Self::Other,
        }
    }
}

impl Query {
    /// Plans a statement. `start` is the beginning of its planning time.
    pub(crate) async fn plan(
        ctx: &SessionContext,
        statement: Statement,
        output: &Output,
        start: Instant,
    ) -> Result<Self> {
        let kind = StatementKind::new(&statement);
        let mut print = output.print;
        let mut pager = output.pager.clone();
        if let Some(file) = output.results.file() {
            // A file is for programs and editors, which need all rows and nothing else.
            (print.quiet, print.maxrows) = (true, MaxRows::Unlimited);
            print.format = file.format(print.format);
            pager.write_to(Arc::clone(file.file()));
        }
        print.quiet |= print.format.is_binary();
        if shows_all_rows(&statement) {
            print.maxrows = MaxRows::Unlimited;
        }
        let remote = remote_of(ctx);
        let earlier = remote.counts();
        let opening = output.progress.then(|| Progress::from_opening(&gridfusion_config(ctx)));
        let PlannedStatement { physical: plan, context, .. } =
            statement::plan(ctx, statement).await?;
        drop(opening);
        let staging = (kind == StatementKind::Write).then(|| Arc::new(Staging::default()));
        let context = match &staging {
            Some(staging) => staging.context(context, &plan)?,
            None => context,
        };
        if plan.boundedness().is_unbounded() {
            print.format = endless_format(print.format)?;
        }
        if kind != StatementKind::Write && !plan.schema().fields().is_empty() {
            output.results.check(print.format)?;
        }
        let context = Arc::new(context);
        let (progress, planning) = (output.progress, start.elapsed());
        Ok(Self {
            plan,
            context,
            kind,
            staging,
            print,
            pager,
            results: output.results.clone(),
            progress,
            timing: output.timing,
            start,
            planning,
            remote,
            earlier,
            has_workers: output.has_workers,
            has_printed: AtomicBool::new(false),
        })
    }

    /// Whether the statement may run again after an error: a worker failed, and nothing was printed or written.
    pub(crate) fn may_run_again(&self, error: &DataFusionError) -> bool {
        let is_pure = matches!(self.kind, StatementKind::Rows | StatementKind::Explain);
        is_pure && !self.has_printed.load(Ordering::Relaxed) && is_worker_failure(error)
    }

    /// Runs the plan and prints its rows.
    pub(crate) async fn run(&self) -> Result<Timing> {
        let begin = Instant::now();
        let progress = self.progress.then(|| Reads::watch(&self.plan, &self.context));
        let (rows, execution) = if let Some(staging) = &self.staging {
            let written = staging.run(&self.plan, &self.context).await?;
            self.print_collected(written, progress, begin).await?
        } else {
            let rows = execute_stream(Arc::clone(&self.plan), Arc::clone(&self.context))?;
            match self.print.is_by_row() {
                true => (self.print_streamed(rows, progress).await?, begin.elapsed()),
                false => self.print_collected(rows, progress, begin).await?,
            }
        };
        let requests = Requests(self.remote.counts().since(&self.earlier));
        if self.kind == StatementKind::Other {
            return Ok(Timing::Whole { time: self.start.elapsed(), requests });
        }
        let reads = if self.timing { Reads::from_run(&self.plan).await } else { Reads::default() };
        Ok(Timing::Query { planning: self.planning, execution, rows, reads, requests })
    }

    /// Prints rows as they arrive, in memory that does not grow with their number.
    async fn print_streamed(
        &self,
        rows: SendableRecordBatchStream,
        progress: Option<Progress>,
    ) -> Result<usize> {
        let mut out = self.pager.open();
        let mut count = 0;
        let outcome = self.print_each(rows, progress, &mut out, &mut count).await;
        out.close(outcome)?;
        Ok(count)
    }

    /// Prints rows to `out`, and adds them to `count`. Several threads format the rows that come next.
    ///
    /// If the query may run on workers, a result of one batch is printed at its end. If a worker fails before, no row is printed,
    /// and the query may run again.
    async fn print_each(
        &self,
        rows: SendableRecordBatchStream,
        mut progress: Option<Progress>,
        mut out: &mut (dyn Write + Send),
        count: &mut usize,
    ) -> Result<()> {
        // On a terminal, the rows themselves show progress and take the place of the line.
        let is_seen = io::stdout().is_terminal();
        let mut printer = self.printer()?;
        let reservation = self.reservation();
        let may_wait = self.has_workers && !self.plan.boundedness().is_unbounded();
        let mut rows = batches_to_print(rows, may_wait, printer.most_rows());
        // While one text is written, each thread has another to format.
        let most = 2 * self.context.session_config().target_partitions();
        let mut begun = FuturesOrdered::new();
        let mut end = None;
        while end.is_none() || !begun.is_empty() {
            tokio::select! {
                biased;
                // Texts that are ready are written before more rows come, which may take long.
                Some(ready) = begun.next() => {
                    progress = progress.filter(|_| !is_seen);
                    self.has_printed.store(true, Ordering::Relaxed);
                    printer.end(&mut out, ready?)?;
                    reservation.try_resize(printer.memory())?;
                }
                batch = rows.try_next(), if end.is_none() && begun.len() < most => match batch {
                    Ok(Some(batch)) => {
                        *count += batch.num_rows();
                        begun.push_back(printer.begin(batch));
                    }
                    // Rows before an error are printed.
                    other => end = Some(other.map(drop)),
                },
            }
        }
        end.unwrap_or(Ok(()))?;
        drop(progress);
        printer.finish(&mut out)?;
        self.print.summary(&mut out, *count, self.start.elapsed())?;
        out.flush()?;
        self.end_result();
        Ok(())
    }

    /// Collects all rows, then prints them. Rows beyond the printed ones are only counted.
    ///
    /// The memory of the collected batches counts towards `--memory-limit`.
    async fn print_collected(
        &self,
        mut rows: SendableRecordBatchStream,
        progress: Option<Progress>,
        begin: Instant,
    ) -> Result<(usize, Duration)> {
        let most = self.print.printed_rows();
        let reservation = self.reservation();
        let mut batches: Vec<RecordBatch> = vec![];
        let mut count = 0_usize;
        while let Some(batch) = rows.try_next().await? {
            // Not `<`: one batch beyond the printed rows shows the printer that there are more.
            let is_shown = count <= most;
            count += batch.num_rows();
            if is_shown {
                reservation.try_grow(get_record_batch_memory_size(&batch))?;
                batches.push(batch);
            }
        }
        let execution = begin.elapsed();
        drop(progress);
        if self.print.format.is_binary() {
            // The number of written rows: it must not stand in the place of rows.
            return Ok((count, execution));
        }
        let mut printer = self.printer()?;
        self.pager.show(|out| {
            for batch in batches {
                printer.write(out, batch)?;
            }
            printer.finish(out)?;
            self.print.summary(out, count, self.start.elapsed())?;
            Ok(out.flush()?)
        })?;
        self.end_result();
        Ok((count, execution))
    }

    fn printer(&self) -> Result<Printer<'_>> {
        Printer::try_new(&self.print, self.plan.schema(), self.context.session_config().options())
    }

    /// Counts memory that printing holds towards `--memory-limit`.
    fn reservation(&self) -> MemoryReservation {
        MemoryConsumer::new("result").register(self.context.memory_pool())
    }

    /// Takes note of a complete result. A statement such as `SET` has none.
    fn end_result(&self) {
        if !self.plan.schema().fields().is_empty() {
            self.results.add();
        }
    }
}

/// Returns the batches that have rows, in parts of at most `most_rows`. If the first `may_wait`, it waits for the second, or for the
/// end.
fn batches_to_print(
    rows: SendableRecordBatchStream,
    may_wait: bool,
    most_rows: impl Fn(&RecordBatch) -> usize + Send + 'static,
) -> BoxStream<'static, Result<RecordBatch>> {
    let rows = rows.try_filter(|batch| ready(batch.num_rows() > 0));
    let rows = match may_wait {
        true => with_second(rows).boxed(),
        false => rows.boxed(),
    };
    let parts = move |batch: RecordBatch| {
        let most_rows = most_rows(&batch);
        let starts = (0..batch.num_rows()).step_by(most_rows);
        let part = move |start| batch.slice(start, most_rows.min(batch.num_rows() - start));
        stream::iter(starts.map(part).map(Ok))
    };
    rows.map_ok(parts).try_flatten().boxed()
}

/// Returns the same items, the first when there is a second or none. An error in its place comes alone.
fn with_second<T: Send + 'static>(
    items: impl Stream<Item = Result<T>> + Send + Unpin + 'static,
) -> impl Stream<Item = Result<T>> + Send + 'static {
    let mut items = items.fuse();
    let both = async move {
        let first = items.try_next().await?;
        let second = if first.is_some() { items.try_next().await? } else { None };
        Ok::<_, DataFusionError>(stream::iter(first.into_iter().chain(second).map(Ok)).chain(items))
    };
    stream::once(both).try_flatten()
}

/// Whether a statement describes a plan, settings or columns, so that `maxrows` must not cut its result.
fn shows_all_rows(statement: &Statement) -> bool {
    match statement {
        Statement::Explain(_) => true,
        Statement::Statement(statement) => matches!(
            statement.as_ref(),
            SqlStatement::ShowVariable { .. }
                | SqlStatement::ExplainTable { .. }
                | SqlStatement::ShowColumns { .. }
        ),
        _ => false,
    }
}

/// Returns the format for a query that may never end.
///
/// # Errors
/// If `format` is a table, which needs all rows, or a file that is read from its end.
fn endless_format(format: Format) -> Result<Format> {
    match format {
        Format::Automatic => Ok(Format::Csv),
        Format::Table | Format::Box => {
            plan_err!(
                "a table is printed after the last row, and this query may never end; use --format csv"
            )
        }
        Format::Parquet | Format::ArrowFile => plan_err!(
            "{} files are read from their end, and this query may never end; use --format arrow, a stream",
            format.title()
        ),
        format => Ok(format),
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{ArrayRef, Int64Array};
    use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
    use datafusion::sql::parser::DFParser;
    use futures::FutureExt;

    use super::*;

    fn parse(sql: &str) -> Statement {
        DFParser::parse_sql(sql).unwrap().pop_front().unwrap()
    }

    #[test]
    fn kinds_of_statements() {
        for (sql, kind) in [
            ("SELECT 1", StatementKind::Rows),
            ("WITH a AS (SELECT 1) SELECT * FROM a", StatementKind::Rows),
            ("EXPLAIN ANALYZE SELECT 1", StatementKind::Explain),
            ("INSERT INTO t SELECT 1", StatementKind::Write),
            ("COPY (SELECT 1) TO 's3://bucket/a.parquet'", StatementKind::Write),
            ("SHOW TABLES", StatementKind::Other),
            ("CREATE TABLE t AS SELECT 1", StatementKind::Other),
            ("CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'x'", StatementKind::Other),
        ] {
            assert_eq!(StatementKind::new(&parse(sql)), kind, "{sql}");
        }
    }

    #[test]
    fn descriptions_are_shown_whole() {
        for sql in ["EXPLAIN SELECT 1", "DESCRIBE t", "SHOW ALL", "SHOW COLUMNS FROM t"] {
            assert!(shows_all_rows(&parse(sql)), "{sql}");
        }
        assert!(!shows_all_rows(&parse("SELECT 1")) && !shows_all_rows(&parse("SHOW TABLES")));
    }

    fn batches(
        items: Vec<Result<usize>>,
        may_wait: bool,
        most_rows: usize,
    ) -> BoxStream<'static, Result<usize>> {
        let column = |rows: usize| Arc::new(Int64Array::from(vec![7; rows])) as ArrayRef;
        let batch = move |rows| RecordBatch::try_from_iter([("a", column(rows))]).unwrap();
        let items = stream::iter(items).chain(stream::pending()).map_ok(batch);
        let rows = RecordBatchStreamAdapter::new(batch(0).schema(), items);
        let parts = batches_to_print(Box::pin(rows), may_wait, move |_| most_rows);
        parts.map_ok(|batch| batch.num_rows()).boxed()
    }

    /// The stream of the rows waits for more: none of these must.
    #[test]
    fn rows_are_printed_as_they_come() {
        let next = |stream: &mut BoxStream<'static, Result<usize>>| {
            let next = stream.next().now_or_never();
            next.map(|it| it.map(|it| it.map_err(|error| error.to_string())))
        };
        let mut rows = batches(vec![Ok(0), Ok(5), Ok(0), Ok(2)], false, 2);
        for expected in [2, 2, 1, 2] {
            assert_eq!(next(&mut rows), Some(Some(Ok(expected))));
        }
        assert_eq!(next(&mut rows), None);
        let mut rows = batches(vec![Ok(0), Ok(5), Ok(0)], true, usize::MAX);
        assert_eq!(next(&mut rows), None, "the first waits for a second");
        let mut rows = batches(vec![Ok(5), Ok(3), Ok(1)], true, usize::MAX);
        for expected in [5, 3, 1] {
            assert_eq!(next(&mut rows), Some(Some(Ok(expected))));
        }
        let failed = || plan_err!("odd");
        let mut rows = batches(vec![Ok(5), failed()], true, usize::MAX);
        assert!(next(&mut rows).flatten().unwrap().is_err(), "the query may run again");
        let mut rows = batches(vec![Ok(5), failed()], false, usize::MAX);
        assert_eq!(next(&mut rows), Some(Some(Ok(5))));
        assert!(next(&mut rows).flatten().unwrap().is_err());
    }

    #[test]
    fn a_single_item_comes_at_the_end() {
        for count in 0..4 {
            let items: Vec<i32> = (0..count).collect();
            let stream = stream::iter(items.clone()).map(Ok);
            let found = with_second(stream).try_collect::<Vec<_>>().now_or_never();
            assert_eq!(found.unwrap().unwrap(), items);
        }
    }

    #[test]
    fn endless_rows_are_no_table() {
        assert_eq!(endless_format(Format::Automatic).unwrap(), Format::Csv);
        assert_eq!(endless_format(Format::NdJson).unwrap(), Format::NdJson);
        assert_eq!(endless_format(Format::Arrow).unwrap(), Format::Arrow);
        for format in [Format::Table, Format::Parquet, Format::ArrowFile] {
            assert!(endless_format(format).is_err(), "{format:?}");
        }
    }
}
