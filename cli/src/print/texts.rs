//! [`Texts`]: the text of a result, which several threads format.
//!
//! ```text
//!   batches ──▶ slices ──▶ a task for each ──▶ texts, in the order of the rows ──▶ output
//! ```

use std::io::Write;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::error::Result;
use datafusion::physical_plan::spill::get_record_batch_memory_size;

use super::dates::Dates;

/// The most rows that one task formats, which are those of DataFusion's batches.
const MOST_ROWS: usize = 8192;
/// The most cells, so that the texts that wait to be written stay small for tables of many columns, too.
const MOST_CELLS: usize = 8 * MOST_ROWS;
/// The most bytes, for tables of lists and of long texts.
const MOST_BYTES: usize = 4 << 20;

/// Returns the most rows of a batch that one task formats.
pub(super) fn most_rows(batch: &RecordBatch) -> usize {
    let of_cells = MOST_CELLS / batch.num_columns().max(1);
    let bytes_per_row = get_record_batch_memory_size(batch) / batch.num_rows().max(1);
    let of_bytes = MOST_BYTES / bytes_per_row.max(1);
    of_cells.min(of_bytes).clamp(1, MOST_ROWS)
}

/// A format whose batches do not depend on each other.
pub(super) trait TextFormat: Send + Sync {
    /// Appends rows, of which there is at least one. `is_first`: no others stand before them.
    fn rows(&self, rows: &RecordBatch, is_first: bool, out: &mut Vec<u8>) -> Result<()>;

    /// Appends the end of a result. `is_empty`: it has no rows.
    fn end(&self, schema: &SchemaRef, is_empty: bool, out: &mut Vec<u8>) -> Result<()>;
}

/// Formats the batches of one result.
pub(super) struct Texts {
    format: Arc<dyn TextFormat>,
    is_empty: bool,
}

/// The text of some rows: of those before an error, if there was one.
pub(super) struct Text {
    text: Vec<u8>,
    outcome: Result<()>,
}

impl Text {
    pub(super) fn write(self, out: &mut dyn Write) -> Result<()> {
        out.write_all(&self.text)?;
        self.outcome
    }
}

impl Texts {
    pub(super) fn new(format: impl TextFormat + 'static) -> Self {
        Self { format: Arc::new(format), is_empty: true }
    }

    /// Returns what formats the next rows, of which there is at least one. It may run later, on another thread.
    pub(super) fn next(
        &mut self,
        rows: RecordBatch,
        dates: Option<&Arc<Dates>>,
    ) -> impl FnOnce() -> Text + Send + use<> {
        let is_first = std::mem::take(&mut self.is_empty);
        let (format, dates) = (Arc::clone(&self.format), dates.map(Arc::clone));
        move || {
            let mut text = vec![];
            let shown = match dates {
                Some(dates) => dates.shown(&rows),
                None => Ok(rows),
            };
            let outcome = shown.and_then(|rows| format.rows(&rows, is_first, &mut text));
            Text { text, outcome }
        }
    }

    /// Writes the end of the result.
    pub(super) fn finish(&self, out: &mut dyn Write, schema: &SchemaRef) -> Result<()> {
        let mut text = vec![];
        let outcome = self.format.end(schema, self.is_empty, &mut text);
        Text { text, outcome }.write(out)
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{ArrayRef, Int8Array, StringArray};

    use super::*;

    #[test]
    fn tasks_have_few_bytes_of_long_texts() {
        let batch = |column: ArrayRef, columns: usize| {
            let columns = (0..columns).map(|at| (at.to_string(), Arc::clone(&column)));
            RecordBatch::try_from_iter(columns).unwrap()
        };
        let numbers: ArrayRef = Arc::new(Int8Array::from(vec![1; 100]));
        assert_eq!(most_rows(&batch(Arc::clone(&numbers), 1)), MOST_ROWS);
        assert_eq!(most_rows(&batch(numbers, 32)), MOST_ROWS / 4);
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(1 << 20); 10]));
        assert!((1..=4).contains(&most_rows(&batch(texts, 1))));
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(8 << 20); 2]));
        assert_eq!(most_rows(&batch(texts, 1)), 1);
    }
}
