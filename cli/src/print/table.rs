//! Tables with aligned columns.

use std::borrow::Cow;
use std::io::Write;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::util::display::ArrayFormatter;
use datafusion::arrow::util::display::FormatOptions as ArrowFormatOptions;
use datafusion::arrow::util::pretty::{pretty_format_batches, pretty_format_batches_with_options};
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
    let mut shown = first_rows(batches, most);
    if shown.is_empty() {
        shown.push(RecordBatch::new_empty(schema));
    }
    let mut table = pretty_format_batches_with_options(&shown, &options)?.to_string();
    if let Cow::Owned(_) = printable_lines(&table) {
        // Columns have the widths of what is shown, so characters are replaced before the table is made.
        let cells = shown.iter().map(|batch| printable_cells(batch, &options));
        let cells = cells.collect::<Result<Vec<_>>>()?;
        table = pretty_format_batches(&cells)?.to_string();
    }
    if rows <= most {
        return Ok(writeln!(out, "{table}")?);
    }
    // The last line is the border below the rows.
    let (body, border) = table.rsplit_once('\n').unwrap_or(("", &table));
    let dots = format!("| .{}|\n", " ".repeat(border.chars().count().saturating_sub(4)));
    Ok(writeln!(out, "{body}\n{}{border}", dots.repeat(DOTS))?)
}

/// Returns the texts of all cells and names, made safe for a terminal.
fn printable_cells(batch: &RecordBatch, options: &ArrowFormatOptions<'_>) -> Result<RecordBatch> {
    let (mut fields, mut columns) = (vec![], vec![]);
    for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        let cells = ArrayFormatter::try_new(column, options)?;
        let cell = |row| printable_lines(&cells.value(row).to_string()).into_owned();
        let cells: Vec<String> = (0..column.len()).map(cell).collect();
        let mut name = printable_lines(field.name()).into_owned();
        if options.types_info() {
            name = format!("{name}\n{}", field.data_type());
        }
        fields.push(Field::new(name, DataType::Utf8, false));
        columns.push(Arc::new(StringArray::from(cells)) as ArrayRef);
    }
    let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &rows)?)
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
