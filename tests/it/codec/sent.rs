//! Sends the plan of a query to another session, and compares what both declare.

use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion::common::tree_node::TreeNode;
use datafusion::error::Result;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{
    DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, collect,
};
use datafusion::prelude::SessionContext;
use datafusion_proto::bytes::physical_plan_from_bytes_with_proto_converter as from_bytes;
use datafusion_proto::bytes::physical_plan_to_bytes_with_extension_codec;
use datafusion_proto::bytes::physical_plan_to_bytes_with_proto_converter as to_bytes;
use datafusion_proto::physical_plan::DeduplicatingProtoConverter;
use gridfusion::codec::{GridfusionCodec, TravelledExec};
use gridfusion::exec::messages_lose_parts;

/// The plan of a query.
pub(crate) async fn plan(ctx: &SessionContext, sql: &str) -> Result<Arc<dyn ExecutionPlan>> {
    ctx.sql(sql).await?.create_physical_plan().await
}

/// A plan as bytes.
pub(crate) fn bytes(plan: &Arc<dyn ExecutionPlan>) -> Result<Vec<u8>> {
    let converter = DeduplicatingProtoConverter {};
    Ok(to_bytes(Arc::clone(plan), &GridfusionCodec, &converter)?.to_vec())
}

/// The plan of these bytes in a session.
pub(crate) fn received(bytes: &[u8], worker: &SessionContext) -> Result<Arc<dyn ExecutionPlan>> {
    let converter = DeduplicatingProtoConverter {};
    from_bytes(bytes, &worker.task_ctx(), &GridfusionCodec, &converter)
}

/// Plans a query in one session, and runs it in another.
pub(crate) async fn query_sent(
    ctx: &SessionContext,
    worker: &SessionContext,
    sql: &str,
) -> Result<Vec<RecordBatch>> {
    let sent = plan(ctx, sql).await?;
    let received = received(&bytes(&sent)?, worker)?;
    assert_alike(&sent, &received, sql);
    // A stage may be sent on, without having run.
    let again = self::received(&bytes(&received)?, worker)?;
    assert_alike(&sent, &again, sql);
    collect(again, worker.task_ctx()).await
}

/// Whether DataFusion's messages lose parts of the plan of a query: windows over rows, which run where they were planned.
pub(crate) async fn loses_parts(ctx: &SessionContext, sql: &str) -> bool {
    let lossy = |node: &Arc<dyn ExecutionPlan>| Ok(messages_lose_parts(node.as_ref()));
    plan(ctx, sql).await.is_ok_and(|plan| plan.exists(lossy).unwrap())
}

/// Whether a plan has nodes that travelled.
pub(crate) fn travelled(plan: &Arc<dyn ExecutionPlan>) -> usize {
    let own = usize::from(plan.is::<TravelledExec>());
    own + plan.children().into_iter().map(travelled).sum::<usize>()
}

/// Compares the text of both plans, and what the nodes of gridfusion declare.
fn assert_alike(sent: &Arc<dyn ExecutionPlan>, received: &Arc<dyn ExecutionPlan>, sql: &str) {
    let (sent, received) = (ours(sent), ours(received));
    assert_eq!(sent.len(), received.len(), "{sql}");
    for (sent, received) in sent.iter().zip(&received) {
        assert_eq!(received.name(), sent.name(), "{sql}");
        for format in [DisplayFormatType::Default, DisplayFormatType::TreeRender] {
            assert_eq!(text(received, format), text(sent, format), "{sql}");
        }
        assert_eq!(received.schema(), sent.schema(), "{sql}");
        // Partitions of which nothing is known differ from each other, so their texts are compared.
        let partitions = |plan: &Arc<dyn ExecutionPlan>| plan.output_partitioning().to_string();
        assert_eq!(partitions(received), partitions(sent), "{sql}");
        let orders = |plan: &Arc<dyn ExecutionPlan>| {
            let known = plan.equivalence_properties().oeq_class();
            known.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(orders(received), orders(sent), "{sql}");
        assert_eq!(received.fetch(), sent.fetch(), "{sql}");
        let partitions = (0..sent.output_partitioning().partition_count()).map(Some);
        for partition in partitions.chain([None]) {
            let arguments = StatisticsArgs::new().with_partition(partition);
            let of = |plan: &Arc<dyn ExecutionPlan>| {
                StatisticsContext::new().compute(plan.as_ref(), &arguments).unwrap()
            };
            assert_eq!(of(received), of(sent), "{sql}: {partition:?}");
        }
    }
}

/// The nodes of gridfusion in a plan.
fn ours(plan: &Arc<dyn ExecutionPlan>) -> Vec<Arc<dyn ExecutionPlan>> {
    const NAMES: [&str; 8] = [
        "GridScanExec",
        "GridReduceExec",
        "GridJoinReduceExec",
        "GridLookupExec",
        "GridWindowExec",
        "GridTopExec",
        "SparseScanExec",
        "SparseAnswerExec",
    ];
    let own = NAMES.contains(&plan.name()).then(|| Arc::clone(plan));
    own.into_iter().chain(plan.children().into_iter().flat_map(ours)).collect()
}

/// The text of a node alone.
fn text(plan: &Arc<dyn ExecutionPlan>, format: DisplayFormatType) -> String {
    struct Text<'a>(&'a dyn ExecutionPlan, DisplayFormatType);
    impl std::fmt::Display for Text<'_> {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            self.0.fmt_as(self.1, f)
        }
    }
    Text(plan.as_ref(), format).to_string()
}

/// The nodes at the end of a plan.
pub(crate) fn leaves(plan: &Arc<dyn ExecutionPlan>) -> Vec<Arc<dyn ExecutionPlan>> {
    match plan.children().as_slice() {
        [] => vec![Arc::clone(plan)],
        children => children.iter().flat_map(|child| leaves(child)).collect(),
    }
}

/// The bytes of a plan without the converter that knows equal expressions.
pub(crate) fn plain_bytes(plan: &Arc<dyn ExecutionPlan>) -> Result<Vec<u8>> {
    Ok(physical_plan_to_bytes_with_extension_codec(Arc::clone(plan), &GridfusionCodec)?.to_vec())
}
