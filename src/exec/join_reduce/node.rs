//! [`GridJoinReduceExec`]: the operator for aggregations above joins that look up rows.

use std::fmt;
use std::sync::{Arc, OnceLock};

use arrow::datatypes::SchemaRef;
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExprRef};
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::{Distribution, ExecutionPlan, Partitioning};
use futures::FutureExt;

use super::built_groups::{BuiltGroups, HeldGroups, SharedGroups};
use super::reduction::JoinReduction;
use super::stream;
use crate::error::Error;
use crate::exec::config::GridfusionConfig;
use crate::exec::operator::{Frame, Operator, declared, operator_methods, shown_by_text};
use crate::exec::reduce::{Cuts, Output, shares_apart};
use crate::exec::{GridLookupExec, display};
use crate::plan::ScanPlan;

/// An operator that aggregates the pairs of a join of an array with the rows of another input. The group of a pair is computed
/// from the number of the row's keys and the labels of the cell, so no pair is hashed.
///
/// ```text
/// GridJoinReduceExec: mode=whole, gby=[region, time], aggr=[avg(t.value)], tier=sparse, on=[(lat@1, lat@1)], dataset=t, chunks=6/6
///   DataSourceExec: partitions=1
/// ```
///
/// The rule `GridJoinReduce` plans the operator. In the mode `whole` it yields final values, because partitions share no group.
/// In the mode `partial` it yields the states of DataFusion's functions.
///
/// All rows of the input and all groups are held in memory. If there are more possible groups than pairs, or memory is short, the
/// operator aggregates rows as it was planned before.
#[derive(Clone)]
pub struct GridJoinReduceExec {
    reduction: Arc<JoinReduction>,
    /// The join, with the input.
    lookup: GridLookupExec,
    groups: Arc<OnceLock<SharedGroups>>,
    frame: Frame,
}

impl fmt::Debug for GridJoinReduceExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GridJoinReduceExec")
            .field("reduction", &self.reduction)
            .finish_non_exhaustive()
    }
}

impl GridJoinReduceExec {
    /// Makes an operator that is equivalent to `aggregate`; `None` if the aggregation cannot be reduced.
    pub(super) fn replacing(
        aggregate: &AggregateExec,
        output: Output,
        config: &GridfusionConfig,
    ) -> Result<Option<Self>> {
        let made = JoinReduction::try_new(aggregate, output, config)?;
        Ok(made.map(|(reduction, lookup)| {
            let properties = declared(
                EquivalenceProperties::new(Arc::clone(&reduction.schema)),
                Partitioning::UnknownPartitioning(reduction.partitions.len()),
                EmissionType::Final,
            );
            let (reduction, frame) = (Arc::new(reduction), Frame::new(properties));
            Self { reduction, lookup, groups: Arc::default(), frame }
        }))
    }

    /// Makes an operator that was planned before. It yields final values of the schema `whole` if that is given.
    ///
    /// # Errors
    /// `Unsupported` if the aggregation cannot be reduced so.
    pub fn as_planned(aggregate: &AggregateExec, whole: Option<SchemaRef>) -> Result<Self> {
        let is_whole = whole.is_some();
        // It was worth its memory where it was planned.
        let config = GridfusionConfig::unlimited(true);
        let made =
            Self::replacing(aggregate, whole.map_or(Output::States, Output::Whole), &config)?;
        let made = made.filter(|node| node.is_whole() == is_whole);
        made.ok_or_else(|| {
            Error::unsupported("the join cannot be aggregated here as it was planned").into()
        })
    }

    /// Returns `count` plans of the array whose reductions together yield what this one yields. If these are final values, the plans
    /// have no group in common, and some may be empty.
    #[cfg_attr(not(feature = "codec"), allow(dead_code, reason = "only plans that travel need it"))]
    pub(crate) fn share_plans(&self, count: usize) -> Vec<ScanPlan> {
        let plan = self.lookup.scan().plan();
        match self.is_whole() {
            true => shares_apart(plan, &self.reduction.axes, count, Cuts::Cheap),
            false => plan.shares(count),
        }
    }

