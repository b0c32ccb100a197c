//! JSON, as one array or as one object per line.

use std::io::Write;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::json::writer::{JsonFormat, LineDelimited, WriterBuilder};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::error::Result;
use gridfusion::exec::JsonFloats;

use super::RowPrinter;

/// Prints rows as objects with all keys. A NULL is `null`, because a missing key would remove the column
/// from that object.
pub(super) struct Json {
    /// Whether rows are elements of one array, instead of lines.
    is_array: bool,
    is_begun: bool,
}

impl Json {
    pub(super) fn array() -> Self {
        Self { is_array: true, is_begun: false }
    }

    pub(super) fn lines() -> Self {
        Self { is_array: false, is_begun: false }
    }
}

impl RowPrinter for Json {
    fn write(&mut self, out: &mut dyn Write, batch: RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        if !self.is_array {
            return write::<LineDelimited>(out, &batch);
        }
        out.write_all(if self.is_begun { b"," } else { b"[" })?;
        self.is_begun = true;
        write::<Elements>(out, &batch)
    }

    fn finish(self: Box<Self>, out: &mut dyn Write, _: SchemaRef) -> Result<()> {
        if self.is_array {
            out.write_all(if self.is_begun { b"]\n" } else { b"[]\n" })?;
        }
        Ok(())
    }
}

fn write<F: JsonFormat>(out: &mut dyn Write, batch: &RecordBatch) -> Result<()> {
    let builder = WriterBuilder::new().with_explicit_nulls(true);
    let builder = builder.with_encoder_factory(Arc::new(JsonFloats));
    let mut writer = builder.build::<_, F>(out);
    writer.write(batch)?;
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
