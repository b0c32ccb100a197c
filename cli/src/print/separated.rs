//! Comma-separated and tab-separated values.

use std::sync::Arc;

use datafusion::arrow::csv::WriterBuilder;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::error::Result;
use gridfusion::exec::CsvFormatter;

use super::texts::TextFormat;

/// Prints a header with the column names, if it is wanted, then one line per row.
pub(super) struct Separated {
    formatter: CsvFormatter,
    has_header: bool,
}

impl Separated {
    pub(super) fn new(delimiter: u8, has_header: bool) -> Self {
        let formatter = CsvFormatter::new(WriterBuilder::new().with_delimiter(delimiter));
        Self { formatter, has_header }
    }
}

impl TextFormat for Separated {
    fn rows(&self, rows: &RecordBatch, is_first: bool, out: &mut Vec<u8>) -> Result<()> {
        Ok(self.formatter.format(rows, self.has_header && is_first, out)?)
    }

    fn end(&self, schema: &SchemaRef, is_empty: bool, out: &mut Vec<u8>) -> Result<()> {
        match is_empty {
            true => self.rows(&RecordBatch::new_empty(Arc::clone(schema)), true, out),
            false => Ok(()),
        }
    }
}
