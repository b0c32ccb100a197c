//! [`GridLookupExec`]: the operator for joins that look up rows by the places of labels.

use std::fmt;
use std::sync::{Arc, OnceLock};

use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{JoinSide, Statistics, internal_err};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{
    Boundedness, EmissionType, ReplaceChildrenOptions, SchedulingType,
};
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, Partitioning, PlanProperties,
};
use futures::FutureExt;

use super::built::{Built, SharedRows};
use super::grid_lookup::{GridLookup, Kept};
use super::stream;
use crate::array::ColumnSource;
use crate::error::Error;
use crate::exec::columns::visit_all;
use crate::exec::{GridScanExec, display, order};

/// An operator that joins an array with the rows of another input. The labels of a cell tell the place of its matches in a
/// table, so no row is hashed.
///
/// ```text
/// GridLookupExec: join_type=Inner, on=[(station@0, station@1)], dataset=temperature, chunks=6/6, projection=[time, station, value]
///   DataSourceExec: partitions=1
/// ```
///
/// [`GridLookupRule`](super::GridLookupRule) plans the operator. It returns the columns of the scan and behind them those of
/// the input, in the order of the scan. A semi or anti join returns the columns of the scan only.
///
/// The operator holds the scan's array and plan, so no optimizer rule that runs later changes either. All rows of the input
/// are held in memory.
#[derive(Clone)]
pub struct GridLookupExec {
    lookup: Arc<GridLookup>,
    input: Arc<dyn ExecutionPlan>,
    rows: Arc<OnceLock<SharedRows>>,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl fmt::Debug for GridLookupExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GridLookupExec").field("lookup", &self.lookup).finish_non_exhaustive()
    }
}

impl GridLookupExec {
    pub(super) fn of(lookup: Arc<GridLookup>, input: Arc<dyn ExecutionPlan>) -> Self {
        let properties = PlanProperties::new(
            equivalences(&lookup),
            Partitioning::UnknownPartitioning(lookup.scan.plan().partition_count()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        )
        .with_scheduling_type(SchedulingType::Cooperative);
        Self {
            lookup,
            input,
            rows: Arc::default(),
            metrics: ExecutionPlanMetricsSet::new(),
            properties: Arc::new(properties),
        }
    }

    /// Makes an operator that was planned before, instead of `join`, with the array on `side`.
    ///
    /// # Errors
    /// `Unsupported` if the join cannot look up rows here.
    pub fn as_planned(join: &Arc<dyn ExecutionPlan>, side: JoinSide) -> Result<Self> {
        let lookup = GridLookup::on_side(join, side)?.map(|found| Arc::new(found.lookup));
        let input = lookup.as_ref().and_then(|lookup| lookup.other().cloned());
        match (lookup, input) {
            (Some(lookup), Some(input)) => Ok(Self::of(lookup, input)),
            _ => {
                Err(Error::unsupported("the join cannot look up rows here as it was planned")
                    .into())
            }
        }
    }

    /// Returns the scan whose rows are joined.
    pub fn scan(&self) -> &GridScanExec {
        &self.lookup.scan
    }

    /// Returns the join that the operator replaces, as it was planned.
    pub fn join(&self) -> &Arc<dyn ExecutionPlan> {
        &self.lookup.join
    }

    /// Returns the side of the array in that join.
    pub fn side(&self) -> JoinSide {
        self.lookup.side
    }

    /// Returns the same operator over another input.
    fn over(&self, inputs: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        match <[_; 1]>::try_from(inputs) {
            Ok([input]) => Ok(Arc::new(Self::of(Arc::clone(&self.lookup), input))),
            Err(inputs) => internal_err!("GridLookupExec over {} inputs", inputs.len()),
        }
    }

    /// Returns the rows of the input; starts to read them with the first poll.
    fn rows(&self, context: &Arc<TaskContext>) -> SharedRows {
        let read = || {
            let (lookup, input) = (Arc::clone(&self.lookup), Arc::clone(&self.input));
            let rows = Built::read(lookup, input, Arc::clone(context));
            rows.map(|rows| rows.map(Arc::new).map_err(Arc::new)).boxed().shared()
        };
        self.rows.get_or_init(read).clone()
    }

    /// Returns the parts of the text in `EXPLAIN`.
    fn text(&self) -> Vec<String> {
        let scan = &self.lookup.scan;
        let mut parts = vec![];
        if let Some(join) = self.lookup.join.downcast_ref::<HashJoinExec>() {
            let on: Vec<String> =
                join.on().iter().map(|(left, right)| format!("({left}, {right})")).collect();
            parts.push(format!("join_type={}", join.join_type()));
            parts.push(format!("on=[{}]", on.join(", ")));
        }
        let columns: Vec<&str> =
            scan.schema_ref().fields().iter().map(|field| field.name().as_str()).collect();
        parts.extend(display::parts(scan.array(), scan.plan()));
        parts.push(format!("projection=[{}]", columns.join(", ")));
        parts
    }
}

/// Returns the orders of the rows: those of the scan.
fn equivalences(lookup: &GridLookup) -> EquivalenceProperties {
    let mut columns = lookup.scan.columns();
    // Only dimensions have an order, so columns of the input may count as variables.
    columns.resize(lookup.schema.fields().len(), ColumnSource::Value(0));
    let (array, plan) = (lookup.scan.array(), lookup.scan.plan());
    order::equivalences(array, plan, &columns, &lookup.schema, &[])
}

impl DisplayAs for GridLookupExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match format {
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                write!(f, "GridLookupExec: {}", self.text().join(", "))
            }
            DisplayFormatType::TreeRender => display::tree(&self.text(), f),
        }
    }
}

impl ExecutionPlan for GridLookupExec {
    fn name(&self) -> &'static str {
        "GridLookupExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![Distribution::SinglePartition]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        visit_all(self.lookup.keys.iter().flat_map(|keys| &keys.built), visit)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.over(children)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.over(children)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        if partition >= self.lookup.scan.plan().partition_count() {
            return internal_err!("GridLookupExec has no partition {partition}");
        }
        let rows = self.rows(&context);
        Ok(stream::joined(&self.lookup, rows, partition, &self.metrics, &context))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let mut statistics = Statistics::new_unknown(&self.lookup.schema);
        let rows = usize::try_from(self.lookup.scan.plan().rows(None)).ok();
        if let (Some(rows), Kept::All | Kept::Matches) = (rows, self.lookup.kept) {
            statistics.num_rows = Precision::Inexact(rows);
        }
        Ok(Arc::new(statistics))
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self::of(Arc::clone(&self.lookup), Arc::clone(&self.input))))
    }
}
