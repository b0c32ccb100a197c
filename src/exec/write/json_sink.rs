//! [`FloatsJsonSink`]: DataFusion's sink of JSON with another encoder of floats.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::json::writer::{LineDelimited, WriterBuilder};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use datafusion::common::file_options::json_writer::JsonWriterOptions;
use datafusion::common::runtime::SpawnedTask;
use datafusion::datasource::file_format::write::BatchSerializer;
use datafusion::datasource::file_format::write::demux::DemuxedStreamReceiver;
use datafusion::datasource::file_format::write::orchestration::spawn_writer_tasks_and_join;
use datafusion::datasource::physical_plan::{FileSink, FileSinkConfig};
use datafusion::datasource::sink::DataSink;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType};
use object_store::ObjectStore;

use super::json_floats::JsonFloats;

/// Writes rows as lines of JSON, with infinity and NaN as texts.
#[derive(Debug)]
pub(super) struct FloatsJsonSink {
    config: FileSinkConfig,
    options: JsonWriterOptions,
}

impl FloatsJsonSink {
    pub(super) fn new(config: FileSinkConfig, options: JsonWriterOptions) -> Self {
        Self { config, options }
    }
}

impl DisplayAs for FloatsJsonSink {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JsonSink")
    }
}

#[async_trait]
impl FileSink for FloatsJsonSink {
    fn config(&self) -> &FileSinkConfig {
        &self.config
    }

    async fn spawn_writer_tasks_and_join(
        &self,
        context: &Arc<TaskContext>,
        demux_task: SpawnedTask<Result<()>>,
        files: DemuxedStreamReceiver,
        store: Arc<dyn ObjectStore>,
    ) -> Result<u64> {
        let (compression, level) =
            (self.options.compression.into(), self.options.compression_level);
        let lines: Arc<dyn BatchSerializer> = Arc::new(Lines);
        spawn_writer_tasks_and_join(context, lines, compression, level, store, demux_task, files)
            .await
    }
}

#[async_trait]
impl DataSink for FloatsJsonSink {
    fn schema(&self) -> &SchemaRef {
        self.config.output_schema()
    }

    async fn write_all(
        &self,
        data: SendableRecordBatchStream,
        context: &Arc<TaskContext>,
    ) -> Result<u64> {
        FileSink::write_all(self, data, context).await
    }
}

/// Turns batches into lines of JSON.
struct Lines;

impl BatchSerializer for Lines {
    fn serialize(&self, batch: RecordBatch, _initial: bool) -> Result<Bytes> {
        let mut text = Vec::with_capacity(4096);
        let builder = WriterBuilder::new().with_encoder_factory(Arc::new(JsonFloats));
        builder.build::<_, LineDelimited>(&mut text).write(&batch)?;
        Ok(text.into())
    }
}
