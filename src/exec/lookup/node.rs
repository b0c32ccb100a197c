//! [`GridLookupExec`]: the operator for joins that look up rows by the places of labels.

use std::fmt;
use std::sync::{Arc, OnceLock};

use arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{JoinSide, Statistics, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{PhysicalExpr, PhysicalExprRef};
use datafusion::physical_plan::execution_plan::{
    Boundedness, EmissionType, ReplaceChildrenOptions, SchedulingType,
};
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation,
};
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, PlanProperties,
};
use futures::FutureExt;

use super::built::{Built, SharedRows};
use super::grid_lookup::{GridLookup, Kept};
use super::joined_rows::Joined;
use super::stream;
use crate::array::ColumnSource;
use crate::error::Error;
use crate::exec::columns::{move_columns, projected, visit_all};
use crate::exec::pruning::dynamic::dynamic_filters;
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
    joined: Joined,
    input: Arc<dyn ExecutionPlan>,
    rows: Arc<OnceLock<SharedRows>>,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl fmt::Debug for GridLookupExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GridLookupExec")
            .field("lookup", &self.joined.lookup)
            .finish_non_exhaustive()
    }
}

impl GridLookupExec {
    /// Makes the operator that returns all columns.
    pub(super) fn whole(lookup: &Arc<GridLookup>, input: Arc<dyn ExecutionPlan>) -> Result<Self> {
        Self::of(lookup, input, (0..lookup.schema.fields().len()).collect())
    }

    /// Makes the operator that returns `projection` of the columns of `lookup`.
    fn of(
        lookup: &Arc<GridLookup>,
        input: Arc<dyn ExecutionPlan>,
        projection: Vec<usize>,
    ) -> Result<Self> {
        let schema = Arc::new(lookup.schema.project(&projection)?);
        let properties = properties(lookup, &projection, &schema)?;
        let joined = Joined { lookup: Arc::clone(lookup), projection, schema, filters: vec![] };
        Ok(Self {
            joined,
            input,
            rows: Arc::default(),
            metrics: ExecutionPlanMetricsSet::new(),
            properties: Arc::new(properties),
        })
    }

    /// Makes an operator that was planned before, instead of `join`, with the array on `side`.
    ///
    /// # Errors
    /// `Unsupported` if the join cannot look up rows here; an Arrow error if it has no such columns.
    pub fn as_planned(
        join: &Arc<dyn ExecutionPlan>,
        side: JoinSide,
        projection: Vec<usize>,
    ) -> Result<Self> {
        let lookup = GridLookup::on_side(join, side)?.map(|found| Arc::new(found.lookup));
        let input = lookup.as_ref().and_then(|lookup| lookup.other().cloned());
        match (lookup, input) {
            (Some(lookup), Some(input)) => Self::of(&lookup, input, projection),
            _ => {
                Err(Error::unsupported("the join cannot look up rows here as it was planned")
                    .into())
            }
        }
    }

    /// Returns the columns of the output: those of the scan, and behind them those of the input.
    pub fn projection(&self) -> &[usize] {
        &self.joined.projection
    }

    /// Returns the dynamic filters over columns of the output.
    pub fn filters(&self) -> Vec<PhysicalExprRef> {
        let place = |column: usize| self.joined.projection.iter().position(|it| *it == column);
        self.joined.filters.iter().filter_map(|it| move_columns(it, &place).ok()).collect()
    }

    /// Adds dynamic filters over columns of the output. Filters over columns of the input rule out no chunk, and are left out.
    ///
    /// DataFusion finds the columns of a filter by name when it pushes it down. Both sides of a join may have columns of one
    /// name, so filters over these are left out too: they may mean the other side.
    #[must_use]
    pub fn with_filters(mut self, filters: &[PhysicalExprRef]) -> Self {
        let Joined { lookup, projection, .. } = &self.joined;
        let scanned = lookup.scan.columns().len();
        let fields = self.joined.schema.fields();
        let is_only = |column: usize| {
            let name = fields.get(column).map(|field| field.name());
            fields.iter().filter(|field| Some(field.name()) == name).count() == 1
        };
        let of_scan = |column: usize| {
            let source = projection.get(column).copied().filter(|_| is_only(column));
            source.filter(|source| *source < scanned)
        };
        let filters = filters.iter().filter_map(|it| move_columns(it, &of_scan).ok());
        let filters: Vec<PhysicalExprRef> = filters.collect();
        self.joined.filters.extend(filters);
        self
    }

    /// Returns the scan whose rows are joined.
    pub fn scan(&self) -> &GridScanExec {
        &self.joined.lookup.scan
    }

    /// Returns the join that the operator replaces, as it was planned.
    pub fn join(&self) -> &Arc<dyn ExecutionPlan> {
        &self.joined.lookup.join
    }

    /// Returns the side of the array in that join.
    pub fn side(&self) -> JoinSide {
        self.joined.lookup.side
    }

