//! `Query`: a plan that runs as often as its rows are asked for.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::dataframe::DataFrame;
use datafusion::error::Result;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use gridfusion_cli::embed::{EmbeddedSession, Figures, LabelsOrder, column_facts, source_labels};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::to_python;
use crate::picture::Picture;
use crate::rows::{Rows, fields};
use crate::runtime::{wait, wait_for};
use crate::stream::{RowStream, open};

/// The order of labels, whether the column is a key of the topmost `GROUP BY`, and its attributes.
type Facts = (Option<&'static str>, bool, BTreeMap<String, String>);

/// The figures of the last run that ended.
pub(crate) type LastRun = Arc<Mutex<Option<Figures>>>;

/// A query of a session.
#[pyclass(frozen, module = "gridfusion._internal")]
pub(crate) struct Query {
    session: Arc<EmbeddedSession>,
    plan: LogicalPlan,
    schema: SchemaRef,
    last_run: LastRun,
}

impl Query {
    pub(crate) fn new(session: Arc<EmbeddedSession>, plan: LogicalPlan, schema: SchemaRef) -> Self {
        Self { session, plan, schema, last_run: LastRun::default() }
    }

    pub(crate) fn plan(&self) -> &LogicalPlan {
        &self.plan
    }

    /// Waits for what `ask` makes of the query.
    fn wait<T: Send + 'static, F>(
        &self,
        py: Python<'_>,
        ask: impl FnOnce(Arc<EmbeddedSession>, LogicalPlan) -> F + Send + 'static,
    ) -> PyResult<T>
    where
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let (session, plan) = (Arc::clone(&self.session), self.plan.clone());
        wait(py, async move {
            let outcome = Box::pin(ask(Arc::clone(&session), plan)).await;
            outcome.map_err(|error| session.explain(error))
        })
    }
}

#[pymethods]
impl Query {
    /// The name, the type and the nullability of each column.
    fn fields(&self) -> Vec<(String, String, bool)> {
        fields(&self.schema)
    }

    /// The meaning of each column.
    fn facts(&self) -> Vec<Facts> {
        let order = |order| match order {
            LabelsOrder::Ascending => "ascending",
            LabelsOrder::Descending => "descending",
            LabelsOrder::Other => "other",
        };
        let facts = column_facts(&self.plan).into_iter();
        facts.map(|it| (it.dimension.map(order), it.is_key, it.attributes)).collect()
    }

    /// All labels of the dimension that a column shows, in the order of the array.
    fn labels(&self, py: Python<'_>, column: usize) -> PyResult<Option<Rows>> {
        let labels = source_labels(&self.plan, column).and_then(|labels| {
            let Some(labels) = labels else { return Ok(None) };
            let field = Field::new("labels", labels.data_type().clone(), true);
            let schema = Arc::new(Schema::new(vec![field]));
            let batch = RecordBatch::try_new(Arc::clone(&schema), vec![labels])?;
            Ok(Some(Rows::new(schema, vec![batch])))
        });
        labels.map_err(|error| to_python(py, &error))
    }

    /// The first `most` rows.
    fn limit(&self, py: Python<'_>, most: usize) -> PyResult<Self> {
        let builder = LogicalPlanBuilder::from(self.plan.clone());
        let plan = builder.limit(0, Some(most)).and_then(LogicalPlanBuilder::build);
        let plan = plan.map_err(|error| to_python(py, &error))?;
        Ok(Self::new(Arc::clone(&self.session), plan, Arc::clone(&self.schema)))
    }

    /// The number of rows.
    fn count(&self, py: Python<'_>) -> PyResult<usize> {
        self.wait(py, |session, plan| async move {
            DataFrame::new(session.ctx().state(), plan).count().await
        })
    }

    /// The plan, and with `analyze` what each operator did.
    fn explain(&self, py: Python<'_>, analyze: bool, verbose: bool) -> PyResult<Rows> {
        let (schema, batches) = self.wait(py, move |session, plan| async move {
            let frame = DataFrame::new(session.ctx().state(), plan).explain(verbose, analyze)?;
            let schema = Arc::clone(frame.schema().inner());
            Ok((schema, frame.collect().await?))
        })?;
        Ok(Rows::new(schema, batches))
    }

    /// Runs the query.
    fn collect(&self, py: Python<'_>) -> PyResult<Rows> {
        let (batches, figures) =
            self.wait(py, |session, plan| async move { session.collect(&plan).await })?;
        *self.last_run.lock().unwrap_or_else(PoisonError::into_inner) = Some(figures);
        // The rows know best, for instance, which columns have no NULL.
        let schema = batches.first().map_or_else(|| Arc::clone(&self.schema), |it| it.schema());
        Ok(Rows::new(schema, batches))
    }

    /// Begins to run the query, and returns its rows batch by batch.
    fn stream(&self, py: Python<'_>) -> PyResult<RowStream> {
        let (stream, run) =
            self.wait(py, |session, plan| async move { session.execute(&plan).await })?;
        Ok(RowStream::new(open(py, &self.session, stream, run, &self.last_run)?))
    }

    /// The time and the counts of the last run that ended; `None` if there is none.
    fn timing<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let last_run = *self.last_run.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(figures) = last_run else { return Ok(None) };
        let timing = PyDict::new(py);
        timing.set_item("seconds", figures.seconds)?;
        timing.set_item("planning_seconds", figures.planning_seconds)?;
        for (name, count) in figures.counts {
            timing.set_item(name, count)?;
        }
        Ok(Some(timing))
    }

    /// Runs the query and draws its rows.
    fn plot(&self, py: Python<'_>, options: Vec<(String, String)>) -> PyResult<Picture> {
        let drawing =
            self.wait(
                py,
                |session, plan| async move { Box::pin(session.plot(&plan, &options)).await },
            )?;
        Ok(Picture(drawing))
    }

    /// Writes the rows to a file, and returns their number. `sql` is a `COPY` of any other rows to that file.
    fn copy(&self, py: Python<'_>, sql: String) -> PyResult<Rows> {
        let (session, plan) = (Arc::clone(&self.session), self.plan.clone());
        let batches = wait_for(py, |interrupted| async move {
            let written = Box::pin(session.copy(&plan, &sql, interrupted.wait())).await;
            written.map_err(|error| session.explain(error))
        })?;
        let schema = batches.first().map_or_else(|| Arc::clone(&self.schema), |it| it.schema());
        Ok(Rows::new(schema, batches))
    }

    /// No rows, with the columns of the query.
    fn empty(&self) -> Rows {
        Rows::new(Arc::clone(&self.schema), vec![])
    }
}
