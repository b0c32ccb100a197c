//! [`ClusterPlanner`]: plans of a cluster's session, what `EXPLAIN` shows of them, and queries that cannot leave the process.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::display::{PlanType, StringifiedPlan};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::{Explain, ExplainFormat, LogicalPlan};
use datafusion::physical_plan::analyze::AnalyzeExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::explain::ExplainExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, ExecutionPlan, Partitioning, ReplaceChildrenOptions,
};
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};
use datafusion_distributed::{
    BroadcastExec, DistributedExec, DistributedLeafExec, display_plan_ascii,
};
use gridfusion::GridfusionConfig;
use gridfusion::codec::{
    SharedLeaf, has_large_grid, refuse_secret_url, with_shared_joins, without_shared_joins,
};
use gridfusion::exec::{GridJoinReduceExec, GridLookupExec, messages_lose_parts};

/// Plans by datafusion-distributed, and in one process if a table cannot be opened elsewhere.
#[derive(Debug)]
pub(crate) struct ClusterPlanner {
    /// The planner of datafusion-distributed.
    distributed: Arc<dyn QueryPlanner + Send + Sync>,
    /// The planner that the session had before; `None` for DataFusion's own.
    alone: Option<Arc<dyn QueryPlanner + Send + Sync>>,
}

impl ClusterPlanner {
    pub(crate) fn new(
        distributed: Arc<dyn QueryPlanner + Send + Sync>,
        alone: Option<Arc<dyn QueryPlanner + Send + Sync>>,
    ) -> Self {
        Self { distributed, alone }
    }

    async fn plan(
        &self,
        logical: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = self.distributed.create_physical_plan(logical, session).await?;
        if !plan.exists(|node| Ok(node.is::<DistributedExec>()))? {
            return without_shared_joins(plan);
        }
        let Some(reason) = stays(&plan)? else { return Ok(plan) };
        log::warn!("the query runs without workers: {reason}");
        planned_by(self.alone.as_ref(), logical, session).await
    }

    /// Shows the stages and tasks of a plan in place of the plan for one process.
    async fn explained(
        &self,
        explain: &Explain,
        shown: &ExplainExec,
        session: &dyn Session,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        if !matches!(explain.explain_format, ExplainFormat::Indent | ExplainFormat::Tree) {
            return Ok(None);
        }
        let plan = self.plan(&explain.plan, session).await?;
        if !plan.is::<DistributedExec>() {
            return Ok(None);
        }
        let stages = display_plan_ascii(plan.as_ref(), false);
        let text = |shown: &StringifiedPlan| match shown.plan_type {
            PlanType::FinalPhysicalPlan => {
                StringifiedPlan::new(PlanType::FinalPhysicalPlan, stages.as_str())
            }
            _ => shown.clone(),
        };
        let texts = shown.stringified_plans().iter().map(text).collect();
        Ok(Some(Arc::new(ExplainExec::new(shown.schema(), texts, shown.verbose()))))
    }
}

#[async_trait]
impl QueryPlanner for ClusterPlanner {
    async fn create_physical_plan(
        &self,
        logical: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = self.plan(logical, session).await?;
        let LogicalPlan::Explain(explain) = logical else { return Ok(plan) };
        let Some(shown) = plan.downcast_ref::<ExplainExec>() else { return Ok(plan) };
        Ok(self.explained(explain, shown, session).await?.unwrap_or(plan))
    }
}

async fn planned_by(
    planner: Option<&Arc<dyn QueryPlanner + Send + Sync>>,
    logical: &LogicalPlan,
    session: &dyn Session,
) -> Result<Arc<dyn ExecutionPlan>> {
    match planner {
        Some(planner) => planner.create_physical_plan(logical, session).await,
        None => DefaultPhysicalPlanner::default().create_physical_plan(logical, session).await,
    }
}

/// Plans for one process, but each join that looks up rows is one that tasks can share. The rows are broadcast to them.
#[derive(Debug)]
pub(crate) struct SharedJoinPlanner {
    /// The planner that the session had before; `None` for DataFusion's own.
    pub(crate) alone: Option<Arc<dyn QueryPlanner + Send + Sync>>,
}

