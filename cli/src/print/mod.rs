//! Prints results as a table, text, CSV, TSV, JSON, Parquet or Arrow.
//!
//! ```text
//!   batches ──▶ Format ──▶ RowPrinter: table, text, separated values, JSON, binary ──▶ standard output, file
//!                 └──────▶ number of rows and time, unless --quiet
//! ```

mod binary;
mod dates;
mod json;
mod max_rows;
mod separated;
mod table;
mod text;

use std::io::Write;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::plan_err;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;

use self::binary::{ArrowFile, ArrowStream, Parquet};
use self::dates::Dates;
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
    /// A Parquet file, for other programs
    Parquet,
    /// An Arrow IPC stream, for other programs
    Arrow,
    /// An Arrow IPC file: only the ending of a file chooses it
    #[value(skip)]
    ArrowFile,
    /// A table, or CSV for a query that may never end
    Automatic,
}

impl Format {
    /// Returns the format that the ending of a file shows, and `Automatic` for `.txt` and no ending. `set` is the format that is
    /// set, which an unknown ending does not contradict.
    ///
    /// # Errors
    /// If no format is set and the ending is unknown. If a text is to have the ending of Parquet or Arrow, or the other way round.
    pub(crate) fn from_ending(path: &Path, set: Self) -> Result<Self> {
        let ending = path.extension().and_then(|it| it.to_str()).unwrap_or_default();
        let ending = ending.to_ascii_lowercase();
        let format = match ending.as_str() {
            "csv" => Self::Csv,
            "tsv" => Self::Tsv,
            "json" => Self::Json,
            "ndjson" | "jsonl" => Self::NdJson,
            "md" => Self::Markdown,
            "parquet" => Self::Parquet,
            // Arrow's own names for files and streams.
            "arrow" | "feather" | "ipc" => Self::ArrowFile,
            "arrows" => Self::Arrow,
            "txt" | "" => Self::Automatic,
            _ if set != Self::Automatic => Self::Automatic,
            _ => {
                return plan_err!(
                    "{}: no format has the ending .{ending}; set one, as in --format csv, or .mode csv at the prompt",
                    path.display()
                );
            }
        };
        let is_free = set == Self::Automatic || format == Self::Automatic;
        if is_free || format.title() == set.title() {
            return Ok(format);
        }
        plan_err!(
            "{}: the ending is that of {}, and the format is set to {}; change one of them",
            path.display(),
            format.title(),
            set.title()
        )
    }

    /// Returns the format of a file whose ending has this format, while `set` is set: of formats of text, the one that is set.
    pub(crate) fn or(self, set: Self) -> Self {
        if self.is_binary() || set == Self::Automatic { self } else { set }
    }

    /// Whether the format is for programs only. Its end belongs to it, so that nothing can follow.
    pub(crate) fn is_binary(self) -> bool {
        matches!(self, Self::Parquet | Self::Arrow | Self::ArrowFile)
    }

    /// The name in messages: of Parquet, of Arrow, and of all that is text.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Parquet => "Parquet",
            Self::Arrow | Self::ArrowFile => "Arrow",
            _ => "text",
        }
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

    /// The bytes of rows that are written later, unless these are the batches themselves.
    fn memory(&self) -> usize {
        0
    }

    /// Ends the result, which may have no rows.
    fn finish(self: Box<Self>, out: &mut dyn Write, schema: SchemaRef) -> Result<()>;
}

/// Prints the batches of one result. A table is printed after its last batch.
pub(crate) struct Printer<'a> {
    schema: SchemaRef,
    /// Columns that are printed as dates. Files for programs have the numbers, with their units and calendar.
    dates: Option<Dates>,
    rows: Box<dyn RowPrinter + Send + 'a>,
}

