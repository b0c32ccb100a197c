//! Tables with aligned columns.
//!
//! ```text
//!   batches ──▶ the texts of all cells ──▶ the width of each column ──▶ lines
//! ```

use std::io::{BufWriter, Write};

use datafusion::arrow::array::{ArrayRef, StringArray, StringBuilder};
use datafusion::arrow::datatypes::{FieldRef, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::util::display::ArrayFormatter;
use datafusion::arrow::util::display::FormatOptions as ArrowFormatOptions;
use datafusion::common::DataFusionError;
use datafusion::config::FormatOptions;
use datafusion::error::Result;
use unicode_width::UnicodeWidthStr;

use super::RowPrinter;
use super::max_rows::MaxRows;
use crate::printable::printable_lines;

/// Number of lines with dots that stand for the rows not shown.
const DOTS: usize = 3;

/// A horizontal line: left, along a column, between columns, right.
type Rule = [&'static str; 4];

/// The lines of a table.
struct Lines {
    top: Rule,
    below_header: Rule,
    bottom: Rule,
    /// Between columns, and at both sides.
    upright: &'static str,
}

const PLUS: Rule = ["+", "-", "+", "+"];
const ASCII: Lines = Lines { top: PLUS, below_header: PLUS, bottom: PLUS, upright: "|" };
const BOX: Lines = Lines {
    top: ["┌", "─", "┬", "┐"],
    below_header: ["├", "─", "┼", "┤"],
    bottom: ["└", "─", "┴", "┘"],
    upright: "│",
};

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
    /// The rows to show.
    shown: Vec<RecordBatch>,
    /// The number of all rows.
    rows: usize,
    lines: &'static Lines,
}

impl<'a> Table<'a> {
    pub(super) fn new(values: &'a FormatOptions, maxrows: MaxRows, is_box: bool) -> Self {
        let lines = if is_box { &BOX } else { &ASCII };
        Self { values, maxrows, shown: vec![], rows: 0, lines }
    }
}

impl RowPrinter for Table<'_> {
    fn write(&mut self, _: &mut dyn Write, batch: RecordBatch) -> Result<()> {
        let left = self.maxrows.count().saturating_sub(self.rows).min(batch.num_rows());
        self.rows += batch.num_rows();
        if left > 0 {
            self.shown.push(batch.slice(0, left));
        }
        Ok(())
    }

    fn finish(self: Box<Self>, out: &mut dyn Write, schema: SchemaRef) -> Result<()> {
        let most = self.maxrows.count();
        if most == 0 {
            return Ok(());
        }
        let options: ArrowFormatOptions = self.values.try_into()?;
        let header = header(&schema, options.types_info());
        let cells = self.shown.iter().map(|batch| Cells::try_new(batch, &options));
        let cells: Vec<Cells> = cells.collect::<Result<_>>()?;
        let widths = widths(&header, &cells);
        let Lines { top, below_header, bottom, upright } = self.lines;
        // Standard output passes on each line, which takes longer than writing it.
        let out = &mut BufWriter::with_capacity(1 << 16, out);
        write_rule(out, top, &widths)?;
        write_row(out, upright, &widths, &header.iter().map(String::as_str).collect::<Vec<_>>())?;
        write_rule(out, below_header, &widths)?;
        let mut row = vec![];
        for batch in &cells {
            for at in 0..batch.rows {
                row.clear();
                row.extend(batch.columns.iter().map(|column| column.value(at)));
                write_row(out, upright, &widths, &row)?;
            }
        }
        if self.rows > most {
            let inside = widths.iter().map(|width| width + 3).sum::<usize>();
            let blanks = " ".repeat(inside.saturating_sub(3));
            let dots = format!("{upright} .{blanks}{upright}\n");
            out.write_all(dots.repeat(DOTS).as_bytes())?;
        }
        write_rule(out, bottom, &widths)?;
        Ok(out.flush()?)
    }
}

/// Returns the names of columns, with their types below if these are to be shown.
fn header(schema: &SchemaRef, has_types: bool) -> Vec<String> {
    let name = |field: &FieldRef| {
        let name = printable_lines(field.name());
        if has_types { format!("{name}\n{}", field.data_type()) } else { name.into_owned() }
    };
    schema.fields().iter().map(name).collect()
}

/// The texts of a batch, made safe for a terminal.
struct Cells {
    rows: usize,
    columns: Vec<StringArray>,
}

impl Cells {
    fn try_new(batch: &RecordBatch, options: &ArrowFormatOptions<'_>) -> Result<Self> {
        let columns = batch.columns().iter().map(|column| texts(column, options));
        Ok(Self { rows: batch.num_rows(), columns: columns.collect::<Result<_>>()? })
    }
}

fn texts(column: &ArrayRef, options: &ArrowFormatOptions<'_>) -> Result<StringArray> {
    let cells = ArrayFormatter::try_new(column, options)?;
    let mut texts = StringBuilder::with_capacity(column.len(), 16 * column.len());
    let mut text = String::new();
    for row in 0..column.len() {
        text.clear();
        cells.value(row).write(&mut text).map_err(DataFusionError::from)?;
        texts.append_value(printable_lines(&text));
    }
    Ok(texts.finish())
}

