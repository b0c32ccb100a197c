//! The session of the program without its command line and its printing. The Python package builds on it, so that both have the
//! same tables, stores, settings, exports and messages.
//!
//! ```text
//!   SQL ──▶ statements ──▶ Outcome::Query: a plan, which may run often
//!                     └──▶ Outcome::Rows, Outcome::Nothing: the statement has run
//! ```

mod box_reader;
mod cells;
mod columns;
mod compute;
mod computed;
mod cooperative;
mod drawing;
mod failure;
mod figures;
mod zeros;

use std::mem;
use std::sync::Arc;
use std::time::Instant;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::{ParamValues, not_impl_err, plan_datafusion_err, plan_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::spill::get_record_batch_memory_size;
use datafusion::physical_plan::{ExecutionPlan, collect, execute_stream};
use datafusion::prelude::{DataFrame, SessionContext};
use datafusion::sql::parser::Statement;
use futures::TryStreamExt;
use gridfusion::{without_panics, without_secrets};

pub use self::cells::GridCells;
use self::cells::{GridBox, ReadCounts};
pub use self::columns::{ColumnFacts, LabelsOrder, column_facts, source_labels};
pub(crate) use self::cooperative::cooperative;
pub use self::drawing::Drawing;
use self::failure::Explained;
pub use self::failure::Failure;
pub use self::figures::{Figures, Run, Watch};
use crate::args::{Args, Task};
use crate::errors::describe;
use crate::hints::{explained, with_hint};
pub use crate::panics::quieten as quieten_panics;
use crate::placeholders::numbered;
use crate::print::{Format, MaxRows, PrintOptions, Printer};
use crate::query::StatementKind;
use crate::requests::remote_of;
use crate::secrets::{hide, learn_sql};
use crate::session::Session;
use crate::staging::Staging;
use crate::statement::{self, PlannedStatement};
use crate::store::{StoreOptions, is_of_store};
use crate::summarize::summarize;
use crate::{plot, verify};

/// The arguments of the command line that a session takes, with underscores.
const ARGUMENTS: [&str; 7] =
    ["batch_size", "memory_limit", "root", "task_size", "tls_ca", "token_file", "workers"];

/// A session that runs SQL for another program.
pub struct EmbeddedSession {
    ctx: SessionContext,
}

/// The outcome of a text of SQL.
#[derive(Debug)]
pub enum Outcome {
    /// A query, which has not run, and the columns of its rows.
    Query(Box<LogicalPlan>, SchemaRef),
    /// The rows of a statement that has run, such as `EXPLAIN`, `SHOW` or `COPY`.
    Rows(SchemaRef, Vec<RecordBatch>),
    /// A statement without rows has run, such as `CREATE VIEW` or `SET`.
    Nothing,
}

impl EmbeddedSession {
    /// Makes a session without tables.
    ///
    /// `options` are arguments of the command line such as `memory_limit`, and options of object stores such as `aws.region`. All others
    /// are settings, such as `reduce_memory` or `datafusion.execution.batch_size`.
    ///
    /// # Errors
    /// If an option is unknown or has a wrong value.
    pub async fn try_new(options: &[(String, String)]) -> Result<Self> {
        let is_setting = |name: &str| !ARGUMENTS.contains(&name) && !is_of_store(name);
        let session = Self { ctx: context(options)? };
        for (name, value) in options.iter().filter(|(name, _)| is_setting(name)) {
            session.set(name, value).await?;
        }
        Ok(session)
    }

    /// DataFusion's context of the session.
    pub fn ctx(&self) -> &SessionContext {
        &self.ctx
    }

    /// Sets a setting. A name without a prefix is one of gridfusion's.
    ///
    /// # Errors
    /// If the name is unknown, or the value is wrong.
    pub async fn set(&self, name: &str, value: &str) -> Result<()> {
        let name = if name.contains('.') { name.to_owned() } else { format!("gridfusion.{name}") };
        let is_name = |it: char| it.is_ascii_alphanumeric() || "_.".contains(it);
        if !name.chars().all(is_name) {
            return Err(plan_datafusion_err!("'{name}' is no name of a setting"));
        }
        let sql = format!("SET {name} = '{}'", value.replace('\'', "''"));
        Box::pin(self.run(&sql, std::future::pending())).await.map(drop)
    }

    /// Runs the statements of `sql`. If the last one is a query, that does not run, and is the outcome. A statement that writes files
    /// ends when `interrupted` is ready, and writes nothing then.
    ///
    /// # Errors
    /// The error of the first statement that fails.
    pub async fn run(&self, sql: &str, interrupted: impl Future<Output = ()>) -> Result<Outcome> {
        Box::pin(self.run_with(sql, None, interrupted)).await
    }

    /// As [`Self::run`], with values for the placeholders of a single statement.
    ///
    /// # Errors
    /// As there. Also if a placeholder has no value, or a value no placeholder.
    pub async fn run_with(
        &self,
        sql: &str,
        values: Option<&ParamValues>,
        interrupted: impl Future<Output = ()>,
    ) -> Result<Outcome> {
        learn_sql(sql);
        let mut interrupted = Box::pin(interrupted);
        let mut outcome = Outcome::Nothing;
        let mut texts: Vec<String> = statement::texts(self.ctx(), sql)?.collect();
        let mut list = None;
        if let Some(values) = values {
            texts.retain(|text| !text.trim().is_empty());
            let [only] = texts.as_mut_slice() else {
                return plan_err!("values for placeholders need a single statement");
            };
            let (text, values) = numbered(self.ctx(), only, values)?;
            (*only, list) = (text, Some(values));
        }
        for text in texts {
            let run = without_panics(Box::pin(self.run_text(
                &text,
                list.as_ref(),
                &mut interrupted,
                &mut outcome,
            )));
            if let Err(error) = run.await {
                let kind = Failure::of(&error);
                return Err(Explained::of_kind(kind, &explained(error, self.ctx(), &text).await));
            }
        }
        Ok(outcome)
    }

    /// Runs one statement. A query that was the outcome of an earlier statement runs first, so that its errors show.
    async fn run_text(
        &self,
        text: &str,
        values: Option<&ParamValues>,
        interrupted: &mut (impl Future<Output = ()> + Unpin),
        outcome: &mut Outcome,
    ) -> Result<()> {
        let summary = Box::pin(summarize(self.ctx(), text)).await?;
        if summary.is_some() && values.is_some() {
            return not_impl_err!("SUMMARIZE takes no values for placeholders");
        }
        for statement in statement::parse(self.ctx(), summary.as_deref().unwrap_or(text))? {
            if let Outcome::Query(earlier, _) = mem::replace(outcome, Outcome::Nothing) {
                let (mut rows, _) = self.execute(&earlier).await?;
                while rows.try_next().await?.is_some() {}
            }
            *outcome = Box::pin(self.run_statement(statement, values, &mut *interrupted)).await?;
        }
        Ok(())
    }

    async fn run_statement(
        &self,
        statement: Statement,
        values: Option<&ParamValues>,
        interrupted: impl Future<Output = ()>,
    ) -> Result<Outcome> {
        let kind = StatementKind::new(&statement);
        let PlannedStatement { logical, physical, context } =
            statement::plan_with(self.ctx(), statement, values).await?;
        let schema = physical.schema();
        let batches = match kind {
            StatementKind::Rows => return Ok(Outcome::Query(Box::new(logical), schema)),
            StatementKind::Write => write(&physical, context, interrupted).await?,
            StatementKind::Explain | StatementKind::Other => {
                collect(physical, Arc::new(context)).await?
            }
        };
        let has_rows = !schema.fields().is_empty();
        Ok(if has_rows { Outcome::Rows(schema, batches) } else { Outcome::Nothing })
    }

    /// Writes the rows of a query to a file, in their order. `sql` is a `COPY` of any other rows to that file.
    ///
    /// # Errors
    /// If the query fails, or the file cannot be written. No file appears then, nor if `interrupted` is ready before the end.
    pub async fn copy(
        &self,
        plan: &LogicalPlan,
        sql: &str,
        interrupted: impl Future<Output = ()>,
    ) -> Result<Vec<RecordBatch>> {
        learn_sql(sql);
        let statement = statement::parse(self.ctx(), sql)?.pop_front();
        let statement = statement.ok_or_else(|| plan_datafusion_err!("COPY is missing"))?;
        let PlannedStatement { physical, context, .. } =
            Box::pin(statement::plan_copy(self.ctx(), statement, plan)).await?;
        write(&physical, context, interrupted).await
    }

    /// Begins to run a query. The [`Run`] has its figures in the end.
    ///
    /// # Errors
    /// If the query cannot be planned. The stream has the errors of the rows.
    pub async fn execute(&self, plan: &LogicalPlan) -> Result<(SendableRecordBatchStream, Run)> {
        let start = Instant::now();
        let remote = remote_of(self.ctx());
        let earlier = remote.counts();
        let frame = DataFrame::new(self.ctx().state(), plan.clone());
        let context = Arc::new(frame.task_ctx());
        let physical = cooperative(Box::pin(frame.create_physical_plan()).await?)?;
        let planning = start.elapsed();
        let rows = execute_stream(Arc::clone(&physical), context)?;
        Ok((rows, Run { plan: physical, start, planning, remote, earlier }))
    }

    /// Runs a query. While it runs, its rows count towards the memory limit. `begun` is called when the query is planned.
    ///
    /// # Errors
    /// If the query fails.
    pub async fn collect(
        &self,
        plan: &LogicalPlan,
        begun: impl FnOnce(Watch),
    ) -> Result<(Vec<RecordBatch>, Figures)> {
        let pool = Arc::clone(&self.ctx().runtime_env().memory_pool);
        let reservation = MemoryConsumer::new("result").register(&pool);
        let (mut stream, run) = self.execute(plan).await?;
        begun(Watch::of_plan(&run.plan));
        let mut batches = vec![];
        while let Some(batch) = stream.try_next().await? {
            reservation.try_grow(get_record_batch_memory_size(&batch))?;
            batches.push(batch);
        }
        let rows = batches.iter().map(RecordBatch::num_rows).sum();
        Ok((batches, run.figures(rows).await))
    }

    /// Reads the cells of a query that shows a box of an array, row-major and without rows. `dims` are the columns that tell their place.
    /// NULL is NaN in floats, unless `keeps_nulls`. `None` for all other queries. `begun` is called when the query is planned.
    ///
    /// # Errors
    /// If the query cannot be planned, or cells cannot be read.
    pub async fn cells(
        &self,
        plan: &LogicalPlan,
        dims: &[usize],
        keeps_nulls: bool,
        begun: impl FnOnce(Watch),
    ) -> Result<Option<(GridCells, Figures)>> {
        if !GridBox::may_be_shown(plan)? {
            return Ok(None);
        }
        let start = Instant::now();
        let remote = remote_of(self.ctx());
        let earlier = remote.counts();
        let frame = DataFrame::new(self.ctx().state(), plan.clone());
        let threads = self.ctx().copied_config().target_partitions();
        let plan = Box::pin(frame.create_physical_plan()).await?;
        let Some(grid_box) = GridBox::from_plan(&plan) else { return Ok(None) };
        let grid_box = grid_box.with_dims(dims);
        if !grid_box.is_dense(dims)? {
            return Ok(None);
        }
        let Some(computed) = grid_box.computed()? else { return Ok(None) };
        let run = Run { plan, start, planning: start.elapsed(), remote, earlier };
        let counts = Arc::new(ReadCounts::of(&grid_box, &computed));
        let watched = Arc::clone(&counts);
        begun(Watch::new(move || watched.progress()));
        let pool = Arc::clone(&self.ctx().runtime_env().memory_pool);
        let rows = grid_box.cells();
        let read = grid_box.read(computed, threads, keeps_nulls, &pool, Arc::clone(&counts));
        let cells = Box::pin(read).await?;
        Ok(Some((cells, run.figures_of(rows, counts.reads()))))
    }

    /// Draws the rows of a query. `options` are those of `gridfusion plot`, such as `kind` or `x_limits`.
    ///
    /// # Errors
    /// If the query fails, an option is wrong, or the rows cannot be plotted.
    pub async fn plot(&self, plan: &LogicalPlan, options: &[(String, String)]) -> Result<Drawing> {
        // The program writes a PNG file of most rows. Neither the query nor the file of these words is used.
        let mut words: Vec<String> =
            ["gridfusion", "plot", "query", "-o", "picture.png"].map(str::to_owned).into();
        let options = options.iter();
        words.extend(options.map(|(name, it)| format!("--{}={it}", name.replace('_', "-"))));
        let args = Args::try_from_command_line(words).map_err(|error| refused(&error))?;
        let Some(Task::Plot(args)) = args.task else { return plan_err!("no plot") };
        let (picture, rows) = Box::pin(plot::draw(self.ctx(), plan, &args)).await?;
        Ok(Drawing { picture, rows })
    }

    /// Checks the files or arrays at a path. Returns the JSON document of `gridfusion verify`.
    ///
    /// # Errors
    /// If an option is wrong, or the path is outside of the root. All other errors are in the document.
    pub async fn verify(
        &self,
        path: &str,
        options: &[(String, String)],
        is_deep: bool,
    ) -> Result<String> {
        Ok(hide(&Box::pin(verify::report(self.ctx(), path, options, is_deep)).await?).into_owned())
    }

    /// The names of the table functions that read arrays, or facts about them.
    pub fn table_functions(&self) -> Vec<String> {
        let mut names: Vec<String> = self.ctx().state().table_functions().keys().cloned().collect();
        names.sort_unstable();
        names
    }

    /// Returns rows as the table that the program prints, with at most `most` rows.
    ///
    /// # Errors
    /// If a value cannot be shown.
    pub fn table(
        &self,
        schema: &SchemaRef,
        batches: &[RecordBatch],
        most: usize,
    ) -> Result<String> {
        let options = PrintOptions {
            format: Format::Table,
            maxrows: MaxRows::Limited(most),
            headers: true,
            quiet: true,
            color: false,
        };
        let config = self.ctx().copied_config();
        let mut printer = Printer::try_new(&options, Arc::clone(schema), config.options())?;
        let mut text = vec![];
        for batch in batches {
            printer.write(&mut text, batch.clone())?;
        }
        printer.finish(&mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Adds the hint that the program prints for an error, if there is one.
    pub fn explain(&self, error: DataFusionError) -> DataFusionError {
        let kind = Failure::of(&error);
        Explained::of_kind(kind, &with_hint(error, self.ctx()))
    }
}

/// Runs a plan that writes files. They appear when all are complete.
async fn write(
    plan: &Arc<dyn ExecutionPlan>,
    context: TaskContext,
    interrupted: impl Future<Output = ()>,
) -> Result<Vec<RecordBatch>> {
    let staging = Arc::new(Staging::default());
    let context = Arc::new(staging.context(context, plan)?);
    let plan = cooperative(Arc::clone(plan))?;
    staging.run_unless(interrupted, &plan, &context).await
}

/// Makes the context from the arguments of the command line and the options of object stores among `options`.
fn context(options: &[(String, String)]) -> Result<SessionContext> {
    let mut words = vec!["gridfusion".to_owned(), "--quiet".to_owned()];
    let mut stores = StoreOptions::default();
    for (name, value) in options {
        if ARGUMENTS.contains(&name.as_str()) {
            words.push(format!("--{}={value}", name.replace('_', "-")));
        } else if is_of_store(name) {
            stores.set(name, value)?;
        }
    }
    let args = Args::try_from_command_line(words).map_err(|error| refused(&error))?;
    Ok(Session::new(&args.engine, true, &stores)?.ctx)
}

/// Returns the message of an error, without secrets.
pub fn message(error: &DataFusionError) -> String {
    shown(&describe(error))
}

/// Returns a text without secrets.
pub fn shown(text: &str) -> String {
    without_secrets(&hide(text))
}

/// Returns the error for a wrong argument: the first paragraph of the program's, in a line.
fn refused(error: &clap::Error) -> DataFusionError {
    let text = error.to_string();
    let lines = text.lines().map(str::trim).take_while(|line| !line.is_empty());
    let line = lines.collect::<Vec<_>>().join(" ");
    plan_datafusion_err!("{}", line.strip_prefix("error: ").unwrap_or(&line))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use datafusion::common::ScalarValue;

    use super::*;

    async fn session(options: &[(&str, &str)]) -> Result<EmbeddedSession> {
        let text = |it: &&str| (*it).to_owned();
        let options: Vec<_> = options.iter().map(|(name, it)| (text(name), text(it))).collect();
        EmbeddedSession::try_new(&options).await
    }

    async fn query(session: &EmbeddedSession, sql: &str) -> LogicalPlan {
        match session.run(sql, std::future::pending()).await.unwrap() {
            Outcome::Query(plan, _) => *plan,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn only_the_last_query_waits() {
        let session = session(&[("batch_size", "7"), ("memory_limit", "1g")]).await.unwrap();
        let run = async |sql| session.run(sql, std::future::pending()).await;
        assert!(matches!(run("CREATE VIEW v AS SELECT 1 AS x").await, Ok(Outcome::Nothing)));
        assert!(matches!(run("EXPLAIN SELECT 1; SHOW TABLES").await, Ok(Outcome::Rows(..))));
        assert!(matches!(run("SELECT 1; SELECT x FROM v;").await, Ok(Outcome::Query(..))));
        let error = run("SELECT 1 / 0; SELECT 2").await.unwrap_err();
        assert_eq!(Failure::of(&error), Failure::Data);
        let error = run("SELECT y FROM v").await.unwrap_err();
        assert_eq!(Failure::of(&error), Failure::Usage);
    }

    #[tokio::test]
    async fn values_take_the_place_of_placeholders() {
        let session = session(&[]).await.unwrap();
        let values = ParamValues::from(vec![ScalarValue::from(7_i64), ScalarValue::from("' OR 1")]);
        let sql = "SELECT ? AS n, ? AS t, '?' AS mark;";
        let outcome = session.run_with(sql, Some(&values), std::future::pending()).await.unwrap();
        let Outcome::Query(plan, schema) = outcome else { panic!("{outcome:?}") };
        assert_eq!(schema.field(0).data_type(), &datafusion::arrow::datatypes::DataType::Int64);
        let (batches, figures) = session.collect(&plan, |_| ()).await.unwrap();
        let text = session.table(&schema, &batches, 40).unwrap();
        assert!(text.contains("| 7 | ' OR 1 | ?    |"), "{text}");
        assert_eq!(figures.counts[0], ("rows", 1));
        for sql in ["SELECT ?", "SELECT 1; SELECT ?, ?", ""] {
            let refused = session.run_with(sql, Some(&values), std::future::pending()).await;
            assert_eq!(Failure::of(&refused.unwrap_err()), Failure::Usage, "{sql}");
        }
    }

    #[tokio::test]
    async fn options_are_arguments_or_settings() {
        assert!(session(&[("reduce_memory", "1000000"), ("batch_size", "7")]).await.is_ok());
        for (name, value) in [("memory_limit", "much"), ("retries", "2"), ("a b", "1")] {
            let error = session(&[(name, value)]).await.err().unwrap();
            assert_eq!(Failure::of(&error), Failure::Usage, "{name}");
            assert_eq!(message(&error).lines().count(), 1, "{name}");
        }
    }

    #[tokio::test]
    async fn copies_keep_the_order_of_rows() {
        let session = session(&[]).await.unwrap();
        let down = "SELECT * FROM generate_series(1, 20000) AS t(n) ORDER BY n DESC";
        let plan = query(&session, down).await;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("n.csv");
        let copy = format!("COPY (SELECT 1) TO '{}'", path.display());
        let count = session.copy(&plan, &copy, std::future::pending()).await.unwrap();
        assert_eq!(count.len(), 1);
        let numbers: Vec<String> = (1..=20000).rev().map(|it| it.to_string()).collect();
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("n\n{}\n", numbers.join("\n")));
        fs::remove_file(&path).unwrap();
        let stopped = session.copy(&plan, &copy, async {}).await;
        assert!(stopped.is_err() && !path.exists());
    }

    #[tokio::test]
    async fn columns_have_a_meaning() {
        let session = session(&[]).await.unwrap();
        let air = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/data/air.nc");
        let sql = format!("SELECT t2m, lat AS y, time FROM '{air}' WHERE lat > 0 ORDER BY lat");
        let plan = query(&session, &sql).await;
        let facts = column_facts(&plan);
        let orders: Vec<_> = facts.iter().map(|it| it.dimension).collect();
        let expected = [None, Some(LabelsOrder::Descending), Some(LabelsOrder::Ascending)];
        assert_eq!(orders, expected);
        assert_eq!(facts[0].attributes["units"], "K");
        assert!(facts.iter().all(|it| !it.is_key));
        assert_eq!(source_labels(&plan, 1).unwrap().unwrap().len(), 15);
        assert!(source_labels(&plan, 0).unwrap().is_none());

        let sql = format!(
            "SELECT CAST(time AS BIGINT) AS t, CAST(CAST(lat AS INT) AS FLOAT) AS y, CAST(t2m AS DOUBLE) AS t2m FROM '{air}'"
        );
        let plan = query(&session, &sql).await;
        let facts = column_facts(&plan);
        assert!(facts.iter().all(|it| it.dimension.is_none()));
        let units = facts.iter().map(|it| it.attributes.get("units").map(String::as_str));
        assert_eq!(units.collect::<Vec<_>>(), [None, Some("degrees_north"), Some("K")]);
        assert!(!facts[0].attributes.contains_key("calendar"));
        assert!(source_labels(&plan, 1).unwrap().is_none());

        let sql = format!(
            "SELECT avg(t2m) AS mean, m, lat FROM (SELECT date_part('month', time) AS m, * FROM '{air}') GROUP BY m, lat"
        );
        let facts = column_facts(&query(&session, &sql).await);
        let keys: Vec<bool> = facts.iter().map(|it| it.is_key).collect();
        assert_eq!(keys, [false, true, true]);
        let units = facts[0].attributes.get("units").map(String::as_str);
        assert_eq!((units, facts[0].dimension), (Some("K"), None));
        assert!(!facts[0].attributes.contains_key("scale_factor"));
    }
}
