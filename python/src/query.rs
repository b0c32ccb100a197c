//! `Query`: a plan that runs as often as its rows are asked for.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::dataframe::DataFrame;
use datafusion::error::Result;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use gridfusion_cli::embed::{
    EmbeddedSession, Figures, LabelsOrder, Watch, column_facts, source_labels,
};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use crate::arrow::{of_arrow, schema_capsule, stream_capsule};
use crate::errors::to_python;
use crate::picture::Picture;
use crate::provider::table_capsule;
use crate::rows::{Rows, fields};
use crate::runtime::{wait, wait_for, wait_with};
use crate::stream::{Feed, RowStream, open};

/// The order of labels, whether the column is a key of the topmost `GROUP BY`, and its attributes.
type Facts = (Option<&'static str>, bool, BTreeMap<String, String>);

/// The column of each axis, and all columns.
type Cells = (Vec<usize>, Vec<(usize, Rows)>);

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

    /// As [`Self::wait`]. Calls `progress` with the counts of the watch that the future sets.
    fn watched<T: Send + 'static, F>(
        &self,
        py: Python<'_>,
        progress: Option<&Bound<'_, PyAny>>,
        ask: impl FnOnce(Arc<EmbeddedSession>, LogicalPlan, Box<dyn FnOnce(Watch) + Send>) -> F
        + Send
        + 'static,
    ) -> PyResult<T>
    where
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let (session, plan) = (Arc::clone(&self.session), self.plan.clone());
        let watch = Arc::new(OnceLock::<Watch>::new());
        let running = Arc::clone(&watch);
        let asked = async move {
            let begun = Box::new(move |watch| drop(running.set(watch)));
            let outcome = Box::pin(ask(Arc::clone(&session), plan, begun)).await;
            outcome.map_err(|error| session.explain(error))
        };
        let tick = || match (progress, watch.get()) {
            (Some(progress), Some(watch)) => progress.call1(watch.progress()).map(drop),
            _ => Ok(()),
        };
        wait_with(py, asked, &tick)
    }

    /// Begins to run the query.
    fn feed(&self, py: Python<'_>) -> PyResult<Feed> {
        let (stream, run) =
            self.wait(py, |session, plan| async move { session.execute(&plan).await })?;
        open(py, &self.session, stream, run, &self.last_run)
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

    /// Runs the query. Meanwhile, calls `progress` with the chunks that are done, all chunks or 0, and the bytes that were read.
    #[pyo3(signature = (progress=None))]
    fn collect(&self, py: Python<'_>, progress: Option<&Bound<'_, PyAny>>) -> PyResult<Rows> {
        let (batches, figures) = self.watched(py, progress, |session, plan, begun| async move {
            session.collect(&plan, begun).await
        })?;
        *self.last_run.lock().unwrap_or_else(PoisonError::into_inner) = Some(figures);
        // The rows know best, for instance, which columns have no NULL.
        let schema = batches.first().map_or_else(|| Arc::clone(&self.schema), |it| it.schema());
        Ok(Rows::new(schema, batches))
    }

    /// Reads the cells of a query that shows a box of an array: the column of each axis, and all columns without rows. `None` for other
    /// queries. `dims` are the columns that tell the place of a cell. NULL is NaN in floats, unless `keeps_nulls`. `progress` is as in
    /// `collect`.
    #[pyo3(signature = (dims, keeps_nulls=false, progress=None))]
    fn cells(
        &self,
        py: Python<'_>,
        dims: Vec<usize>,
        keeps_nulls: bool,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<Cells>> {
        let found = self.watched(py, progress, move |session, plan, begun| async move {
            session.cells(&plan, &dims, keeps_nulls, begun).await
        })?;
        let Some((cells, figures)) = found else { return Ok(None) };
        *self.last_run.lock().unwrap_or_else(PoisonError::into_inner) = Some(figures);
        let axes = cells.labels.iter().map(|it| it.0).collect();
        let columns = cells.labels.into_iter().chain(cells.variables).map(|(at, values)| {
            let field = Field::new("values", values.data_type().clone(), true);
            let schema = Arc::new(Schema::new(vec![field]));
            let batch = RecordBatch::try_new(Arc::clone(&schema), vec![values]);
            let batch = batch.map_err(|error| of_arrow(py, error))?;
            Ok((at, Rows::new(schema, vec![batch])))
        });
        Ok(Some((axes, columns.collect::<PyResult<_>>()?)))
    }

    /// Begins to run the query, and returns its rows batch by batch.
    fn stream(&self, py: Python<'_>) -> PyResult<RowStream> {
        self.feed(py).map(RowStream::new)
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

    /// The query as a table, for a session of the package `datafusion`.
    fn __datafusion_table_provider__<'py>(
        &self,
        session: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        table_capsule(&self.session, &self.plan, &self.schema, session)
    }

    /// The columns, for any library that takes schemas of Arrow.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema)
    }

    /// Begins to run the query for a library that takes streams of Arrow.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let feed = self.feed(py)?;
        let schema = Arc::clone(feed.schema());
        stream_capsule(py, &schema, feed, requested_schema)
    }
}
