//! [`GridLookupExec`]: the operator for joins that look up rows by the places of labels.

use std::fmt;
use std::sync::{Arc, OnceLock};

use datafusion::common::stats::Precision;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{JoinSide, Statistics, internal_err};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{Distribution, ExecutionPlan};
use futures::FutureExt;

use super::build_side::{BuildSide, SharedRows};
use super::grid_lookup::{GridLookup, ReturnedRows};
use super::joined_rows::LookupJoin;
use super::stream;
use crate::array::ColumnSource;
use crate::error::Error;
use crate::exec::columns::{move_columns, projected};
use crate::exec::operator::{Frame, Operator, operator_methods, shown_by_text};
use crate::exec::{GridScanExec, display, order};
use crate::plan::ScanPlan;

/// An operator that joins an array with the rows of another input. The labels of a cell tell the place of its matches in a
/// table, so no row is hashed.
///
/// ```text
/// GridLookupExec: join_type=Inner, on=[(station@0, station@1)], dataset=temperature, chunks=6/6, projection=[time, station, value]
///   DataSourceExec: partitions=1
/// ```
///
/// The rule `GridLookup` plans the operator. It returns the columns of the scan and behind them those of
/// the input, in the order of the scan. A semi or anti join returns the columns of the scan only.
///
/// The operator holds the scan's array and plan, so no optimizer rule that runs later changes either. All rows of the input
/// are held in memory.
#[derive(Clone)]
pub struct GridLookupExec {
    /// The join, without dynamic filters.
    joined: LookupJoin,
    input: Arc<dyn ExecutionPlan>,
    rows: Arc<OnceLock<SharedRows>>,
    /// Each dynamic filter is over columns of the scan only.
    frame: Frame,
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
        Self::try_new(lookup, input, (0..lookup.schema.fields().len()).collect())
    }

    /// Makes the operator that returns `projection` of the columns of `lookup`.
    fn try_new(
        lookup: &Arc<GridLookup>,
        input: Arc<dyn ExecutionPlan>,
        projection: Vec<usize>,
    ) -> Result<Self> {
        Self::of_plan(lookup, input, projection, lookup.scan.plan())
    }

    /// Makes the operator whose partitions are those of a plan of the array.
    fn of_plan(
        lookup: &Arc<GridLookup>,
        input: Arc<dyn ExecutionPlan>,
        projection: Vec<usize>,
        plan: &ScanPlan,
    ) -> Result<Self> {
        let schema = Arc::new(lookup.schema.project(&projection)?);
        // Only dimensions have an order, so columns of the input may count as variables.
        let of_scan = lookup.scan.columns();
        let source =
            |column: &usize| of_scan.get(*column).copied().unwrap_or(ColumnSource::Value(0));
        let columns: Vec<ColumnSource> = projection.iter().map(source).collect();
        let array = lookup.scan.array();
        let frame = Frame::new(order::properties(array, plan, &columns, &schema, &[])?);
        let (lookup, filters) = (Arc::clone(lookup), vec![]);
        let joined = LookupJoin { lookup, projection, schema, filters, part: None };
        Ok(Self { joined, input, rows: Arc::default(), frame })
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
        let lookup = GridLookup::on_side(join, side)?.map(|(lookup, _)| Arc::new(lookup));
        let input = lookup.as_ref().and_then(|lookup| lookup.other().cloned());
        match (lookup, input) {
            (Some(lookup), Some(input)) => Self::try_new(&lookup, input, projection),
            _ => {
                Err(Error::unsupported("the join cannot look up rows here as it was planned")
                    .into())
            }
        }
    }

    /// Returns the same operator by another plan of the array. It looks up all rows of the input.
    ///
    /// # Errors
    /// Internal errors only.
    #[cfg_attr(not(feature = "codec"), allow(dead_code, reason = "only plans that travel need it"))]
    pub(crate) fn over_plan(&self, plan: &Arc<ScanPlan>) -> Result<Self> {
        let by_plan = |node: Arc<dyn ExecutionPlan>| match node.downcast_ref::<GridScanExec>() {
            Some(scan) => Ok(Transformed::yes(Arc::new(scan.over_plan(Arc::clone(plan))?) as _)),
            None => Ok(Transformed::no(node)),
        };
        let mut sides: Vec<_> = self.join().children().into_iter().map(Arc::clone).collect();
        let own = usize::from(self.side() != JoinSide::Left);
        let Some(of_array) = sides.get_mut(own) else {
            return internal_err!("a join without the array's side");
        };
        *of_array = Arc::clone(of_array).transform_up(by_plan).data()?;
        let recompute = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        let join = Arc::clone(self.join()).replace_children(sides, recompute)?;
        let share = Self::as_planned(&join, self.side(), self.projection().to_vec())?;
        let share = share.with_filters(self.filters().to_vec());
        Ok(Self { input: Arc::clone(&self.input), ..share })
    }

    /// Returns the columns of the output: those of the scan, and behind them those of the input.
    pub fn projection(&self) -> &[usize] {
        &self.joined.projection
    }

    /// Returns the dynamic filters over the output.
    pub fn filters(&self) -> &[PhysicalExprRef] {
        self.frame.filters()
    }

    /// Returns the same operator with those of these dynamic filters over the output that it can use.
    #[must_use = "the operator is not changed in place"]
    pub fn with_filters(self, filters: Vec<PhysicalExprRef>) -> Self {
        let filters = self.usable(filters);
        Self { frame: self.frame.with_filters(filters), ..self }
    }

    /// Returns a filter over columns of the scan instead of the output. `None` if it uses a column of the input.
    ///
    /// DataFusion finds the columns of a filter by name when it pushes it down. Both sides of a join may have columns of one
    /// name, so `None` for filters over these, too: they may mean the other side.
    fn over_scan(&self, filter: &PhysicalExprRef) -> Option<PhysicalExprRef> {
        let LookupJoin { lookup, projection, schema, .. } = &self.joined;
        let scanned = lookup.scan.columns().len();
        let is_only = |column: usize| {
            let name = schema.fields().get(column).map(|field| field.name());
            schema.fields().iter().filter(|field| Some(field.name()) == name).count() == 1
        };
        let of_scan = |column: usize| {
            let source = projection.get(column).copied().filter(|_| is_only(column));
            source.filter(|source| *source < scanned)
        };
        move_columns(filter, &of_scan).ok()
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

    /// Returns the pairs of keys for `EXPLAIN`.
    pub(in crate::exec) fn on(&self) -> Option<String> {
        let join = self.joined.lookup.join.downcast_ref::<HashJoinExec>()?;
        let on: Vec<String> =
            join.on().iter().map(|(left, right)| format!("({left}, {right})")).collect();
        Some(format!("on=[{}]", on.join(", ")))
    }

    /// Returns what the operator returns of the join.
    pub(in crate::exec) fn joined(&self) -> &LookupJoin {
        &self.joined
    }

    /// Returns the same join, which has not run, with the cells of one part of the array. It shares the rows of the input, and
    /// counts in `metrics`.
    pub(in crate::exec) fn of_part(
        &self,
        part: Arc<ScanPlan>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Result<Self> {
        let LookupJoin { lookup, projection, .. } = &self.joined;
        let of_part = Self::of_plan(lookup, Arc::clone(&self.input), projection.clone(), &part)?;
        let joined = LookupJoin { part: Some(part), ..of_part.joined };
        let frame = of_part.frame.with_metrics(metrics.clone());
        Ok(Self { joined, rows: Arc::clone(&self.rows), frame, ..of_part })
    }

    /// Returns the rows of the input; starts to read them with the first poll.
    pub(in crate::exec) fn rows(&self, context: &Arc<TaskContext>) -> SharedRows {
        let read = || {
            let (lookup, input) = (Arc::clone(&self.joined.lookup), Arc::clone(&self.input));
            let rows = BuildSide::read(lookup, input, Arc::clone(context));
            rows.map(|rows| rows.map(Arc::new).map_err(Arc::new)).boxed().shared()
        };
        self.rows.get_or_init(read).clone()
    }
}

shown_by_text!(GridLookupExec);

impl Operator for GridLookupExec {
    fn frame(&self) -> &Frame {
        &self.frame
    }

    fn with_frame(&self, frame: Frame) -> Self {
        Self { frame, rows: Arc::default(), ..self.clone() }
    }

    fn text(&self) -> Vec<String> {
        let scan = &self.joined.lookup.scan;
        let join = self.joined.lookup.join.downcast_ref::<HashJoinExec>();
        let mut parts: Vec<String> =
            join.iter().map(|join| format!("join_type={}", join.join_type())).collect();
        parts.extend(self.on());
        parts.extend(self.joined.lookup.predicate.as_ref().map(|it| format!("predicate={it}")));
        parts.extend(display::parts(scan.array(), scan.plan()));
        parts.push(display::projection(&self.joined.schema));
        parts
    }

    fn inputs(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn over(&self, inputs: &[Arc<dyn ExecutionPlan>]) -> Result<Self> {
        let [input] = inputs else { return internal_err!("a lookup of no rows") };
        Ok(Self { input: Arc::clone(input), ..self.with_frame(self.frame.anew()) })
    }

    fn expressions(&self) -> Vec<PhysicalExprRef> {
        self.joined.lookup.keys.iter().flat_map(|keys| keys.built.clone()).collect()
    }

    fn usable(&self, filters: Vec<PhysicalExprRef>) -> Vec<PhysicalExprRef> {
        // Filters over columns of the input rule out no chunk.
        filters.into_iter().filter(|filter| self.over_scan(filter).is_some()).collect()
    }

    fn estimate(&self, partition: Option<usize>) -> Result<Statistics> {
        let mut statistics = Statistics::new_unknown(&self.joined.schema);
        let rows = self.joined.lookup.scan.plan().rows(partition);
        if let (Ok(rows), ReturnedRows::All | ReturnedRows::Matches) =
            (usize::try_from(rows), self.joined.lookup.kept)
        {
            statistics.num_rows = Precision::Inexact(rows);
        }
        Ok(statistics)
    }

    fn stream(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let rows = self.rows(&context);
        let filters = self.frame.filters().iter().filter_map(|it| self.over_scan(it)).collect();
        let joined = LookupJoin { filters, ..self.joined.clone() };
        Ok(stream::joined(joined, rows, partition, self.frame.metrics(), context))
    }
}

impl ExecutionPlan for GridLookupExec {
    operator_methods!();

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![Distribution::SinglePartition]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    /// Returns an operator of fewer columns, below what a projection computes.
    fn try_swapping_with_projection(
        &self,
        projection: &ProjectionExec,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        if !self.frame.filters().is_empty() {
            return Ok(None); // they refer to the current output columns
        }
        let LookupJoin { lookup, projection: own, .. } = &self.joined;
        projected(projection, own.len(), |columns| {
            let columns = columns.into_iter().map(|column| own[column]).collect();
            Ok(Arc::new(Self::try_new(lookup, Arc::clone(&self.input), columns)?))
        })
    }
}
