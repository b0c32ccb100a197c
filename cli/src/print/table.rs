//! Tables with aligned columns.

use std::io::Write;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::util::display::FormatOptions as ArrowFormatOptions;
use datafusion::arrow::util::pretty::pretty_format_batches_with_options;
use datafusion::config::FormatOptions;
use datafusion::error::Result;

use super::max_rows::MaxRows;
use crate::printable::printable_lines;

/// Number of lines with dots that stand for the rows not shown.
const DOTS: usize = 3;

/// Prints the first `maxrows` rows, and dots if there are more:
///
/// ```text
/// | 3  |
/// | .  |
/// +----+
/// ```
pub(super) fn write(
    out: &mut dyn Write,
    schema: SchemaRef,
    batches: &[RecordBatch],
    maxrows: MaxRows,
    values: &FormatOptions,
) -> Result<()> {
    let options: ArrowFormatOptions = values.try_into()?;
    let most = maxrows.count();
    if most == 0 {
        return Ok(());
    }
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    let shown = first_rows(batches, most);
    let table = match shown.is_empty() {
        true => pretty_format_batches_with_options(&[RecordBatch::new_empty(schema)], &options)?,
        false => pretty_format_batches_with_options(&shown, &options)?,
    };
    let table = table.to_string();
    let table = printable_lines(&table);
    if rows <= most {
        return Ok(writeln!(out, "{table}")?);
    }
    // The last line is the border below the rows.
    let (body, border) = table.rsplit_once('\n').unwrap_or(("", &table));
    let dots = format!("| .{}|\n", " ".repeat(border.chars().count().saturating_sub(4)));
    Ok(writeln!(out, "{body}\n{}{border}", dots.repeat(DOTS))?)
}

/// Returns the first `most` rows, as slices of the batches.
fn first_rows(batches: &[RecordBatch], most: usize) -> Vec<RecordBatch> {
    let mut left = most;
    let mut shown = vec![];
    for batch in batches.iter().filter(|batch| batch.num_rows() > 0) {
        let rows = batch.num_rows().min(left);
        if rows == 0 {
            break;
        }
        shown.push(batch.slice(0, rows));
        left -= rows;
    }
    shown
}
