//! Rows of Arrow that cross to other libraries and back by the C stream interface, without a copy.
//!
//! ```text
//!   Rows, a running query ──▶ FFI_ArrowArrayStream ──▶ capsule "arrow_array_stream" ──▶ pyarrow, polars, DuckDB, …
//!   tables of Python      ◀── ArrowArrayStreamReader ◀── capsule, whose name is checked (foreign)
//! ```

use std::sync::Arc;

use datafusion::arrow::array::RecordBatchIterator;
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::arrow::error::{ArrowError, Result};
use datafusion::arrow::ffi::FFI_ArrowSchema;
use datafusion::arrow::ffi_stream::FFI_ArrowArrayStream;
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchReader};
use datafusion::error::DataFusionError;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::errors::{exception, to_python};
use crate::foreign::{schema_of, stream_of};

/// The most rows of a batch. Libraries hand over a whole column in one piece, and operators work on a batch at a time.
const ROWS: usize = 8192;

/// Returns a capsule with the schema.
pub(crate) fn schema_capsule<'py>(
    py: Python<'py>,
    schema: &Schema,
) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(schema).map_err(|error| of_arrow(py, error))?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}

/// Returns a capsule with the batches, in the types of `requested` if it has the same columns.
///
/// # Errors
/// If `requested` is no schema.
pub(crate) fn stream_capsule<'py>(
    py: Python<'py>,
    schema: &SchemaRef,
    batches: impl Iterator<Item = Result<RecordBatch>> + Send + 'static,
    requested: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let wanted = match requested {
        Some(capsule) => Some(schema_of(&capsule_of(capsule, "a schema")?)?),
        None => None,
    };
    let wanted = wanted.filter(|it| it != schema.as_ref()).and_then(|it| common(schema, &it));
    let reader: Box<dyn RecordBatchReader + Send> = match wanted {
        Some(wanted) => {
            let to = Arc::clone(&wanted);
            let batches = batches.map(move |batch| batch.and_then(|it| in_types(&it, &to)));
            Box::new(RecordBatchIterator::new(batches, wanted))
        }
        None => Box::new(RecordBatchIterator::new(batches, Arc::clone(schema))),
    };
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), c"arrow_array_stream")
}

/// Returns the schema with the types of `wanted`; `None` if that has other columns. Producers may return their own types then.
fn common(schema: &SchemaRef, wanted: &Schema) -> Option<SchemaRef> {
    let (own, others) = (schema.fields(), wanted.fields());
    let is_same =
        own.len() == others.len() && own.iter().zip(others).all(|(a, b)| a.name() == b.name());
    let typed = own
        .iter()
        .zip(others)
        .map(|(own, other)| own.as_ref().clone().with_data_type(other.data_type().clone()));
    is_same.then(|| {
        let fields: Vec<_> = typed.collect();
        Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
    })
}

/// Returns the rows in other types.
///
/// # Errors
/// If a value does not fit: it must not become NULL.
fn in_types(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let exact = CastOptions { safe: false, ..CastOptions::default() };
    let columns = batch.columns().iter().zip(schema.fields());
    let columns =
        columns.map(|(column, field)| cast_with_options(column, field.data_type(), &exact));
    RecordBatch::try_new(Arc::clone(schema), columns.collect::<Result<_>>()?)
}

/// Returns the rows of an object with `__arrow_c_stream__`. They share its memory.
///
/// # Errors
/// If it has no such method, or its rows cannot be read. A signal ends the reading.
pub(crate) fn read(data: &Bound<'_, PyAny>) -> PyResult<(SchemaRef, Vec<RecordBatch>)> {
    let py = data.py();
    let capsule = capsule_of(&data.call_method0("__arrow_c_stream__")?, "a stream")?;
    let mut reader = stream_of(&capsule)?;
    let schema = reader.schema();
    let mut batches = vec![];
    // The producer may need the interpreter, and takes it itself.
    while let Some(batch) = py.detach(|| reader.next()) {
        let batch = batch.map_err(|error| of_producer(py, error))?;
        let starts = (0..batch.num_rows()).step_by(ROWS);
        batches.extend(starts.map(|at| batch.slice(at, ROWS.min(batch.num_rows() - at))));
        py.check_signals()?;
    }
    Ok((schema, batches))
}

fn capsule_of<'py>(capsule: &Bound<'py, PyAny>, what: &str) -> PyResult<Bound<'py, PyCapsule>> {
    let found = capsule.cast::<PyCapsule>();
    found.cloned().map_err(|_| PyTypeError::new_err(format!("{what} of Arrow is a capsule")))
}

pub(crate) fn of_arrow(py: Python<'_>, error: ArrowError) -> PyErr {
    to_python(py, &DataFusionError::from(error))
}

/// The error of a library that makes rows has its own words.
fn of_producer(py: Python<'_>, error: ArrowError) -> PyErr {
    match error {
        ArrowError::CDataInterface(text) => {
            exception(py, "OperationalError", format!("the rows cannot be read: {text}"))
        }
        error => of_arrow(py, error),
    }
}
