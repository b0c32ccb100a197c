//! Prints results on standard output as a table, text, CSV, TSV or JSON.
//!
//! ```text
//!   batches ──▶ Format ──▶ RowPrinter: table, text, separated values, JSON ──▶ standard output
//!                 └──────▶ number of rows and time, unless --quiet
//! ```

mod json;
mod max_rows;
mod separated;
mod table;
mod text;

use std::io::Write;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::plan_err;
use datafusion::config::FormatOptions;
use datafusion::error::Result;

use self::json::Json;
pub(crate) use self::max_rows::MaxRows;
use self::separated::SeparatedPrinter;
use self::table::Table;
use self::text::{Lines, Markdown};

/// The format of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Comma-separated values with a header
    Csv,
    /// Tab-separated values with a header
    Tsv,
    /// A table with aligned columns
    Table,
    /// A table with aligned columns and continuous lines
    Box,
    /// A Markdown table
    Markdown,
    /// A line for each value
    Line,
    /// One JSON array of objects
    Json,
    /// One JSON object per line
    #[value(name = "nd-json", alias = "ndjson")]
    NdJson,
    /// A table, or CSV for a query that may never end
    Automatic,
}

impl Format {
    /// Returns the format of a file with this ending, unless a format is set.
    ///
    /// # Errors
    /// If the ending is not one of text, such as `.parquet`.
    pub(crate) fn or_of_ending(self, path: &Path) -> Result<Self> {
        if self != Self::Automatic {
            return Ok(self);
        }
        let ending = path.extension().and_then(|it| it.to_str()).unwrap_or_default();
        Ok(match ending.to_ascii_lowercase().as_str() {
            "csv" => Self::Csv,
            "tsv" => Self::Tsv,
            "json" => Self::Json,
            "ndjson" | "jsonl" => Self::NdJson,
            "md" => Self::Markdown,
            "txt" | "" => self,
            _ => {
                return plan_err!(
                    "{}: -o writes no .{ending} files; COPY (SELECT …) TO 'FILE' writes Parquet and Arrow, and --format sets a format of text",
                    path.display()
                );
            }
        })
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        clap::ValueEnum::from_str(text, true)
    }
}

/// The settings of printed results.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PrintOptions {
    /// The format of the rows.
    pub(crate) format: Format,
    /// The maximum number of rows of a table; other formats print all rows.
    pub(crate) maxrows: MaxRows,
    /// Prints the names of columns above CSV and TSV.
    pub(crate) headers: bool,
    /// Prints rows only, without their number and the time.
    pub(crate) quiet: bool,
    /// Highlights SQL at the prompt.
    pub(crate) color: bool,
}

impl PrintOptions {
    /// Returns the maximum number of rows to print; more rows are only counted.
    pub(crate) fn printed_rows(&self) -> usize {
        if self.is_by_row() { usize::MAX } else { self.maxrows.count() }
    }

    /// Whether rows can be printed as they arrive. A table needs all rows first, to align its columns.
    pub(crate) fn is_by_row(&self) -> bool {
        !matches!(self.format, Format::Table | Format::Box | Format::Automatic)
    }

    /// Prints the number of rows and the time since the statement began, unless `quiet`.
    pub(crate) fn summary(
        &self,
        out: &mut dyn Write,
        rows: usize,
        elapsed: Duration,
    ) -> Result<()> {
        if self.quiet {
            return Ok(());
        }
        let shown = self.printed_rows();
        let cut = if shown < rows {
            format!("(First {shown} displayed. Use --maxrows to adjust)")
        } else {
            String::new()
        };
        let seconds = elapsed.as_secs_f64();
        Ok(write!(out, "{rows} row(s) fetched. {cut}\nElapsed {seconds:.3} seconds.\n\n")?)
    }
}

/// Prints rows in one format.
trait RowPrinter {
    /// Takes rows. Formats other than tables print them at once.
    fn write(&mut self, out: &mut dyn Write, batch: RecordBatch) -> Result<()>;

