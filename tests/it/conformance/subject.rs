//! One array in one format, and in memory.

use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{Field, Schema};
use datafusion::datasource::MemTable;
use datafusion::physical_plan::{ExecutionPlan, collect, displayable};
use datafusion::prelude::SessionContext;

use super::doors;
use super::format::{Capabilities, FormatUnderTest};
use super::logical::Logical;
use crate::support::{reducing, rows_from, session};

/// An array that is written in a format, with helpers for checks.
pub(crate) struct Subject<'a> {
    pub(crate) format: &'a dyn FormatUnderTest,
    pub(crate) capabilities: Capabilities,
    /// The array as the format holds it.
    pub(crate) array: Logical,
    pub(crate) rows: RecordBatch,
    pub(crate) folder: tempfile::TempDir,
}

impl<'a> Subject<'a> {
    pub(crate) fn new(format: &'a dyn FormatUnderTest, array: &Logical) -> Self {
        let capabilities = format.capabilities();
        let array = array.held_by(&capabilities);
        let rows = array.rows(&capabilities.hours);
        let folder = tempfile::tempdir().unwrap();
        let subject = Self { format, capabilities, array, rows, folder };
        format.write(&subject.array, &subject.path());
        subject
    }

    /// The beginning of failure messages: the array and the format.
    pub(crate) fn what(&self) -> String {
        format!("\"{}\" in {}", self.array.name, self.format.name())
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join(format!("{}{}", self.array.name, self.format.suffix()))
    }

    pub(crate) fn location(&self) -> String {
        self.path().to_str().unwrap().to_owned()
    }

    /// A session with the format installed.
    pub(crate) fn session(&self, partitions: usize, batch_size: usize) -> SessionContext {
        let ctx = reducing(partitions, batch_size);
        self.format.install(&ctx);
        ctx
    }

    /// A session with the array as the table `t`.
    pub(crate) async fn table(&self, partitions: usize, batch_size: usize) -> SessionContext {
        let ctx = self.session(partitions, batch_size);
        let opened = doors::register(&ctx, "t", vec![self.location()]).await;
        opened.unwrap_or_else(|error| panic!("{}: {error}", self.what()));
        ctx
    }

    /// A session with the rows in memory as the table `t`, and as `chunks` with the number of their chunk.
    pub(crate) fn in_memory(&self) -> SessionContext {
        let ctx = session(1, 8192);
        let mut fields: Vec<Field> =
            self.rows.schema().fields().iter().map(|it| it.as_ref().clone()).collect();
        let chunk = Arc::new(self.array.chunk_of_rows()) as ArrayRef;
        fields.push(Field::new("chunk", chunk.data_type().clone(), false));
        let columns = [self.rows.columns(), &[chunk]].concat();
        let numbered = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap();
        for (name, rows) in [("t", self.rows.clone()), ("chunks", numbered)] {
            let table = MemTable::try_new(rows.schema(), vec![vec![rows]]).unwrap();
            ctx.register_table(name, Arc::new(table)).unwrap();
        }
        ctx
    }

    /// The names of all columns, with commas between them.
    pub(crate) fn columns(&self) -> String {
        let schema = self.rows.schema();
        let names: Vec<_> = schema.fields().iter().map(|it| format!("\"{}\"", it.name())).collect();
        names.join(", ")
    }

    /// The names of the dimensions, each followed by `order`, with commas between them.
    pub(crate) fn dimensions(&self, order: &str) -> String {
        let names = self.array.dimensions();
        names.iter().map(|it| format!("\"{it}\"{order}")).collect::<Vec<_>>().join(", ")
    }

    /// Compares all rows of a table or table expression with the rows in memory.
    pub(crate) async fn assert_rows(&self, ctx: &SessionContext, table: &str) {
        let sql = |table| format!("SELECT {} FROM {table}", self.columns());
        let mut found = rows_from(ctx, &sql(table)).await;
        let mut expected = rows_from(&self.in_memory(), &sql("t")).await;
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{}: {table}", self.what());
    }
}

/// The plan of a query.
pub(crate) async fn plan(ctx: &SessionContext, sql: &str) -> Arc<dyn ExecutionPlan> {
    let plan = async { ctx.sql(sql).await?.create_physical_plan().await };
    plan.await.unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// The output of `EXPLAIN`.
pub(crate) async fn explain(ctx: &SessionContext, sql: &str) -> String {
    displayable(plan(ctx, sql).await.as_ref()).indent(false).to_string()
}

/// Runs a query, and sums metrics of these names over all nodes of its plan.
pub(crate) async fn metrics<const N: usize>(
    ctx: &SessionContext,
    sql: &str,
    names: [&str; N],
) -> [usize; N] {
    let plan = plan(ctx, sql).await;
    collect(Arc::clone(&plan), ctx.task_ctx())
        .await
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
    names.map(|name| sum(&plan, name))
}

fn sum(plan: &Arc<dyn ExecutionPlan>, name: &str) -> usize {
    use datafusion::physical_plan::metrics::MetricValue;
    let metrics = plan.metrics().unwrap_or_default();
    let own = metrics.iter().filter(|metric| metric.value().name() == name).map(|metric| {
        match metric.value() {
            MetricValue::PruningMetrics { pruning_metrics, .. } => pruning_metrics.pruned(),
            other => other.as_usize(),
        }
    });
    let below = plan.children().into_iter().map(|child| sum(child, name));
    own.sum::<usize>() + below.sum::<usize>()
}
