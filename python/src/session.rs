//! `Session`: runs SQL, and holds the tables that Python gives it.

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::TableReference;
use datafusion::dataframe::DataFrame;
use datafusion::datasource::MemTable;
use datafusion::error::{DataFusionError, Result};
use gridfusion::GridTable;
use gridfusion_cli::embed::{EmbeddedSession, Outcome};
use pyo3::prelude::*;

use crate::arrays::{GivenDataset, GivenDimension, GivenVariable};
use crate::arrow::read;
use crate::errors::to_python;
use crate::parameters::{Given, param_values};
use crate::provider::TableFunction;
use crate::query::Query;
use crate::rows::Rows;
use crate::runtime::{runtime, wait, wait_for};
use crate::warnings;

/// A session of the program.
#[pyclass(frozen, module = "gridfusion._internal")]
pub(crate) struct Session(Arc<EmbeddedSession>);

#[pymethods]
impl Session {
    #[new]
    fn new(py: Python<'_>, options: Vec<(String, String)>) -> PyResult<Self> {
        // Not before: the program has its own log.
        warnings::install();
        let session = wait(py, async move { EmbeddedSession::try_new(&options).await })?;
        Ok(Self(Arc::new(session)))
    }

    /// Runs statements. Returns a `Query` if the last one is a query, which has not run; `Rows` if it has rows; else `None`. Values are
    /// for the placeholders of a single statement, with a name each if `is_named`.
    #[pyo3(signature = (sql, values=None, is_named=false))]
    fn run<'py>(
        &self,
        py: Python<'py>,
        sql: String,
        values: Option<Vec<Given<'py>>>,
        is_named: bool,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let session = Arc::clone(&self.0);
        let values = values.map(|given| param_values(py, given, is_named)).transpose()?;
        let outcome = wait_for(py, |interrupted| async move {
            session.run_with(&sql, values.as_ref(), interrupted.wait()).await
        })?;
        match outcome {
            Outcome::Query(plan, schema) => {
                let query = Query::new(Arc::clone(&self.0), *plan, schema);
                Ok(Some(Bound::new(py, query)?.into_any()))
            }
            Outcome::Rows(schema, batches) => {
                Ok(Some(Bound::new(py, Rows::new(schema, batches))?.into_any()))
            }
            Outcome::Nothing => Ok(None),
        }
    }

    /// Sets a setting.
    fn set(&self, py: Python<'_>, name: String, value: String) -> PyResult<()> {
        let session = Arc::clone(&self.0);
        wait(py, async move { session.set(&name, &value).await })
    }

    /// The names of the table functions.
    fn table_functions(&self) -> Vec<String> {
        self.0.table_functions()
    }

    /// A table function, for a session of the package `datafusion`.
    fn table_function(&self, name: String) -> TableFunction {
        TableFunction::new(&self.0, name)
    }

    /// Makes a table of the rows of an object with `__arrow_c_stream__`, and replaces a table of the same name.
    fn register(&self, py: Python<'_>, name: &str, stream: &Bound<'_, PyAny>) -> PyResult<()> {
        runtime(py)?;
        let (schema, batches) = read(stream)?;
        let table = MemTable::try_new(schema, vec![batches]);
        let table = table.map_err(|error| to_python(py, &error))?;
        self.replace(py, name, Arc::new(table))
    }

    /// Makes a table of the arrays of a dataset, and replaces a table of the same name. `chunks` are lengths along each dimension.
    fn register_arrays(
        &self,
        py: Python<'_>,
        name: &str,
        dims: Vec<GivenDimension<'_>>,
        variables: Vec<GivenVariable<'_>>,
        chunks: Vec<Vec<u64>>,
    ) -> PyResult<()> {
        runtime(py)?;
        let given = GivenDataset::try_new(dims, variables)?;
        let array = py.detach(|| given.into_array(name, chunks));
        let array = array.map_err(|error| to_python(py, &DataFusionError::from(error)))?;
        self.replace(py, name, Arc::new(GridTable::new(Arc::new(array))))
    }

    /// Makes a table of rows, and replaces a table of the same name.
    fn register_rows(&self, py: Python<'_>, name: &str, rows: &Bound<'_, Rows>) -> PyResult<()> {
        runtime(py)?;
        let rows = rows.get();
        let table = MemTable::try_new(Arc::clone(rows.schema()), vec![rows.batches().to_vec()]);
        let table = table.map_err(|error| to_python(py, &error))?;
        self.replace(py, name, Arc::new(table))
    }

    /// Makes a view of a query, and replaces a table of the same name.
    fn create_view(&self, py: Python<'_>, name: &str, query: &Bound<'_, Query>) -> PyResult<()> {
        runtime(py)?;
        let frame = DataFrame::new(self.0.ctx().state(), query.get().plan().clone());
        self.replace(py, name, frame.into_view())
    }

    /// Removes a table that `register` or `create_view` made.
    fn unregister(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        let removed = self.0.ctx().deregister_table(TableReference::bare(name));
        removed.map(|it| it.is_some()).map_err(|error| to_python(py, &error))
    }

    /// Checks the files or arrays at a path. Returns the JSON document of the program.
    fn verify(
        &self,
        py: Python<'_>,
        path: String,
        options: Vec<(String, String)>,
        is_deep: bool,
    ) -> PyResult<String> {
        let session = Arc::clone(&self.0);
        wait(py, async move {
            let verified = session.verify(&path, &options, is_deep).await;
            verified.map_err(|error| session.explain(error))
        })
    }

    /// Returns rows as the table that the program prints, with at most `most` rows.
    fn text(&self, py: Python<'_>, rows: &Bound<'_, Rows>, most: usize) -> PyResult<String> {
        let rows = rows.get();
        let text = self.0.table(rows.schema(), rows.batches(), most);
        text.map_err(|error| to_python(py, &error))
    }
}

impl Session {
    fn replace(&self, py: Python<'_>, name: &str, table: Arc<dyn TableProvider>) -> PyResult<()> {
        let replaced = || -> Result<()> {
            let ctx = self.0.ctx();
            ctx.deregister_table(TableReference::bare(name))?;
            ctx.register_table(TableReference::bare(name), table)?;
            Ok(())
        };
        replaced().map_err(|error| to_python(py, &error))
    }
}
