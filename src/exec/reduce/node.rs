//! [`GridReduceExec`]: the operator for aggregations over dimensions, as reductions of chunks.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::common::Statistics;
use datafusion::common::stats::Precision;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExprRef};
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::{ExecutionPlan, Partitioning};

use super::partitions::are_parallel;
use super::query::{Aggregate, Query};
use super::reduction::{Output, Reduction};
use super::stream;
use crate::exec::columns::columns_of;
use crate::exec::config::GridfusionConfig;
use crate::exec::matching::Over;
use crate::exec::operator::{Frame, Operator, declared, operator_methods, shown_by_text};
use crate::exec::rows_because::{Attempt, Declined, as_planned, because, if_made};
use crate::exec::{GridScanExec, display};

/// An operator that aggregates the chunks of a scan by group, without making rows of them.
///
/// ```text
/// GridReduceExec: mode=whole, gby=[time], aggr=[avg(temperature.value)], tier=dense, groups=1440, dataset=temperature, chunks=6/6
/// ```
///
/// The rule `GridReduce` plans the operator. In `mode=partial` it yields the states of
/// DataFusion's partial aggregation, which the final stage merges. In `mode=whole` it yields final values.
/// If the memory pool refuses memory for the groups, the partition is aggregated over rows instead, unless
/// rows would take as much.
///
/// The operator has no children: it holds the scan's array and plan. Optimizer rules that run later
/// cannot change either.
#[derive(Debug, Clone)]
pub struct GridReduceExec {
    reduction: Arc<Reduction>,
    /// Each dynamic filter is over a key at least in part.
    frame: Frame,
}

impl GridReduceExec {
    /// Makes a reduction that is equivalent to `aggregate`, if there is one. It yields final
    /// values of the schema `whole` if that is given and partitions share no group. Otherwise it yields
    /// partial states.
    pub(super) fn replacing(
        aggregate: &AggregateExec,
        whole: Option<SchemaRef>,
        config: &GridfusionConfig,
    ) -> Attempt<Self> {
        let output = whole.map_or(Output::States, Output::WholeIfApart);
        Ok(Self::new(Reduction::replacing(aggregate, output, config)?))
    }

    /// Makes a reduction that gathers values to count the different ones, unless partitions that hash rows would be faster. It
    /// yields final values of the schema `whole`. Some partitions may be empty.
    pub(super) fn gathering(
        aggregate: &AggregateExec,
        whole: SchemaRef,
        config: &GridfusionConfig,
    ) -> Attempt<Self> {
        // Labels are counted by group: the aggregation below has few groups, and reads no cells.
        let query = Query::try_new(aggregate)?;
        let is_of_labels = |it: &Aggregate| {
            it.function.is_distinct()
                && it.args.iter().all(|arg| Over::new(arg, &query.scan) != Over::Variable)
        };
        if query.aggregates.iter().any(is_of_labels) {
            return Err(Declined::NoArray);
        }
        let reduction = Reduction::replacing(aggregate, Output::Whole(whole), config)?;
        match reduction.strategy.gathers_values() && are_parallel(&reduction.partitions) {
            true => Ok(Self::new(reduction)),
            false => Err(because("more partitions hash rows than would gather values")),
        }
    }

    /// Makes the operator of a reduction, without filters.
    fn new(reduction: Reduction) -> Self {
        // Declares no order, and no partitioning by key: DataFusion sorts the groups itself if a query
        // needs that.
        let properties = declared(
            EquivalenceProperties::new(Arc::clone(&reduction.schema)),
            Partitioning::UnknownPartitioning(reduction.partitions.len()),
            EmissionType::Final,
        );
        Self { reduction: Arc::new(reduction), frame: Frame::new(properties) }
    }

    /// Returns `count` operators that together yield what this one yields, in as many partitions each. Operators that
    /// yield final values have no group in common; some may be empty.
    ///
    /// # Errors
    /// Internal errors only.
    pub fn shares(&self, count: usize) -> Result<Vec<Self>> {
        let shares = self.reduction.shares(count)?.into_iter();
        Ok(shares.map(|share| Self::new(share).with_filters(self.filters().to_vec())).collect())
    }

    /// Returns the scan whose chunks are reduced.
    pub fn scan(&self) -> Option<&GridScanExec> {
        fn scan(node: &Arc<dyn ExecutionPlan>) -> Option<&GridScanExec> {
            node.downcast_ref().or_else(|| node.children().into_iter().find_map(scan))
        }
        scan(self.reduction.rows.input())
    }

