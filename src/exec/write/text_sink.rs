//! [`TextSink`]: DataFusion's sinks of JSON and CSV with other texts of rows.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::common::parsers::CompressionTypeVariant;
use datafusion::common::runtime::SpawnedTask;
use datafusion::datasource::file_format::write::BatchSerializer;
use datafusion::datasource::file_format::write::demux::DemuxedStreamReceiver;
use datafusion::datasource::file_format::write::orchestration::spawn_writer_tasks_and_join;
use datafusion::datasource::physical_plan::{FileSink, FileSinkConfig};
use datafusion::datasource::sink::DataSink;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType};
use object_store::ObjectStore;

/// Writes rows as text.
pub(super) struct TextSink {
    /// DataFusion's sink, which `EXPLAIN` shows.
    pub(super) replaced: Arc<dyn DataSink>,
    pub(super) config: FileSinkConfig,
    pub(super) compression: (CompressionTypeVariant, Option<u32>),
    pub(super) serializer: Arc<dyn BatchSerializer>,
}

impl fmt::Debug for TextSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.replaced.fmt(f)
    }
}

impl DisplayAs for TextSink {
    fn fmt_as(&self, kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.replaced.fmt_as(kind, f)
    }
}

#[async_trait]
impl FileSink for TextSink {
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
        let (compression, level) = self.compression;
        let (compression, rows) = (compression.into(), Arc::clone(&self.serializer));
        spawn_writer_tasks_and_join(context, rows, compression, level, store, demux_task, files)
            .await
    }
}

#[async_trait]
impl DataSink for TextSink {
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
