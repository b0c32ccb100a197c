//! [`GridReduceExec`]: an aggregation over dimensions as a reduction of chunks.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Statistics, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::execution_plan::{
    Boundedness, EmissionType, ReplaceChildrenOptions, SchedulingType,
};
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation,
};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
};

use super::accumulate::AccumulatePlan;
use super::dense::DensePlan;
use super::keys::Keys;
use super::query::Query;
use super::slabs::{Slab, as_planned, without_shared_groups};
use super::stream;
use crate::array::GridArray;
use crate::exec::columns::{Expr, columns_of, visit_all};
use crate::exec::config::GridfusionConfig;
use crate::exec::dynamic::dynamic_filters;
use crate::exec::{GridScanExec, display, without_children};
use crate::plan::ScanPlan;

/// Who folds the cells.
#[derive(Debug, Clone)]
pub(super) enum Tier {
    /// The dense kernels.
    Dense(DensePlan),
    /// DataFusion's accumulators.
    Accumulators(AccumulatePlan),
}

/// Aggregates the chunks of a scan by group, without making rows of them.
///
/// ```text
/// GridReduceExec: mode=whole, gby=[time], aggr=[avg(temperature.value)], tier=dense, groups=1440, dataset=temperature, chunks=6/6
/// ```
///
/// Planned by [`GridReduceRule`](super::GridReduceRule). In `mode=partial` it yields the states of
/// DataFusion's partial aggregation, for its final stage to merge; in `mode=whole` final values. If
/// the groups do not get their memory, the partition is aggregated over rows after all.
#[derive(Debug, Clone)]
pub struct GridReduceExec {
    pub(super) array: Arc<GridArray>,
    /// One per partition.
    pub(super) slabs: Vec<Slab>,
    pub(super) keys: Keys,
    pub(super) tier: Tier,
    pub(super) whole: bool,
    /// For display; the tiers have it in their own ways.
    predicate: Option<Expr>,
    /// The aggregation that this replaces.
    rows: AggregateExec,
    /// Groups for which one of these is not true need not be there; over the output.
    pub(super) filters: Vec<Expr>,
    /// The plan of the scan; keys are numbered over its selection, and slabs are parts of it.
    pub(super) plan: Arc<ScanPlan>,
    pub(super) schema: SchemaRef,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl GridReduceExec {
    /// A reduction that does what `aggregate` does, or `None` if there is none. With a schema for it,
    /// one that yields final values if no group is in two partitions; otherwise partial states.
    pub(super) fn replacing(
        aggregate: &AggregateExec,
        whole: Option<SchemaRef>,
        config: &GridfusionConfig,
    ) -> Result<Option<Self>> {
        let Some(query) = Query::of(aggregate)? else { return Ok(None) };
        let Some(scan) = query.scan.downcast_ref::<GridScanExec>() else { return Ok(None) };
        let Some(keys) = Keys::number(&query, scan) else { return Ok(None) };
        let tier = match DensePlan::of(&query, scan) {
            Some(dense) => Tier::Dense(dense),
            None => match AccumulatePlan::of(&query, scan)? {
                Some(accumulate) => Tier::Accumulators(accumulate),
                None => return Ok(None),
            },
        };
        let plan = Arc::clone(scan.plan());
        let apart =
            whole.and_then(|schema| Some((without_shared_groups(&plan, &keys.axes)?, schema)));
        let whole = apart.is_some();
        let (slabs, schema) = apart.unwrap_or_else(|| (as_planned(&plan), aggregate.schema()));
        // Slabs share the groups between them; other partitions may each have all of them.
        let tables = if whole { 1 } else { slabs.len() as u64 };
        if keys.groups > 1 && !worthwhile(&keys, &tier, &plan, tables, config) {
            return Ok(None);
        }
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(slabs.len()),
            EmissionType::Final,
            Boundedness::Bounded,
        )
        .with_scheduling_type(SchedulingType::Cooperative);
        Ok(Some(Self {
            array: Arc::clone(scan.array()),
            slabs,
            keys,
            tier,
            whole,
            predicate: query.predicate.clone(),
            rows: aggregate.clone(),
            filters: vec![],
            plan,
            schema,
            metrics: ExecutionPlanMetricsSet::new(),
            properties: Arc::new(properties),
        }))
    }

    /// Whether it yields final values.
    pub(super) fn is_whole(&self) -> bool {
        self.whole
    }

    /// Bytes that the table takes per group.
    pub(super) fn bytes_per_group(&self) -> u64 {
        bytes_per_group(&self.keys, &self.tier)
    }

    /// Whether the same over rows may do with less memory. DataFusion spills the states of groups, and reads
    /// them back in batches: values that are held fit only if a batch has few of all groups.
    pub(super) fn rows_may_take_less(&self, batch_size: usize) -> bool {
        /// Batches of groups.
        const MANY: u64 = 8;
        match &self.tier {
            Tier::Accumulators(plan) if plan.holds_values() => {
                self.keys.groups > MANY * batch_size as u64
            }
            _ => true,
        }
    }

