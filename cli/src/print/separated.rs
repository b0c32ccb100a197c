//! CSV and TSV.

use std::io::Write;

use datafusion::arrow::csv::WriterBuilder;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::error::Result;

/// Prints rows a line each, below the names of the columns.
pub(super) struct Separated {
    delimiter: u8,
    has_header: bool,
}

impl Separated {
    pub(super) fn new(delimiter: u8) -> Self {
        Self { delimiter, has_header: false }
    }

    pub(super) fn write(&mut self, out: &mut dyn Write, batch: &RecordBatch) -> Result<()> {
        let builder = WriterBuilder::new().with_delimiter(self.delimiter);
        let mut writer = builder.with_header(!self.has_header).build(out);
        self.has_header = true;
        Ok(writer.write(batch)?)
    }

    pub(super) fn finish(mut self, out: &mut dyn Write, schema: SchemaRef) -> Result<()> {
        match self.has_header {
            true => Ok(()),
            // No batch came: the names are still to be printed.
            false => self.write(out, &RecordBatch::new_empty(schema)),
        }
    }
}
