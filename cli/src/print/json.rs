//! JSON, as one array or as one object per line.

use std::io::Write;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::json::writer::{JsonFormat, LineDelimited, WriterBuilder};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::error::Result;
use gridfusion::exec::JsonValues;

use super::texts::TextFormat;

/// Prints rows as objects with all keys. A NULL is `null`, because a missing key would remove the column
/// from that object.
pub(super) enum Json {
    /// Rows are elements of one array.
    Array,
    /// Rows are lines.
    Lines,
}

impl TextFormat for Json {
    fn rows(&self, rows: &RecordBatch, is_first: bool, out: &mut Vec<u8>) -> Result<()> {
        match self {
            Self::Array => {
                out.push(if is_first { b'[' } else { b',' });
                write::<Elements>(rows, out)
            }
            Self::Lines => write::<LineDelimited>(rows, out),
        }
    }

    fn end(&self, _: &SchemaRef, is_empty: bool, out: &mut Vec<u8>) -> Result<()> {
        if matches!(self, Self::Array) {
            out.extend_from_slice(if is_empty { b"[]\n" } else { b"]\n" });
        }
        Ok(())
    }
}

fn write<F: JsonFormat>(rows: &RecordBatch, out: &mut Vec<u8>) -> Result<()> {
    let builder = WriterBuilder::new().with_explicit_nulls(true);
    let builder = builder.with_encoder_factory(Arc::new(JsonValues));
    let mut writer = builder.build::<_, F>(out);
    writer.write(rows)?;
    Ok(writer.finish()?)
}

/// Objects with commas between them. [`Json`] writes the brackets around all batches.
#[derive(Debug, Default)]
struct Elements;

impl JsonFormat for Elements {
    fn start_row<W: Write>(
        &self,
        out: &mut W,
        is_first: bool,
    ) -> Result<(), datafusion::arrow::error::ArrowError> {
        if !is_first {
            out.write_all(b",")?;
        }
        Ok(())
    }
}
