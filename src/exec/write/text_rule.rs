//! The rule `gridfusion_text_files`: files of JSON keep infinity and NaN, and CSV is formatted faster.

use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::csv::WriterBuilder as CsvWriter;
use datafusion::arrow::json::writer::{LineDelimited, WriterBuilder};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use datafusion::common::tree_node::TransformedResult;
use datafusion::datasource::file_format::csv::CsvSink;
use datafusion::datasource::file_format::json::JsonSink;
use datafusion::datasource::file_format::write::BatchSerializer;
use datafusion::datasource::physical_plan::FileSink;
use datafusion::datasource::sink::{DataSink, DataSinkExec};
use datafusion::physical_plan::ExecutionPlan;

use super::csv::CsvFormatter;
use super::json_values::JsonValues;
use super::text_sink::TextSink;
use crate::exec::rules::walk::up;

/// Replaces DataFusion's sinks of JSON and CSV by those with other formatters, for `COPY` and `INSERT`.
pub(crate) fn with_text_formatters(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    up(plan, |node| {
        let Some(exec) = node.downcast_ref::<DataSinkExec>() else { return Ok(None) };
        let Some(sink) = text_sink(exec.sink()) else { return Ok(None) };
        let (input, order) = (Arc::clone(exec.input()), exec.sort_order().clone());
        Ok(Some(Arc::new(DataSinkExec::new(input, Arc::new(sink), order)) as _))
    })
    .data()
}

/// Returns a node that writes with a sink of ours as DataFusion planned it; `None` for other nodes.
#[cfg(feature = "codec")]
pub(crate) fn with_plain_sink(node: &dyn ExecutionPlan) -> Option<Arc<dyn ExecutionPlan>> {
    let exec = node.downcast_ref::<DataSinkExec>()?;
    let sink = Arc::clone(&exec.sink().downcast_ref::<TextSink>()?.replaced);
    Some(Arc::new(DataSinkExec::new(Arc::clone(exec.input()), sink, exec.sort_order().clone())))
}

/// Returns the sink in the place of DataFusion's; `None` for other formats.
fn text_sink(sink: &dyn DataSink) -> Option<TextSink> {
    if let Some(sink) = sink.downcast_ref::<JsonSink>() {
        let (config, options) = (sink.config().clone(), sink.writer_options().clone());
        return Some(TextSink {
            compression: (options.compression, options.compression_level),
            serializer: Arc::new(JsonLines),
            replaced: Arc::new(JsonSink::new(config.clone(), options)),
            config,
        });
    }
    let sink = sink.downcast_ref::<CsvSink>()?;
    let (config, options) = (sink.config().clone(), sink.writer_options().clone());
    Some(TextSink {
        compression: (options.compression, options.compression_level),
        serializer: Arc::new(CsvLines {
            has_header: options.writer_options.header(),
            formatter: CsvFormatter::new(without_empty_patterns(&options.writer_options)),
        }),
        replaced: Arc::new(CsvSink::new(config.clone(), options)),
        config,
    })
}

/// Returns a writer without patterns for times that are empty: DataFusion's messages make such patterns where there were none,
/// and then times had no text.
fn without_empty_patterns(writer: &CsvWriter) -> CsvWriter {
    let mut same = CsvWriter::new()
        .with_header(writer.header())
        .with_delimiter(writer.delimiter())
        .with_quote(writer.quote())
        .with_escape(writer.escape())
        .with_double_quote(writer.double_quote())
        .with_null(writer.null().to_owned())
        .with_ignore_leading_whitespace(writer.ignore_leading_whitespace())
        .with_ignore_trailing_whitespace(writer.ignore_trailing_whitespace())
        .with_quote_style(writer.quote_style())
        .with_line_terminator(writer.line_terminator().clone());
    type WithPattern = fn(CsvWriter, String) -> CsvWriter;
    let patterns: [(Option<&str>, WithPattern); 5] = [
        (writer.date_format(), CsvWriter::with_date_format),
        (writer.datetime_format(), CsvWriter::with_datetime_format),
        (writer.time_format(), CsvWriter::with_time_format),
        (writer.timestamp_format(), CsvWriter::with_timestamp_format),
        (writer.timestamp_tz_format(), CsvWriter::with_timestamp_tz_format),
    ];
    for (pattern, with_pattern) in patterns {
        if let Some(pattern) = pattern.filter(|pattern| !pattern.is_empty()) {
            same = with_pattern(same, pattern.to_owned());
        }
    }
    same
}

/// Turns batches into lines of JSON.
struct JsonLines;

impl BatchSerializer for JsonLines {
    fn serialize(&self, batch: RecordBatch, _: bool) -> Result<Bytes> {
        let mut text = Vec::with_capacity(4096);
        let builder = WriterBuilder::new().with_encoder_factory(Arc::new(JsonValues));
        builder.build::<_, LineDelimited>(&mut text).write(&batch)?;
        Ok(text.into())
    }
}

/// Turns batches into lines of CSV.
struct CsvLines {
    has_header: bool,
    formatter: CsvFormatter,
}

impl BatchSerializer for CsvLines {
    fn serialize(&self, batch: RecordBatch, is_first: bool) -> Result<Bytes> {
        let mut text = vec![];
        self.formatter.format(&batch, self.has_header && is_first, &mut text)?;
        Ok(text.into())
    }
}
