//! Texts of cells, and the formats that print them as they arrive: Markdown, and a line for each value.

use std::io::Write;

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::util::display::ArrayFormatter;
use datafusion::config::FormatOptions;
use datafusion::error::Result;

use super::texts::TextFormat;
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
pub(super) struct Markdown {
    pub(super) values: FormatOptions,
}

impl TextFormat for Markdown {
    fn rows(&self, rows: &RecordBatch, is_first: bool, out: &mut Vec<u8>) -> Result<()> {
        if is_first {
            header(out, rows.schema_ref())?;
        }
        texts(rows, &self.values)?.try_for_each(|cells| row(out, cells.into_iter()))
    }

    fn end(&self, schema: &SchemaRef, is_empty: bool, out: &mut Vec<u8>) -> Result<()> {
        if is_empty { header(out, schema) } else { Ok(()) }
    }
}

fn header(out: &mut Vec<u8>, schema: &Schema) -> Result<()> {
    row(out, names(schema).into_iter())?;
    let marks = schema.fields().iter().map(|it| match it.data_type().is_numeric() {
        true => "---:|",
        false => "---|",
    });
    Ok(writeln!(out, "|{}", marks.collect::<String>())?)
}

/// Prints a row of a Markdown table, in which `|` would begin a cell, and a line break would end the row.
fn row(out: &mut Vec<u8>, cells: impl Iterator<Item = String>) -> Result<()> {
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
pub(super) struct Lines {
    pub(super) values: FormatOptions,
}

impl TextFormat for Lines {
    fn rows(&self, rows: &RecordBatch, mut is_first: bool, out: &mut Vec<u8>) -> Result<()> {
        let names = names(rows.schema_ref());
        let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        for cells in texts(rows, &self.values)? {
            if !std::mem::take(&mut is_first) {
                writeln!(out)?;
            }
            for (name, cell) in names.iter().zip(cells) {
                writeln!(out, "{name:>width$} = {cell}")?;
            }
        }
        Ok(())
    }

    fn end(&self, _: &SchemaRef, _: bool, _: &mut Vec<u8>) -> Result<()> {
        Ok(())
    }
}
