//! [`Style`]: delimiters, quotes and NULL in CSV.

use datafusion::arrow::csv::writer::Terminator;
use datafusion::arrow::csv::{QuoteStyle, WriterBuilder};

/// How CSV delimits and quotes its cells.
#[derive(Debug)]
pub(super) struct Style {
    delimiter: u8,
    quote: u8,
    null_text: String,
    /// NULL with the quotes that it may need.
    null: Vec<u8>,
}

impl Style {
    /// Returns the style of a writer; `None` if it quotes numbers and times, or has patterns for times.
    pub(super) fn from_writer(writer: &WriterBuilder) -> Option<Self> {
        let patterns = [
            writer.date_format(),
            writer.datetime_format(),
            writer.time_format(),
            writer.timestamp_format(),
            writer.timestamp_tz_format(),
        ];
        let is_plain = patterns.iter().all(Option::is_none)
            && matches!(writer.quote_style(), QuoteStyle::Necessary)
            && matches!(writer.line_terminator(), Terminator::Any(b'\n'))
            && writer.double_quote()
            && !writer.ignore_leading_whitespace()
            && !writer.ignore_trailing_whitespace();
        let (delimiter, quote) = (writer.delimiter(), writer.quote());
        if !is_plain || delimiter == quote || [delimiter, quote].into_iter().any(is_in_values) {
            return None;
        }
        let mut style =
            Self { delimiter, quote, null_text: writer.null().to_owned(), null: vec![] };
        let mut null = vec![];
        style.push_text(&style.null_text, &mut null);
        style.null = null;
        Some(style)
    }

    pub(super) fn delimiter(&self) -> u8 {
        self.delimiter
    }

    /// Returns the text of a row whose only cell is empty.
    pub(super) fn empty_row(&self) -> [u8; 2] {
        [self.quote; 2]
    }

    /// NULL without quotes.
    pub(super) fn null_text(&self) -> &str {
        &self.null_text
    }

    /// NULL as a cell.
    pub(super) fn null(&self) -> &[u8] {
        &self.null
    }

    /// Appends a text, in quotes if it needs them.
    pub(super) fn push_text(&self, text: &str, out: &mut Vec<u8>) {
        let needs_quotes = |byte| [self.delimiter, self.quote, b'\r', b'\n'].contains(&byte);
        if !text.bytes().any(needs_quotes) {
            return out.extend_from_slice(text.as_bytes());
        }
        out.push(self.quote);
        for byte in text.bytes() {
            if byte == self.quote {
                out.push(byte);
            }
            out.push(byte);
        }
        out.push(self.quote);
    }
}

/// Whether a number or a time may contain a byte, or a line ends with it.
fn is_in_values(byte: u8) -> bool {
    !byte.is_ascii() || byte.is_ascii_alphanumeric() || b"+-.:\r\n".contains(&byte)
}