    /// Returns the same operator over another input.
    fn over(&self, inputs: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        match <[_; 1]>::try_from(inputs) {
            Ok([input]) => Ok(Arc::new(Self { input, rows: Arc::default(), ..self.anew() })),
            Err(inputs) => internal_err!("GridLookupExec over {} inputs", inputs.len()),
        }
    }

    /// Returns the operator without metrics.
    fn anew(&self) -> Self {
        Self { metrics: ExecutionPlanMetricsSet::new(), ..self.clone() }
    }

    /// Returns the rows of the input; starts to read them with the first poll.
    fn rows(&self, context: &Arc<TaskContext>) -> SharedRows {
        let read = || {
            let (lookup, input) = (Arc::clone(&self.joined.lookup), Arc::clone(&self.input));
            let rows = Built::read(lookup, input, Arc::clone(context));
            rows.map(|rows| rows.map(Arc::new).map_err(Arc::new)).boxed().shared()
        };
        self.rows.get_or_init(read).clone()
    }

    /// Returns the parts of the text in `EXPLAIN`.
    fn text(&self) -> Vec<String> {
        let scan = &self.joined.lookup.scan;
        let mut parts = vec![];
        if let Some(join) = self.joined.lookup.join.downcast_ref::<HashJoinExec>() {
            let on: Vec<String> =
                join.on().iter().map(|(left, right)| format!("({left}, {right})")).collect();
            parts.push(format!("join_type={}", join.join_type()));
            parts.push(format!("on=[{}]", on.join(", ")));
        }
        let names = self.joined.schema.fields().iter().map(|field| field.name().as_str());
        let columns: Vec<&str> = names.collect();
        parts.extend(self.joined.lookup.predicate.as_ref().map(|it| format!("predicate={it}")));
        parts.extend(display::parts(scan.array(), scan.plan()));
        parts.push(format!("projection=[{}]", columns.join(", ")));
        parts.extend(display::filters(&self.joined.filters));
        parts
    }
}

/// Returns what the operator declares: the orders and partitions of the scan.
fn properties(
    lookup: &GridLookup,
    projection: &[usize],
    schema: &SchemaRef,
) -> Result<PlanProperties> {
    // Only dimensions have an order, so columns of the input may count as variables.
    let of_scan = lookup.scan.columns();
    let source = |column: &usize| of_scan.get(*column).copied().unwrap_or(ColumnSource::Value(0));
    let columns: Vec<ColumnSource> = projection.iter().map(source).collect();
    let (array, plan) = (lookup.scan.array(), lookup.scan.plan());
    Ok(PlanProperties::new(
        order::equivalences(array, plan, &columns, schema, &[]),
        order::partitioning(array, plan, &columns, schema)?,
        EmissionType::Incremental,
        Boundedness::Bounded,
    )
    .with_scheduling_type(SchedulingType::Cooperative))
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
        // DataFusion computes a dynamic filter only if it finds it here.
        let keys = self.joined.lookup.keys.iter().flat_map(|keys| &keys.built);
        visit_all(keys.chain(&self.joined.filters), visit)
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
        if partition >= self.joined.lookup.scan.plan().partition_count() {
            return internal_err!("GridLookupExec has no partition {partition}");
        }
        let rows = self.rows(&context);
        Ok(stream::joined(&self.joined, rows, partition, &self.metrics, &context))
    }

    fn handle_child_pushdown_result(
        &self,
        phase: FilterPushdownPhase,
        pushed: ChildPushdownResult,
        _: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        Ok(dynamic_filters(phase, pushed, |filters| {
            let node = self.anew().with_filters(&filters);
            (!node.joined.filters.is_empty()).then_some(node)
        }))
    }

    /// Returns an operator of fewer columns, below what a projection computes.
    fn try_swapping_with_projection(
        &self,
        projection: &ProjectionExec,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Joined { lookup, projection: own, filters, .. } = &self.joined;
        projected(projection, own.len(), |columns| {
            let columns = columns.into_iter().map(|column| own[column]).collect();
            let mut node = Self::of(lookup, Arc::clone(&self.input), columns)?;
            node.joined.filters.clone_from(filters);
            Ok(Arc::new(node))
        })
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let mut statistics = Statistics::new_unknown(&self.joined.schema);
        let rows = self.joined.lookup.scan.plan().rows(args.partition());
        if let (Ok(rows), Kept::All | Kept::Matches) =
            (usize::try_from(rows), self.joined.lookup.kept)
        {
            statistics.num_rows = Precision::Inexact(rows);
        }
        Ok(Arc::new(statistics))
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        // After a reset, operators above make new filters, which they do not push down again.
        let joined = Joined { filters: vec![], ..self.joined.clone() };
        Ok(Arc::new(Self { joined, rows: Arc::default(), ..self.anew() }))
    }
}
