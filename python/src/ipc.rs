//! Rows as bytes of an Arrow stream (IPC), which pyarrow and polars read, and the other way round.

use std::io::Cursor;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::Result;
use datafusion::arrow::ipc::reader::StreamReader;
use datafusion::arrow::ipc::writer::StreamWriter;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::error::DataFusionError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::to_python;

/// The most rows of a batch. Libraries hand over a whole column in one piece, and operators work on a batch at a time.
const ROWS: usize = 8192;

/// Returns the bytes of a stream with these batches.
pub(crate) fn to_bytes<'py>(
    py: Python<'py>,
    schema: &SchemaRef,
    batches: &[RecordBatch],
) -> PyResult<Bound<'py, PyBytes>> {
    let bytes = py.detach(|| write(schema, batches));
    let bytes = bytes.map_err(|error| to_python(py, &DataFusionError::from(error)))?;
    Ok(PyBytes::new(py, &bytes))
}

fn write(schema: &SchemaRef, batches: &[RecordBatch]) -> Result<Vec<u8>> {
    let mut writer = StreamWriter::try_new(vec![], schema)?;
    for batch in batches {
        writer.write(batch)?;
    }
    writer.into_inner()
}

/// Returns the batches of a stream.
pub(crate) fn from_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<(SchemaRef, Vec<RecordBatch>)> {
    py.detach(|| read(bytes)).map_err(|error| to_python(py, &DataFusionError::from(error)))
}

fn read(bytes: &[u8]) -> Result<(SchemaRef, Vec<RecordBatch>)> {
    let reader = StreamReader::try_new(Cursor::new(bytes), None)?;
    let schema = reader.schema();
    let mut batches = vec![];
    for batch in reader {
        let batch = batch?;
        let starts = (0..batch.num_rows()).step_by(ROWS);
        batches.extend(starts.map(|at| batch.slice(at, ROWS.min(batch.num_rows() - at))));
    }
    Ok((schema, batches))
}
