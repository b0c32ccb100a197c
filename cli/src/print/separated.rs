//! Comma-separated and tab-separated values.

use std::io::Write;

use datafusion::arrow::csv::WriterBuilder;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::error::Result;

use super::RowPrinter;

/// Prints a header with the column names, unless the result has one already, then one line per row.
pub(super) struct SeparatedPrinter {
    pub(super) delimiter: u8,
    pub(super) has_header: bool,
}

impl RowPrinter for SeparatedPrinter {
    fn write(&mut self, out: &mut dyn Write, batch: RecordBatch) -> Result<()> {
        let builder = WriterBuilder::new().with_delimiter(self.delimiter);
        let mut writer = builder.with_header(!self.has_header).build(out);
        self.has_header = true;
        Ok(writer.write(&batch)?)
    }

    fn finish(mut self: Box<Self>, out: &mut dyn Write, schema: SchemaRef) -> Result<()> {
        match self.has_header {
            true => Ok(()),
            // Without any batch, the header is still missing.
            false => self.write(out, RecordBatch::new_empty(schema)),
        }
    }
}
