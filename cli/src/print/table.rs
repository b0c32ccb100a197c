//! Tables with aligned columns.

use std::borrow::Cow;
use std::io::Write;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::util::display::ArrayFormatter;
use datafusion::arrow::util::display::FormatOptions as ArrowFormatOptions;
use datafusion::arrow::util::pretty::{pretty_format_batches, pretty_format_batches_with_options};
use datafusion::config::FormatOptions;
use datafusion::error::Result;

use super::RowPrinter;
use super::max_rows::MaxRows;
use crate::printable::printable_lines;

/// Number of lines with dots that stand for the rows not shown.
const DOTS: usize = 3;

/// The lines of a box: left, right, top and bottom, then those below the header, and between columns.
const BOX: &str = "││──├─┼┤│    ┬┴┌┐└┘";

/// Prints the first `maxrows` rows, and dots if there are more:
///
/// ```text
/// | 3  |        │ 3  │
/// | .  |        │ .  │
/// +----+        └────┘
/// ```
pub(super) struct Table<'a> {
    values: &'a FormatOptions,
    maxrows: MaxRows,
    batches: Vec<RecordBatch>,
    is_box: bool,
}

impl<'a> Table<'a> {
    pub(super) fn new(values: &'a FormatOptions, maxrows: MaxRows, is_box: bool) -> Self {
        Self { values, maxrows, batches: vec![], is_box }
    }
}

impl RowPrinter for Table<'_> {
    fn write(&mut self, _: &mut dyn Write, batch: RecordBatch) -> Result<()> {
        self.batches.push(batch);
        Ok(())
    }

    fn finish(self: Box<Self>, out: &mut dyn Write, schema: SchemaRef) -> Result<()> {
        let most = self.maxrows.count();
        if most == 0 {
            return Ok(());
        }
        let rows: usize = self.batches.iter().map(RecordBatch::num_rows).sum();
        let mut shown = first_rows(&self.batches, most);
        if shown.is_empty() {
            shown.push(RecordBatch::new_empty(schema));
        }
        let table = drawn(&shown, self.values, self.is_box)?;
        if rows <= most {
            return Ok(writeln!(out, "{table}")?);
        }
        // The last line is the border below the rows.
        let (body, border) = table.rsplit_once('\n').unwrap_or(("", &table));
        let side = if self.is_box { '│' } else { '|' };
        let blanks = " ".repeat(border.chars().count().saturating_sub(4));
        let dots = format!("{side} .{blanks}{side}\n");
        Ok(writeln!(out, "{body}\n{}{border}", dots.repeat(DOTS))?)
    }
}

fn drawn(shown: &[RecordBatch], values: &FormatOptions, is_box: bool) -> Result<String> {
    let options: ArrowFormatOptions = values.try_into()?;
    // Columns have the widths of what is shown, so characters are replaced before the table is made.
    let printable = || {
        let cells = shown.iter().map(|batch| printable_cells(batch, &options));
        cells.collect::<Result<Vec<_>>>()
    };
    if is_box {
        return Ok(boxed(&printable()?));
    }
    let table = pretty_format_batches_with_options(shown, &options)?.to_string();
    Ok(match printable_lines(&table) {
        Cow::Owned(_) => pretty_format_batches(&printable()?)?.to_string(),
        Cow::Borrowed(_) => table,
    })
}

/// Draws cells of text in a box.
fn boxed(batches: &[RecordBatch]) -> String {
    let mut table = comfy_table::Table::new();
    table.load_preset(BOX);
    for batch in batches {
        table.set_header(batch.schema_ref().fields().iter().map(|it| it.name()));
        let columns: Vec<&StringArray> = batch.columns().iter().map(|it| it.as_string()).collect();
        for row in 0..batch.num_rows() {
            table.add_row(columns.iter().map(|column| column.value(row)));
        }
    }
    table.to_string()
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