    /// Returns the same operator by another plan of the array. It looks up all rows of the input.
    ///
    /// # Errors
    /// Internal errors only.
    #[cfg_attr(not(feature = "codec"), allow(dead_code, reason = "only plans that travel need it"))]
    pub(crate) fn over_plan(&self, plan: &Arc<ScanPlan>) -> Result<Self> {
        let lookup: Arc<dyn ExecutionPlan> = Arc::new(self.lookup.over_plan(plan)?);
        let rows = self.reduction.rows_over(&lookup, AggregateMode::Partial)?;
        let share = Self::as_planned(&rows, self.is_whole().then(|| self.schema()))?;
        Ok(share.with_frame(share.frame.anew().with_filters(self.frame.filters().to_vec())))
    }

    /// Whether the operator yields final values.
    pub fn is_whole(&self) -> bool {
        self.reduction.whole
    }

    /// Returns the join whose pairs are aggregated.
    pub fn lookup(&self) -> &GridLookupExec {
        &self.lookup
    }

    /// Returns the aggregation over rows that the operator replaces, over the same join. It is the first stage if there are two.
    ///
    /// # Errors
    /// Internal errors only.
    pub fn rows(&self) -> Result<AggregateExec> {
        let lookup: Arc<dyn ExecutionPlan> = Arc::new(self.lookup.clone());
        self.reduction.rows_over(&lookup, AggregateMode::Partial)
    }

    /// Returns the groups of the other side; starts to read it with the first poll.
    fn groups(&self, context: &Arc<TaskContext>) -> SharedGroups {
        let read = || {
            let (reduction, rows) = (Arc::clone(&self.reduction), self.lookup.rows(context));
            let consumer = MemoryConsumer::new("GridJoinReduceExec: rows");
            let reservation = consumer.register(context.memory_pool());
            let groups = rows.map(move |side| {
                let groups = BuiltGroups::try_new(&reduction, side?, reservation);
                groups.map(|it| Arc::new(HeldGroups::new(it))).map_err(Arc::new)
            });
            groups.boxed().shared()
        };
        self.groups.get_or_init(read).clone()
    }
}

shown_by_text!(GridJoinReduceExec);

impl Operator for GridJoinReduceExec {
    fn frame(&self) -> &Frame {
        &self.frame
    }

    fn with_frame(&self, frame: Frame) -> Self {
        let lookup = self.lookup.with_frame(self.lookup.frame().anew());
        Self { frame, lookup, groups: Arc::default(), reduction: Arc::clone(&self.reduction) }
    }

    fn text(&self) -> Vec<String> {
        let JoinReduction { rows, lookup, predicate, products, whole, .. } = &*self.reduction;
        let keys: Vec<&str> =
            rows.group_expr().expr().iter().map(|(_, name)| name.as_str()).collect();
        let aggregates: Vec<&str> = rows.aggr_expr().iter().map(|it| it.name()).collect();
        let mut parts = vec![
            format!("mode={}", if *whole { "whole" } else { "partial" }),
            format!("gby=[{}]", keys.join(", ")),
            format!("aggr=[{}]", aggregates.join(", ")),
        ];
        let tier = if products.is_some() { "sparse" } else { "accumulators" };
        parts.push(format!("tier={tier}"));
        parts.extend(self.lookup.on());
        parts.extend(predicate.as_ref().map(|it| format!("filter={it}")));
        parts.extend(lookup.predicate.as_ref().map(|it| format!("predicate={it}")));
        parts.extend(display::parts(lookup.scan.array(), lookup.scan.plan()));
        parts
    }

    fn inputs(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.lookup.inputs()
    }

    fn over(&self, inputs: &[Arc<dyn ExecutionPlan>]) -> Result<Self> {
        let [_] = inputs else { return internal_err!("an aggregation above a join of no rows") };
        Ok(Self { lookup: self.lookup.over(inputs)?, ..self.with_frame(self.frame.anew()) })
    }

    fn expressions(&self) -> Vec<PhysicalExprRef> {
        let of_reduction =
            self.reduction.aggregates.expressions().chain(&self.reduction.built_keys);
        self.lookup.expressions().into_iter().chain(of_reduction.cloned()).collect()
    }

    fn stream(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let (reduction, groups) = (Arc::clone(&self.reduction), self.groups(&context));
        let metrics = self.frame.metrics();
        Ok(stream::reduce(reduction, self.lookup.clone(), groups, partition, metrics, context))
    }
}

impl ExecutionPlan for GridJoinReduceExec {
    operator_methods!();

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![Distribution::SinglePartition]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }
}
