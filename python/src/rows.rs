//! `Rows`: the rows of a query that has run, for Arrow, numpy and plain Python.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, new_empty_array};
use datafusion::arrow::compute::concat;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::error::DataFusionError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use crate::arrow::{schema_capsule, stream_capsule};
use crate::buffers::{Column, numpy_column};
use crate::errors::to_python;
use crate::values::python_values;

/// Rows in memory.
#[pyclass(frozen, module = "gridfusion._internal")]
pub(crate) struct Rows {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Rows {
    pub(crate) fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Self { schema, batches }
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub(crate) fn batches(&self) -> &[RecordBatch] {
        &self.batches
    }

    /// Returns a column in one piece.
    fn whole(&self, py: Python<'_>, column: usize) -> PyResult<ArrayRef> {
        let pieces: Vec<&dyn Array> =
            self.batches.iter().map(|batch| batch.column(column).as_ref()).collect();
        match self.batches.as_slice() {
            [] => Ok(new_empty_array(self.schema.field(column).data_type())),
            [only] => Ok(Arc::clone(only.column(column))),
            _ => py
                .detach(|| concat(&pieces))
                .map_err(|error| to_python(py, &DataFusionError::from(error))),
        }
    }
}

#[pymethods]
impl Rows {
    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// The name, the type and the nullability of each column.
    fn fields(&self) -> Vec<(String, String, bool)> {
        fields(&self.schema)
    }

    /// The rows from `start` to `stop` as tuples.
    fn tuples<'py>(
        &self,
        py: Python<'py>,
        start: usize,
        stop: usize,
    ) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let mut tuples = vec![];
        let mut first = 0;
        for batch in &self.batches {
            let end = first + batch.num_rows();
            let range = start.clamp(first, end) - first..stop.clamp(first, end) - first;
            if !range.is_empty() {
                add_tuples(py, batch, range, &mut tuples)?;
            }
            first = end;
        }
        Ok(tuples)
    }

    /// A column for numpy: its values as a buffer, or as a list if numpy has no such type. If one is NULL, another buffer is true
    /// there.
    fn column<'py>(&self, py: Python<'py>, column: usize) -> PyResult<Column<'py>> {
        numpy_column(py, &self.whole(py, column)?)
    }

    /// The columns, for any library that takes schemas of Arrow.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema)
    }

    /// The rows, for any library that takes streams of Arrow. They share their memory with it.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let batches = self.batches.clone().into_iter().map(Ok);
        stream_capsule(py, &self.schema, batches, requested_schema)
    }
}

fn add_tuples<'py>(
    py: Python<'py>,
    batch: &RecordBatch,
    range: Range<usize>,
    tuples: &mut Vec<Bound<'py, PyTuple>>,
) -> PyResult<()> {
    let mut columns = vec![];
    for column in batch.columns() {
        let values = python_values(py, &column.slice(range.start, range.len()))?;
        columns.push(values.into_iter());
    }
    for _ in range {
        let row: Vec<_> = columns.iter_mut().filter_map(Iterator::next).collect();
        tuples.push(PyTuple::new(py, row)?);
    }
    Ok(())
}

/// Returns the name, the type and the nullability of each column.
pub(crate) fn fields(schema: &Schema) -> Vec<(String, String, bool)> {
    let fields = schema.fields().iter();
    fields.map(|it| (it.name().clone(), it.data_type().to_string(), it.is_nullable())).collect()
}
