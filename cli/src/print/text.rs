//! Texts of cells, and the formats that print them as they arrive: Markdown, and a line for each value.

use std::io::Write;

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::util::display::ArrayFormatter;
use datafusion::config::FormatOptions;
use datafusion::error::Result;

use super::RowPrinter;
use crate::printable::printable_lines;

/// Returns the texts of all cells of each row, made safe for a terminal.
pub(super) fn texts(
    batch: &RecordBatch,
    values: &FormatOptions,
) -> Result<impl Iterator<Item = Vec<String>>> {
    let options = values.try_into()?;
    let cells = |column| ArrayFormatter::try_new(column, &options);
    let cells = batch.columns().iter().map(|column| cells(column.as_ref()));
    let cells = cells.collect::<std::result::Result<Vec<_>, _>>()?;
    let text = |row: usize| {
        cells
            .iter()
            .map(|cell| printable_lines(&cell.value(row).to_string()).into_owned())
            .collect()
    };
    Ok((0..batch.num_rows()).map(text).collect::<Vec<_>>().into_iter())
}

/// Returns the names of columns, made safe for a terminal.
pub(super) fn names(schema: &Schema) -> Vec<String> {
    schema.fields().iter().map(|it| printable_lines(it.name()).into_owned()).collect()
}

/// Prints a Markdown table. Columns are not aligned, so that rows can be printed as they arrive.
///
/// ```text
///   | station | mean |
///   |---|---:|
///   | Oslo | 6.1 |
/// ```
pub(super) struct Markdown<'a> {
    pub(super) values: &'a FormatOptions,
    pub(super) has_header: bool,
}

impl Markdown<'_> {
    fn header(&mut self, out: &mut dyn Write, schema: &Schema) -> Result<()> {
        if std::mem::replace(&mut self.has_header, true) {
            return Ok(());
        }
        row(out, names(schema).into_iter())?;
        let marks = schema.fields().iter().map(|it| match it.data_type().is_numeric() {
            true => "---:|",
            false => "---|",
        });
        Ok(writeln!(out, "|{}", marks.collect::<String>())?)
    }
}

impl RowPrinter for Markdown<'_> {
    fn write(&mut self, out: &mut dyn Write, batch: RecordBatch) -> Result<()> {
        self.header(out, batch.schema_ref())?;
        texts(&batch, self.values)?.try_for_each(|cells| row(out, cells.into_iter()))
    }

    fn finish(mut self: Box<Self>, out: &mut dyn Write, schema: SchemaRef) -> Result<()> {
        self.header(out, &schema)
    }
}

/// Prints a row of a Markdown table, in which `|` would begin a cell, and a line break would end the row.
fn row(out: &mut dyn Write, cells: impl Iterator<Item = String>) -> Result<()> {
    let cell = |it: String| it.replace('\\', "\\\\").replace('|', "\\|").replace('\n', "<br>");
    let cells: Vec<String> = cells.map(cell).collect();
    Ok(writeln!(out, "| {} |", cells.join(" | "))?)
}

/// Prints each value on a line of its own, and an empty line between rows.
///
/// ```text
///   station = Oslo
///      mean = 6.1
/// ```
pub(super) struct Lines<'a> {
    pub(super) values: &'a FormatOptions,
    pub(super) is_begun: bool,
}

impl RowPrinter for Lines<'_> {
    fn write(&mut self, out: &mut dyn Write, batch: RecordBatch) -> Result<()> {
        let names = names(batch.schema_ref());
        let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        for cells in texts(&batch, self.values)? {
            if std::mem::replace(&mut self.is_begun, true) {
                writeln!(out)?;
            }
            for (name, cell) in names.iter().zip(cells) {
                writeln!(out, "{name:>width$} = {cell}")?;
            }
        }
        Ok(())
    }

    fn finish(self: Box<Self>, _: &mut dyn Write, _: SchemaRef) -> Result<()> {
        Ok(())
    }
}