    /// Makes a reduction that was planned before. It yields final values of the schema `whole` if that is given, and
    /// may weigh groups if `weighs`.
    ///
    /// # Errors
    /// `Unsupported` if the aggregation cannot be reduced so.
    pub fn as_planned(
        aggregate: &AggregateExec,
        whole: Option<SchemaRef>,
        weighs: bool,
    ) -> Result<Self> {
        // It was worth its memory where it was planned.
        let config = GridfusionConfig::unlimited(weighs);
        let output = whole.map_or(Output::States, Output::Whole);
        let reduction = Reduction::replacing(aggregate, output, &config);
        let reduction = as_planned("reduction", reduction)?;
        Ok(Self::new(reduction))
    }

    /// Returns partial states instead of `aggregate`, a first stage; `None` if it cannot be reduced.
    pub(in crate::exec) fn from_states(
        aggregate: &AggregateExec,
        config: &GridfusionConfig,
    ) -> Result<Option<Self>> {
        if_made(Self::replacing(aggregate, None, config))
    }

    /// Whether far fewer states than rows of cells are joined. A state costs more than a row, because it has several columns.
    pub(in crate::exec) fn saves_rows(&self) -> bool {
        /// Rows for which a state must stand.
        const LEAST: u64 = 8;
        let states =
            self.reduction.keys.groups.saturating_mul(self.reduction.partitions.len() as u64);
        states.saturating_mul(LEAST) <= self.reduction.plan.rows(None)
    }

    /// Whether the reduction yields final values.
    pub fn is_whole(&self) -> bool {
        self.reduction.whole
    }

    /// Whether the reduction may weigh groups.
    pub fn weighs(&self) -> bool {
        self.reduction.weighs
    }

    /// Returns the aggregation over rows that the reduction replaces: its first stage if there are two.
    pub fn rows(&self) -> &AggregateExec {
        &self.reduction.rows
    }

    /// Returns the dynamic filters over the output.
    pub fn filters(&self) -> &[PhysicalExprRef] {
        self.frame.filters()
    }

    /// Returns the same operator with these dynamic filters over the output.
    #[must_use = "the operator is not changed in place"]
    pub fn with_filters(self, filters: Vec<PhysicalExprRef>) -> Self {
        Self { frame: self.frame.with_filters(filters), ..self }
    }
}

shown_by_text!(GridReduceExec);

impl Operator for GridReduceExec {
    fn frame(&self) -> &Frame {
        &self.frame
    }

    fn with_frame(&self, frame: Frame) -> Self {
        Self { frame, ..self.clone() }
    }

    fn text(&self) -> Vec<String> {
        let Reduction { array, plan, keys, strategy, whole, predicate, rows, .. } =
            self.reduction.as_ref();
        let key_names: Vec<&str> =
            rows.group_expr().expr().iter().map(|(_, name)| name.as_str()).collect();
        let aggregates: Vec<&str> =
            rows.aggr_expr().iter().map(|aggregate| aggregate.name()).collect();
        let mut parts = vec![
            format!("mode={}", if *whole { "whole" } else { "partial" }),
            format!("gby=[{}]", key_names.join(", ")),
            format!("aggr=[{}]", aggregates.join(", ")),
            format!("tier={}", strategy.name()),
            format!("groups={}", keys.groups),
        ];
        let functions = strategy.functions_of_labels();
        if !functions.is_empty() {
            let functions: Vec<String> = functions.iter().map(ToString::to_string).collect();
            parts.push(format!("per_label=[{}]", functions.join(", ")));
            parts.extend(strategy.multiplies_cells().then(|| "weighs=cells".to_owned()));
        }
        parts.extend(predicate.as_ref().map(|predicate| format!("predicate={predicate}")));
        parts.extend(display::parts(array, plan));
        parts
    }

    fn expressions(&self) -> Vec<PhysicalExprRef> {
        self.reduction.strategy.expressions().into_iter().cloned().collect()
    }

    fn usable(&self, filters: Vec<PhysicalExprRef>) -> Vec<PhysicalExprRef> {
        let keys = self.reduction.keys.columns.len();
        // Filters over aggregates alone cannot skip cells: an aggregate is known only at the end.
        let of_keys =
            |filter: &PhysicalExprRef| columns_of([filter]).first().is_some_and(|at| *at < keys);
        filters.into_iter().filter(of_keys).collect()
    }

    fn estimate(&self, partition: Option<usize>) -> Result<Statistics> {
        let mut statistics = Statistics::new_unknown(&self.reduction.schema);
        if partition.is_none() {
            // Groups without rows are not in the output, so this is an upper bound for final values.
            statistics.num_rows = Precision::Inexact(self.reduction.keys.groups as usize);
        }
        Ok(statistics)
    }

    fn stream(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let (reduction, filters) = (Arc::clone(&self.reduction), self.filters().to_vec());
        Ok(stream::reduce(reduction, filters, partition, self.frame.metrics(), context))
    }
}

impl ExecutionPlan for GridReduceExec {
    operator_methods!();
}