    /// The same partition of the aggregation that this replaces, over rows.
    pub(super) fn over_rows(&self, partition: usize) -> Result<Arc<dyn ExecutionPlan>> {
        let slab = &self.slabs[partition];
        let input = Arc::clone(self.rows.input())
            .transform_up(|node| {
                if let Some(scan) = node.downcast_ref::<GridScanExec>() {
                    let scan = scan.over_plan(Arc::clone(&slab.plan))?;
                    return Ok(Transformed::yes(Arc::new(scan) as Arc<dyn ExecutionPlan>));
                }
                // Another partitioning than ours.
                Ok(match node.downcast_ref::<RepartitionExec>() {
                    Some(repartition) => Transformed::yes(Arc::clone(repartition.input())),
                    None => Transformed::no(node),
                })
            })
            .data()?;
        let mode = if self.whole { AggregateMode::Single } else { AggregateMode::Partial };
        Ok(Arc::new(AggregateExec::try_new(
            mode,
            self.rows.group_expr().clone(),
            self.rows.aggr_expr().to_vec(),
            self.rows.filter_expr().to_vec(),
            input,
            self.rows.input_schema(),
        )?))
    }

    fn parts(&self) -> Vec<String> {
        let keys: Vec<&str> =
            self.rows.group_expr().expr().iter().map(|(_, name)| name.as_str()).collect();
        let aggregates: Vec<&str> =
            self.rows.aggr_expr().iter().map(|aggregate| aggregate.name()).collect();
        let tier = match &self.tier {
            Tier::Dense(_) => "dense",
            Tier::Accumulators(_) => "accumulators",
        };
        let mut parts = vec![
            format!("mode={}", if self.whole { "whole" } else { "partial" }),
            format!("gby=[{}]", keys.join(", ")),
            format!("aggr=[{}]", aggregates.join(", ")),
            format!("tier={tier}"),
            format!("groups={}", self.keys.groups),
        ];
        parts.extend(self.predicate.as_ref().map(|predicate| format!("predicate={predicate}")));
        parts.extend(display::parts(&self.array, &self.plan));
        parts.extend(display::filters(&self.filters));
        parts
    }
}

fn bytes_per_group(keys: &Keys, tier: &Tier) -> u64 {
    /// What an accumulator takes at least: a few words.
    const ACCUMULATOR: u64 = 32;
    let states = match tier {
        Tier::Dense(dense) => dense.bytes_per_group(),
        Tier::Accumulators(plan) => ACCUMULATOR * plan.calls.len() as u64,
    };
    // The states, the output made of them, and the output again without groups that had no row; the
    // places of groups, and the keys.
    3 * states + 16 + 16 * keys.columns.len() as u64
}

/// Whether the tables of groups are small enough, beside the memory allowed and the rows there are.
fn worthwhile(
    keys: &Keys,
    tier: &Tier,
    plan: &ScanPlan,
    tables: u64,
    config: &GridfusionConfig,
) -> bool {
    /// Smaller tables cost nothing worth mentioning.
    const SMALL: u64 = 1 << 16;
    let bytes = keys.groups.saturating_mul(tables).saturating_mul(bytes_per_group(keys, tier));
    bytes <= config.reduce_memory as u64 && (keys.groups <= SMALL || keys.groups <= plan.rows(None))
}

impl DisplayAs for GridReduceExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match format {
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                write!(f, "GridReduceExec: {}", self.parts().join(", "))
            }
            DisplayFormatType::TreeRender => {
                self.parts().iter().try_for_each(|part| writeln!(f, "{part}"))
            }
        }
    }
}

impl ExecutionPlan for GridReduceExec {
    fn name(&self) -> &'static str {
        "GridReduceExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![]
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let of_tier = match &self.tier {
            Tier::Accumulators(plan) => plan.expressions().collect(),
            Tier::Dense(_) => vec![],
        };
        visit_all(of_tier.into_iter().chain(&self.filters), visit)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        without_children(self, &children)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        without_children(self, &children)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        if partition >= self.slabs.len() {
            return internal_err!("GridReduceExec has no partition {partition}");
        }
        Ok(stream::reduce(Arc::new(self.clone()), partition, &self.metrics, context))
    }

    fn handle_child_pushdown_result(
        &self,
        phase: FilterPushdownPhase,
        pushed: ChildPushdownResult,
        _: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        Ok(dynamic_filters(phase, pushed, |filters| {
            let keys = self.keys.columns.len();
            let of_keys = |filter: &Expr| columns_of([filter]).first().is_some_and(|at| *at < keys);
            let filters: Vec<Expr> = filters.into_iter().filter(of_keys).collect();
            let metrics = ExecutionPlanMetricsSet::new();
            let filters = [self.filters.clone(), filters].concat();
            (!filters.is_empty()).then(|| Self { filters, metrics, ..self.clone() })
        }))
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        let metrics = ExecutionPlanMetricsSet::new();
        Ok(Arc::new(Self { filters: vec![], metrics, ..Self::clone(&self) }))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let mut statistics = Statistics::new_unknown(&self.schema);
        if args.partition().is_none() {
            statistics.num_rows = Precision::Inexact(self.keys.groups as usize);
        }
        Ok(Arc::new(statistics))
    }
}