/// Returns the number of letters that each column needs: one at least.
fn widths(header: &[String], cells: &[Cells]) -> Vec<usize> {
    let mut widths: Vec<usize> = header.iter().map(|name| width(name).max(1)).collect();
    for batch in cells {
        for (widest, column) in widths.iter_mut().zip(&batch.columns) {
            *widest = column.iter().flatten().map(width).fold(*widest, usize::max);
        }
    }
    widths
}

/// Returns the letters of the longest line of a text.
fn width(text: &str) -> usize {
    text.split('\n').map(line_width).max().unwrap_or_default()
}

fn line_width(line: &str) -> usize {
    // Nothing unprintable is left, so each byte of ASCII is as wide as a letter.
    if line.is_ascii() { line.len() } else { line.width() }
}

fn write_rule(out: &mut dyn Write, rule: &Rule, widths: &[usize]) -> Result<()> {
    let [left, along, between, right] = rule;
    let columns: Vec<String> = widths.iter().map(|width| along.repeat(width + 2)).collect();
    Ok(writeln!(out, "{left}{}{right}", columns.join(between))?)
}

/// Writes a row, in as many lines as its highest cell has.
fn write_row(out: &mut dyn Write, upright: &str, widths: &[usize], row: &[&str]) -> Result<()> {
    let mut rest: Vec<Option<&str>> = row.iter().map(|cell| Some(*cell)).collect();
    loop {
        out.write_all(upright.as_bytes())?;
        for (rest, width) in rest.iter_mut().zip(widths) {
            let (line, below) = match rest.unwrap_or_default().split_once('\n') {
                Some((line, below)) => (line, Some(below)),
                None => (rest.unwrap_or_default(), None),
            };
            *rest = below;
            let blanks = width - line_width(line);
            write!(out, " {line}{:blanks$} {upright}", "")?;
        }
        out.write_all(b"\n")?;
        if rest.iter().all(Option::is_none) {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::Float64Array;
    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    use datafusion::arrow::util::pretty::pretty_format_batches_with_options;
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    fn drawn(batches: &[RecordBatch], values: &FormatOptions, is_box: bool) -> String {
        let mut table = Box::new(Table::new(values, MaxRows::Unlimited, is_box));
        let mut out = vec![];
        for batch in batches {
            table.write(&mut out, batch.clone()).unwrap();
        }
        table.finish(&mut out, batches[0].schema()).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// Texts of several lines, of wide letters and of marks without a width, beside numbers.
    fn random(rng: &mut SmallRng, columns: usize, rows: usize) -> RecordBatch {
        let piece = ["", "a", "long text", "\n", "東京", "e\u{301}", "🌍", "|", " "];
        let mut text = || -> String {
            (0..rng.random_range(0..4)).map(|_| piece[rng.random_range(0..piece.len())]).collect()
        };
        let mut fields = vec![Field::new("value", DataType::Float64, true)];
        let numbers =
            Float64Array::from_iter((0..rows).map(|at| (at % 3 > 0).then_some(at as f64)));
        let mut arrays: Vec<ArrayRef> = vec![Arc::new(numbers)];
        for _ in 0..columns {
            fields.push(Field::new(text(), DataType::Utf8, true));
            let cells = (0..rows).map(|at| (at % 5 > 0).then(&mut text));
            arrays.push(Arc::new(StringArray::from_iter(cells)));
        }
        RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
    }

    #[test]
    fn tables_are_those_of_arrow() {
        let mut rng = SmallRng::seed_from_u64(3);
        for case in 0..200 {
            let batch = random(&mut rng, case % 4, case % 7);
            let values =
                FormatOptions { types_info: case % 2 == 0, null: "-".into(), ..Default::default() };
            let options: ArrowFormatOptions = (&values).try_into().unwrap();
            let batches = [batch.clone(), batch];
            let arrow = pretty_format_batches_with_options(&batches, &options).unwrap();
            assert_eq!(drawn(&batches, &values, false), format!("{arrow}\n"), "case {case}");
            let boxed = drawn(&batches, &values, true);
            let plain = boxed.replace('│', "|").replace('─', "-");
            let plain = plain.replace(['┌', '┬', '┐', '├', '┼', '┤', '└', '┴', '┘'], "+");
            assert_eq!(plain, format!("{arrow}\n"), "case {case}, in a box");
        }
    }

    #[test]
    fn boxes_have_corners() {
        let batch = RecordBatch::try_from_iter([
            ("a", Arc::new(Float64Array::from(vec![1.0])) as ArrayRef),
            ("b\u{1b}", Arc::new(StringArray::from(vec!["x\r\ny"])) as ArrayRef),
        ]);
        let lines = [
            "┌─────┬────┐",
            "│ a   │ b␛ │",
            "├─────┼────┤",
            "│ 1.0 │ x␍ │",
            "│     │ y  │",
            "└─────┴────┘",
        ];
        let drawn = drawn(&[batch.unwrap()], &FormatOptions::default(), true);
        assert_eq!(drawn.lines().collect::<Vec<_>>(), lines);
    }
}
