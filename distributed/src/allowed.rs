//! [`AllowedOperators`]: the operators that a worker runs for others.
//!
//! ```text
//!   plan of a sender ──decode──▶ every node, also nested ones ──▶ Allowed ──▶ run
//!                                  COPY, INSERT, files of CSV …  ──▶ an error, before anything runs
//! ```
//!
//! The list names what is allowed. So a node that DataFusion adds later is refused until it is on the list.

use std::sync::Arc;

use datafusion::common::plan_err;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::buffer::BufferExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{
    CrossJoinExec, HashJoinExec, NestedLoopJoinExec, PiecewiseMergeJoinExec, SortMergeJoinExec,
    SymmetricHashJoinExec,
};
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::memory::LazyMemoryExec;
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::scalar_subquery::ScalarSubqueryExec;
use datafusion::physical_plan::sorts::partial_sort::PartialSortExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::union::{InterleaveExec, UnionExec};
use datafusion::physical_plan::unnest::UnnestExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion_distributed::{
    BroadcastExec, NetworkBroadcastExec, NetworkCoalesceExec, NetworkShuffleExec,
};
use gridfusion::codec::{TravelledExec, visit_every_node};

/// A program's own test of nodes.
type Others = Arc<dyn Fn(&Arc<dyn ExecutionPlan>) -> bool + Send + Sync>;

/// The operators that a worker runs: scans and reductions of gridfusion, and those of DataFusion that only compute.
#[derive(Clone, Default)]
pub(crate) struct AllowedOperators {
    /// Whether files of DataFusion's formats may be read.
    pub(crate) files: bool,
    /// Nodes that the program allows besides.
    pub(crate) others: Option<Others>,
}

impl AllowedOperators {
    /// Fails if a plan has a node that is not allowed, at any depth.
    pub(crate) fn check(&self, plan: &Arc<dyn ExecutionPlan>) -> Result<()> {
        visit_every_node(plan, &mut |node| {
            if node.is::<TravelledExec>() || computes(node) {
                return Ok(());
            }
            if let Some(source) = node.downcast_ref::<DataSourceExec>() {
                let source = source.data_source();
                if source.is::<MemorySourceConfig>() || self.files && source.is::<FileScanConfig>()
                {
                    return Ok(());
                }
                if source.is::<FileScanConfig>() {
                    return plan_err!(
                        "this worker reads arrays only, and the query reads files of another format; start the worker with \
                         --allow-files, or run the query without --workers"
                    );
                }
            }
            if self.others.as_ref().is_some_and(|allows| allows(node)) {
                return Ok(());
            }
            plan_err!("a worker does not run {} for others", node.name())
        })
    }
}

/// Whether a node only computes from its inputs, or passes rows on between the processes of a query.
fn computes(node: &Arc<dyn ExecutionPlan>) -> bool {
    macro_rules! is_any {
        ($($node:ty),* $(,)?) => { $(node.is::<$node>())||* };
    }
    is_any![
        AggregateExec,
        BoundedWindowAggExec,
        BroadcastExec,
        BufferExec,
        CoalescePartitionsExec,
        CooperativeExec,
        CrossJoinExec,
        EmptyExec,
        FilterExec,
        GlobalLimitExec,
        HashJoinExec,
        InterleaveExec,
        LazyMemoryExec,
        LocalLimitExec,
        NestedLoopJoinExec,
        NetworkBroadcastExec,
        NetworkCoalesceExec,
        NetworkShuffleExec,
        PartialSortExec,
        PiecewiseMergeJoinExec,
        PlaceholderRowExec,
        ProjectionExec,
        RepartitionExec,
        ScalarSubqueryExec,
        SortExec,
        SortMergeJoinExec,
        SortPreservingMergeExec,
        SymmetricHashJoinExec,
        UnionExec,
        UnnestExec,
        WindowAggExec,
    ] || is_private(node)
}

