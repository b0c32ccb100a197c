//! The rule `gridfusion_text_files`: files of JSON keep infinity and NaN, and CSV is formatted faster.

use std::sync::Arc;

use bytes::Bytes;
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
pub(in crate::exec) fn with_text_formatters(
    plan: Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    up(plan, |node| {
        let Some(exec) = node.downcast_ref::<DataSinkExec>() else { return Ok(None) };
        let Some(sink) = text_sink(exec.sink()) else { return Ok(None) };
        let (input, order) = (Arc::clone(exec.input()), exec.sort_order().clone());
        Ok(Some(Arc::new(DataSinkExec::new(input, Arc::new(sink), order)) as _))
    })
    .data()
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
            formatter: CsvFormatter::new(options.writer_options.clone()),
        }),
        replaced: Arc::new(CsvSink::new(config.clone(), options)),
        config,
    })
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