#[async_trait]
impl QueryPlanner for SharedJoinPlanner {
    async fn create_physical_plan(
        &self,
        logical: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = planned_by(self.alone.as_ref(), logical, session).await?;
        let config = session.config_options().extensions.get::<GridfusionConfig>();
        let most = config.map_or(usize::MAX, |config| config.optimizer.reduce_memory);
        without_lost_repartitions(with_shared_joins(plan, most, &broadcast)?)
    }
}

/// Leaves out repartitions that datafusion-distributed 4.0 takes off the top of a stage, but whose partitions it still counts. They
/// deal rows to more partitions just before all are merged.
fn without_lost_repartitions(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let below = |node: &Arc<dyn ExecutionPlan>| {
        let dealt = node.downcast_ref::<RepartitionExec>();
        let dealt =
            dealt.filter(|it| matches!(it.partitioning(), Partitioning::RoundRobinBatch(_)));
        dealt.map(|it| Arc::clone(it.input()))
    };
    let plan = below(&plan).unwrap_or(plan);
    plan.transform_down(|node| {
        let merges = node.is::<CoalescePartitionsExec>()
            || node.is::<SortPreservingMergeExec>()
            || node.is::<AnalyzeExec>();
        let Some(input) = node.children().first().filter(|_| merges).and_then(|it| below(it))
        else {
            return Ok(Transformed::no(node));
        };
        let recompute = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        node.replace_children(vec![input], recompute).map(Transformed::yes)
    })
    .data()
}

/// Sends all of these rows to each task. Tasks get partitions in no order, so a limit of the rows stays below.
fn broadcast(rows: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    let coalesced = rows.downcast_ref::<CoalescePartitionsExec>().filter(|it| it.fetch().is_none());
    let rows = match coalesced {
        Some(coalesced) => Arc::clone(coalesced.input()),
        None => rows,
    };
    Arc::new(CoalescePartitionsExec::new(Arc::new(BroadcastExec::new(rows, 1))))
}

/// Returns why a plan for several processes must run in this one: it reads an array that only this process has, or it would
/// lose a condition on the way.
fn stays(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<&'static str>> {
    // Encoding would fail too, but only when the query runs, and with the whole plan in its message.
    plan.apply(|node| {
        let divided = node.downcast_ref::<DistributedLeafExec>();
        let leaf = divided.map_or(node, DistributedLeafExec::original);
        SharedLeaf::from_node(leaf).map_or(Ok(()), |leaf| leaf.check_secrets())?;
        // The messages of DataFusion hold the URL of the store of other files as it is.
        let source = leaf.downcast_ref::<DataSourceExec>().map(DataSourceExec::data_source);
        if let Some(files) = source.and_then(|it| it.downcast_ref::<FileScanConfig>()) {
            refuse_secret_url(files.object_store_url.as_str())?;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    let is_own = |node: &Arc<dyn ExecutionPlan>| {
        Ok(SharedLeaf::from_node(node).is_some_and(|leaf| leaf.origin().is_none()))
    };
    Ok(if plan.exists(is_own)? {
        Some(
            "it reads an array that the program opened itself, which no other process can open; register it by its path or URL",
        )
    } else if plan.exists(|node| Ok(messages_lose_parts(node.as_ref())))? {
        Some(
            "it has a window with FILTER, IGNORE NULLS or a function that runs against the order of its rows, which DataFusion 55 \
             leaves out of plans for other processes",
        )
    } else if plan
        .exists(|node| Ok(node.is::<GridLookupExec>() || node.is::<GridJoinReduceExec>()))?
    {
        Some(
            "it looks up so many rows of a join that not each process should hold them all; `SET gridfusion.optimizer.enable_lookup_joins = false` hashes them",
        )
    } else if plan.exists(|node| Ok(has_large_grid(node.as_ref())))? {
        Some(
            "it finds cells of a grid with many coordinates, which no other process can read from their array",
        )
    } else {
        None
    })
}