    /// Ends the result, which may have no rows.
    fn finish(self: Box<Self>, out: &mut dyn Write, schema: SchemaRef) -> Result<()>;
}

/// Prints the batches of one result. A table is printed after its last batch.
pub(crate) struct Printer<'a> {
    schema: SchemaRef,
    rows: Box<dyn RowPrinter + Send + 'a>,
}

impl<'a> Printer<'a> {
    /// Makes a printer for rows with this schema. `values` sets how texts show values.
    pub(crate) fn new(
        options: &PrintOptions,
        schema: SchemaRef,
        values: &'a FormatOptions,
    ) -> Self {
        let (maxrows, has_header) = (options.maxrows, !options.headers);
        let rows: Box<dyn RowPrinter + Send + 'a> = match options.format {
            Format::Table | Format::Automatic => Box::new(Table::new(values, maxrows, false)),
            Format::Box => Box::new(Table::new(values, maxrows, true)),
            Format::Markdown => Box::new(Markdown { values, has_header: false }),
            Format::Line => Box::new(Lines { values, is_begun: false }),
            Format::Csv => Box::new(SeparatedPrinter { delimiter: b',', has_header }),
            Format::Tsv => Box::new(SeparatedPrinter { delimiter: b'\t', has_header }),
            Format::Json => Box::new(Json::array()),
            Format::NdJson => Box::new(Json::lines()),
        };
        Self { schema, rows }
    }

    /// Takes rows.
    ///
    /// # Errors
    /// If `out` cannot be written, or the format cannot show a value.
    pub(crate) fn write(&mut self, out: &mut dyn Write, batch: RecordBatch) -> Result<()> {
        self.rows.write(out, batch)
    }

    /// Ends the result: prints a table, or the end of the other formats. A statement without columns prints
    /// nothing.
    ///
    /// # Errors
    /// As for [`Self::write`].
    pub(crate) fn finish(self, out: &mut dyn Write) -> Result<()> {
        match self.schema.fields().is_empty() {
            true => Ok(()),
            false => self.rows.finish(out, self.schema),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Float64Array, StringArray};

    use super::*;

    fn batch() -> RecordBatch {
        let names = Arc::new(StringArray::from(vec![Some("Oslo"), None])) as ArrayRef;
        let values = Arc::new(Float64Array::from(vec![Some(1.5), None])) as ArrayRef;
        RecordBatch::try_from_iter_with_nullable([("name", names, true), ("v", values, true)])
            .unwrap()
    }

    fn options(format: Format) -> PrintOptions {
        PrintOptions {
            format,
            maxrows: MaxRows::Limited(3),
            headers: true,
            quiet: false,
            color: false,
        }
    }

    fn print(format: Format, batches: &[RecordBatch]) -> String {
        let values = FormatOptions { null: "NULL".to_owned(), ..FormatOptions::default() };
        let mut printer = Printer::new(&options(format), batch().schema(), &values);
        let mut out = vec![];
        for batch in batches {
            printer.write(&mut out, batch.clone()).unwrap();
        }
        printer.finish(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_format_prints_all_batches() {
        let two = [batch(), batch()];
        assert_eq!(print(Format::Csv, &two), "name,v\nOslo,1.5\n,\nOslo,1.5\n,\n");
        assert_eq!(print(Format::Tsv, &two), "name\tv\nOslo\t1.5\n\t\nOslo\t1.5\n\t\n");
        let (some, none) = (r#"{"name":"Oslo","v":1.5}"#, r#"{"name":null,"v":null}"#);
        assert_eq!(print(Format::Json, &two), format!("[{some},{none},{some},{none}]\n"));
        let lines = format!("{some}\n{none}\n{some}\n{none}\n");
        assert_eq!(print(Format::NdJson, &two), lines);
        let table = "\
+------+------+
| name | v    |
+------+------+
| Oslo | 1.5  |
| NULL | NULL |
| Oslo | 1.5  |
| .           |
| .           |
| .           |
+------+------+
";
        assert_eq!(print(Format::Table, &two), table);
        let boxed = "\
┌──────┬──────┐
│ name │ v    │
├──────┼──────┤
│ Oslo │ 1.5  │
│ NULL │ NULL │
│ Oslo │ 1.5  │
│ .           │
│ .           │
│ .           │
└──────┴──────┘
";
        assert_eq!(print(Format::Box, &two), boxed);
        let rows = "| Oslo | 1.5 |\n| NULL | NULL |\n".repeat(2);
        assert_eq!(print(Format::Markdown, &two), format!("| name | v |\n|---|---:|\n{rows}"));
        let lines = "name = Oslo\n   v = 1.5\n\nname = NULL\n   v = NULL\n";
        assert_eq!(print(Format::Line, &two), format!("{lines}\n{lines}"));
    }

    /// Tables show what a terminal hides, in columns of the right width. Formats for programs keep the bytes.
    #[test]
    fn invisible_characters_are_shown_in_tables_only() {
        let names = Arc::new(StringArray::from(vec![Some("o\u{202e}ols"), None])) as ArrayRef;
        let values = Arc::new(Float64Array::from(vec![Some(1.5), None])) as ArrayRef;
        let columns = [("na\u{200b}me", names, true), ("\u{1b}v", values, true)];
        let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        let print = |format| {
            let values = FormatOptions { null: "NULL".to_owned(), ..FormatOptions::default() };
            let mut printer = Printer::new(&options(format), batch.schema(), &values);
            let mut out = vec![];
            printer.write(&mut out, batch.clone()).unwrap();
            printer.finish(&mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let table = r"
+--------------+------+
| na\u{200b}me | ␛v   |
+--------------+------+
| o\u{202e}ols | 1.5  |
| NULL         | NULL |
+--------------+------+
";
        assert_eq!(print(Format::Table), &table[1..]);
        assert_eq!(print(Format::Csv), "na\u{200b}me,\u{1b}v\no\u{202e}ols,1.5\n,\n");
        assert!(print(Format::NdJson).starts_with("{\"na\u{200b}me\":\"o\u{202e}ols\","));
    }

    #[test]
    fn results_without_rows_have_names_or_an_empty_list() {
        assert_eq!(print(Format::Csv, &[]), "name,v\n");
        assert_eq!(print(Format::Csv, &[batch().slice(0, 0)]), "name,v\n");
        assert_eq!(print(Format::Json, &[]), "[]\n");
        assert_eq!(print(Format::NdJson, &[]), "");
        let table = "+------+---+\n| name | v |\n+------+---+\n+------+---+\n";
        assert_eq!(print(Format::Automatic, &[]), table);
    }

    #[test]
    fn summaries_count_hidden_rows() {
        let summary = |format, rows| {
            let mut out = vec![];
            options(format).summary(&mut out, rows, Duration::from_millis(7)).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(summary(Format::Table, 3), "3 row(s) fetched. \nElapsed 0.007 seconds.\n\n");
        assert!(summary(Format::Table, 4).contains("(First 3 displayed. Use --maxrows to adjust)"));
        assert!(!summary(Format::Csv, 4).contains("displayed"));
    }

    #[test]
    fn words_for_formats_and_limits() {
        assert_eq!("CSV".parse(), Ok(Format::Csv));
        assert_eq!("ndjson".parse::<Format>(), "ND-json".parse());
        assert!("xls".parse::<Format>().is_err());
        assert_eq!("INF".parse(), Ok(MaxRows::Unlimited));
        assert_eq!("7".parse(), Ok(MaxRows::Limited(7)));
        assert!("-1".parse::<MaxRows>().unwrap_err().contains("'inf'"));
    }
}