/// Whether a node is one of those of datafusion-distributed whose types are private. Their names are fixed, and no node that can
/// be decoded chooses its own name but [`TravelledExec`].
fn is_private(node: &Arc<dyn ExecutionPlan>) -> bool {
    matches!(node.name(), "ChildrenIsolatorUnionExec" | "SamplerExec")
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use datafusion::error::DataFusionError;
    use datafusion::execution::SessionStateBuilder;
    use datafusion::prelude::SessionContext;
    use datafusion_distributed::{ChannelResolver, MaybeEncoded, SetPlanRequest, TaskKey};
    use futures::StreamExt;
    use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
    use http::HeaderMap;
    use tokio::net::TcpListener;
    use url::Url;

    use crate::channel::Channels;
    use crate::workers::Workers;
    use crate::{Cluster, WorkerServer};

    const STATIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/data/stations.tet");

    /// Sends the plan of a statement to a worker, as no coordinator would, and returns the answer.
    async fn answer(server: WorkerServer, sql: &str) -> Result<(), DataFusionError> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = Url::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        let worker = tokio::spawn(server.serve(listener, std::future::pending()));
        let alone = SessionContext::new();
        alone.enable_gridfusion();
        let options = ArrayOptions::default().with_dataset("temperature");
        alone.register_array("t", STATIONS, options).await.unwrap();
        let csv = "CREATE EXTERNAL TABLE csv (line VARCHAR) STORED AS CSV LOCATION";
        let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        alone.sql(&format!("{csv} '{manifest}'")).await.unwrap();
        let plan = alone.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
        let cluster = Cluster::new([url.as_str()]).unwrap();
        let state = SessionStateBuilder::new_from_existing(alone.state());
        let coordinator =
            SessionContext::new_with_state(cluster.coordinate(state).unwrap().build());
        let channels = Channels::new(Workers::new(vec![url.clone()]), None, None);
        let mut client = channels.get_worker_client_for_url(&url).await.unwrap();
        let request = SetPlanRequest {
            task_key: TaskKey { query_id: Default::default(), stage_id: 1, task_number: 0 },
            task_count: 1,
            plan: MaybeEncoded::Decoded(plan),
            work_unit_feed_declarations: vec![],
            target_worker_url: url,
            query_start_time_ns: 0,
        };
        let messages = futures::stream::pending().boxed();
        let context = coordinator.task_ctx();
        let answers = client
            .coordinator_channel(HeaderMap::new(), request, messages, Default::default(), &context)
            .await;
        let first = match answers {
            Ok(mut answers) => answers.next().await.transpose().map(drop),
            Err(error) => Err(error),
        };
        worker.abort();
        first
    }

    fn worker() -> WorkerServer {
        WorkerServer::default().without_token()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn plans_that_write_or_read_other_files_are_refused() {
        let target: PathBuf =
            std::env::temp_dir().join(format!("gridfusion-{}.csv", std::process::id()));
        let copy = format!("COPY (SELECT 1) TO '{}'", target.display());
        for (server, sql, expected) in [
            (worker(), copy.as_str(), "does not run DataSinkExec"),
            (worker().with_files(), copy.as_str(), "does not run DataSinkExec"),
            (worker(), "SELECT * FROM csv", "--allow-files"),
            (worker(), "SELECT * FROM t WHERE station IN (SELECT line FROM csv)", "--allow-files"),
            (worker(), "EXPLAIN ANALYZE SELECT 1", "does not run AnalyzeExec"),
        ] {
            let error = answer(server, sql).await.expect_err(sql).to_string();
            assert!(error.contains(expected), "{sql}: {error}");
            assert!(error.len() < 300, "{sql}: {error}");
        }
        assert!(!target.exists());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn plans_that_only_read_arrays_and_compute_are_accepted() {
        for sql in [
            "SELECT station, avg(value), stddev(value) FROM t GROUP BY station HAVING avg(value) > 0",
            "SELECT * FROM t ORDER BY value DESC LIMIT 5",
            "SELECT time, avg(value) OVER (PARTITION BY station ORDER BY time ROWS 3 PRECEDING) FROM t",
            "SELECT count(*) FROM t a JOIN t b ON a.time = b.time AND a.value < b.value",
            "SELECT count(*) FROM t a FULL JOIN (VALUES ('Oslo', 1)) v (s, n) ON a.station = s",
            "SELECT value FROM t UNION ALL SELECT value FROM generate_series(1, 3) ORDER BY 1",
            "SELECT unnest(make_array(value, 1)) FROM t WHERE value > (SELECT avg(value) FROM t)",
            "SELECT DISTINCT station FROM t CROSS JOIN (SELECT 1) o",
        ] {
            answer(worker(), sql).await.expect(sql);
        }
        answer(worker().with_files(), "SELECT * FROM csv").await.expect("files are allowed");
    }
}