impl<'a> Printer<'a> {
    /// Makes a printer for rows with this schema. `config` sets how texts show values, and how Parquet is written.
    ///
    /// # Errors
    /// If the format has no such types.
    pub(crate) fn try_new(
        options: &PrintOptions,
        schema: SchemaRef,
        config: &'a ConfigOptions,
    ) -> Result<Self> {
        let values = &config.format;
        let (maxrows, has_header) = (options.maxrows, !options.headers);
        // Nothing is printed then.
        let is_empty = schema.fields().is_empty();
        let format = if is_empty { Format::Automatic } else { options.format };
        let rows: Box<dyn RowPrinter + Send + 'a> = match format {
            Format::Table | Format::Automatic => Box::new(Table::new(values, maxrows, false)),
            Format::Box => Box::new(Table::new(values, maxrows, true)),
            Format::Markdown => Box::new(Markdown { values, has_header: false }),
            Format::Line => Box::new(Lines { values, is_begun: false }),
            Format::Csv => Box::new(SeparatedPrinter { delimiter: b',', has_header }),
            Format::Tsv => Box::new(SeparatedPrinter { delimiter: b'\t', has_header }),
            Format::Json => Box::new(Json::array()),
            Format::NdJson => Box::new(Json::lines()),
            Format::Parquet => Box::new(Parquet::try_new(&schema, config)?),
            Format::Arrow => Box::new(ArrowStream::try_new(&schema)?),
            Format::ArrowFile => Box::new(ArrowFile::try_new(&schema)?),
        };
        let dates = Dates::from_schema(&schema).filter(|_| !format.is_binary());
        let schema = dates.as_ref().map_or(schema, |it| Arc::clone(it.schema()));
        Ok(Self { schema, dates, rows })
    }

    /// Takes rows.
    ///
    /// # Errors
    /// If `out` cannot be written, or the format cannot show a value.
    pub(crate) fn write(&mut self, out: &mut dyn Write, batch: RecordBatch) -> Result<()> {
        match &self.dates {
            Some(dates) => self.rows.write(out, dates.shown(&batch)?),
            None => self.rows.write(out, batch),
        }
    }

    /// The bytes of rows that are written later.
    pub(crate) fn memory(&self) -> usize {
        self.rows.memory()
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
    use datafusion::arrow::array::{ArrayRef, Float64Array, StringArray};
    use datafusion::arrow::ipc::reader::{FileReader, StreamReader};
    use datafusion::arrow::record_batch::RecordBatchReader;
    use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReader;

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
        String::from_utf8(printed(format, &batch().schema(), batches)).unwrap()
    }

    fn printed(format: Format, schema: &SchemaRef, batches: &[RecordBatch]) -> Vec<u8> {
        let mut config = ConfigOptions::default();
        config.format.null = "NULL".to_owned();
        let printer = Printer::try_new(&options(format), Arc::clone(schema), &config);
        let mut printer = printer.unwrap();
        let mut out = vec![];
        for batch in batches {
            printer.write(&mut out, batch.clone()).unwrap();
        }
        printer.finish(&mut out).unwrap();
        out
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
            let out = printed(format, &batch.schema(), std::slice::from_ref(&batch));
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

    /// Each batch is written as it comes, and a result without rows has its columns.
    #[test]
    fn programs_read_the_same_rows() {
        for batches in [vec![batch(), batch()], vec![]] {
            let bytes = |format| printed(format, &batch().schema(), &batches);
            let joined = |read: Vec<RecordBatch>| {
                datafusion::arrow::compute::concat_batches(&batch().schema(), &read).unwrap()
            };
            let expected = joined(batches.clone());
            let parquet = bytes::Bytes::from(bytes(Format::Parquet));
            let parquet = ParquetRecordBatchReader::try_new(parquet, 100).unwrap();
            assert_eq!(parquet.schema().fields(), batch().schema().fields());
            assert_eq!(joined(parquet.map(Result::unwrap).collect()), expected);
            let stream = bytes(Format::Arrow);
            let stream = StreamReader::try_new(&stream[..], None).unwrap();
            assert_eq!(stream.schema(), batch().schema());
            assert_eq!(joined(stream.map(Result::unwrap).collect()), expected);
            let file = std::io::Cursor::new(bytes(Format::ArrowFile));
            let file = FileReader::try_new(file, None).unwrap();
            assert_eq!(file.schema(), batch().schema());
            assert_eq!(joined(file.map(Result::unwrap).collect()), expected);
        }
    }

    #[test]
    fn endings_show_formats() {
        let ending = |name: &str, set| Format::from_ending(Path::new(name), set).ok();
        for (name, format) in [
            ("a.PARQUET", Format::Parquet),
            ("a.arrow", Format::ArrowFile),
            ("a.feather", Format::ArrowFile),
            ("a.arrows", Format::Arrow),
            ("a.jsonl", Format::NdJson),
            ("a.txt", Format::Automatic),
            ("a", Format::Automatic),
        ] {
            assert_eq!(ending(name, Format::Automatic), Some(format), "{name}");
        }
        assert_eq!(ending("a.xlsx", Format::Automatic), None);
        assert_eq!(ending("a.xlsx", Format::Csv).map(|it| it.or(Format::Csv)), Some(Format::Csv));
        assert_eq!(ending("a.md", Format::Tsv).map(|it| it.or(Format::Tsv)), Some(Format::Tsv));
        assert_eq!(
            ending("a.arrow", Format::Arrow).map(|it| it.or(Format::Arrow)),
            Some(Format::ArrowFile)
        );
        for (name, set) in
            [("a.parquet", Format::Csv), ("a.csv", Format::Parquet), ("a.arrow", Format::Parquet)]
        {
            assert_eq!(ending(name, set), None, "{name}");
        }
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
