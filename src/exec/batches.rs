//! [`Batches`]: what makes the rows of a partition, batch by batch.

use std::future::Future;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::error::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::Stream;
use futures::stream::try_unfold;

/// A producer of the batches of one partition.
pub(super) trait Batches: Sized + Send + 'static {
    /// Returns the next batch, or `None` at the end.
    fn next(&mut self) -> impl Future<Output = Result<Option<RecordBatch>>> + Send;

    /// Returns the batches. Nothing runs before the first poll. The stream owns the producer and passes it from batch to
    /// batch.
    fn into_stream(self) -> impl Stream<Item = Result<RecordBatch>> + Send {
        try_unfold(self, |mut producer| async move {
            let batch = producer.next().await?;
            Ok(batch.map(|batch| (batch, producer)))
        })
    }
}

/// Returns batches as the rows of an operator, which let others run.
pub(super) fn stream_of(
    schema: SchemaRef,
    batches: impl Stream<Item = Result<RecordBatch>> + Send + 'static,
) -> SendableRecordBatchStream {
    Box::pin(cooperative(RecordBatchStreamAdapter::new(schema, Box::pin(batches))))
}
