//! Prints results as a table, text, CSV, TSV, JSON, Parquet or Arrow.
//!
//! ```text
//!   batches ──▶ Format ──▶ TextFormat: text, separated values, JSON; on several threads ──▶ standard output, file
//!                 │──────▶ RowPrinter: table, binary; batch after batch ──────────────────────┘
//!                 └──────▶ number of rows and time, unless --quiet
//! ```

mod binary;
mod dates;
mod json;
mod max_rows;
mod separated;
mod table;
#[cfg(test)]
mod tests;
mod text;
mod texts;

use std::io::Write;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::plan_err;
use datafusion::common::runtime::SpawnedTask;
use datafusion::config::ConfigOptions;
use datafusion::error::{DataFusionError, Result};
use futures::FutureExt;
use futures::future::{BoxFuture, ready};

use self::binary::{ArrowFile, ArrowStream, Parquet};
use self::dates::Dates;
use self::json::Json;
pub(crate) use self::max_rows::MaxRows;
use self::separated::Separated;
use self::table::Table;
use self::text::{Lines, Markdown};
use self::texts::{Text, TextFormat, Texts, most_rows};

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

/// Prints rows in one format, in which each batch depends on those before it.
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
    dates: Option<Arc<Dates>>,
    kind: Kind<'a>,
}

enum Kind<'a> {
    Texts(Texts),
    Rows(Box<dyn RowPrinter + Send + 'a>),
}

impl<'a> Kind<'a> {
    fn texts(format: impl TextFormat + 'static) -> Self {
        Self::Texts(Texts::new(format))
    }

    fn rows(printer: impl RowPrinter + Send + 'a) -> Self {
        Self::Rows(Box::new(printer))
    }
}

/// Rows that are ready to be written.
pub(crate) struct Ready(Part);

enum Part {
    Rows(RecordBatch),
    Text(Text),
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
        let (maxrows, has_header) = (options.maxrows, options.headers);
        // Nothing is printed then.
        let is_empty = schema.fields().is_empty();
        let format = if is_empty { Format::Automatic } else { options.format };
        let kind = match format {
            Format::Table | Format::Automatic => Kind::rows(Table::new(values, maxrows, false)),
            Format::Box => Kind::rows(Table::new(values, maxrows, true)),
            Format::Markdown => Kind::texts(Markdown { values: values.clone() }),
            Format::Line => Kind::texts(Lines { values: values.clone() }),
            Format::Csv => Kind::texts(Separated::new(b',', has_header)),
            Format::Tsv => Kind::texts(Separated::new(b'\t', has_header)),
            Format::Json => Kind::texts(Json::Array),
            Format::NdJson => Kind::texts(Json::Lines),
            Format::Parquet => Kind::rows(Parquet::try_new(&schema, config)?),
            Format::Arrow => Kind::rows(ArrowStream::try_new(&schema)?),
            Format::ArrowFile => Kind::rows(ArrowFile::try_new(&schema)?),
        };
        let dates = Dates::from_schema(&schema).filter(|_| !format.is_binary()).map(Arc::new);
        let schema = dates.as_ref().map_or(schema, |it| Arc::clone(it.schema()));
        Ok(Self { schema, dates, kind })
    }

    /// Takes rows.
    ///
    /// # Errors
    /// If `out` cannot be written, or the format cannot show a value.
    pub(crate) fn write(&mut self, out: &mut dyn Write, batch: RecordBatch) -> Result<()> {
        match &mut self.kind {
            Kind::Texts(_) if batch.num_rows() == 0 => Ok(()),
            Kind::Texts(texts) => texts.next(batch, self.dates.as_ref())().write(out),
            Kind::Rows(rows) => match &self.dates {
                Some(dates) => rows.write(out, dates.shown(&batch)?),
                None => rows.write(out, batch),
            },
        }
    }

    /// The most rows of a batch for [`Self::begin`].
    pub(crate) fn most_rows(&self) -> fn(&RecordBatch) -> usize {
        match self.kind {
            Kind::Texts(_) => most_rows,
            // Readers of binary formats see the batches.
            Kind::Rows(_) => |_| usize::MAX,
        }
    }

    /// Begins to print rows, of which there is at least one: another thread formats text. [`Self::end`] must get the outcomes
    /// in the order of the rows.
    pub(crate) fn begin(&mut self, rows: RecordBatch) -> BoxFuture<'static, Result<Ready>> {
        match &mut self.kind {
            Kind::Rows(_) => ready(Ok(Ready(Part::Rows(rows)))).boxed(),
            Kind::Texts(texts) => {
                let text = texts.next(rows, self.dates.as_ref());
                let task = SpawnedTask::spawn(async move { text() });
                async move {
                    let text = task.join_unwind().await;
                    let error = |it| DataFusionError::ExecutionJoin(Box::new(it));
                    Ok(Ready(Part::Text(text.map_err(error)?)))
                }
                .boxed()
            }
        }
    }

    /// Writes rows that are ready.
    ///
    /// # Errors
    /// As for [`Self::write`].
    pub(crate) fn end(&mut self, out: &mut dyn Write, ready: Ready) -> Result<()> {
        match ready.0 {
            Part::Rows(rows) => self.write(out, rows),
            Part::Text(text) => text.write(out),
        }
    }

    /// The bytes of rows that are written later.
    pub(crate) fn memory(&self) -> usize {
        match &self.kind {
            Kind::Texts(_) => 0,
            Kind::Rows(rows) => rows.memory(),
        }
    }

    /// Ends the result: prints a table, or the end of the other formats. A statement without columns prints
    /// nothing.
    ///
    /// # Errors
    /// As for [`Self::write`].
    pub(crate) fn finish(self, out: &mut dyn Write) -> Result<()> {
        match self.kind {
            _ if self.schema.fields().is_empty() => Ok(()),
            Kind::Texts(texts) => texts.finish(out, &self.schema),
            Kind::Rows(rows) => rows.finish(out, self.schema),
        }
    }
}
