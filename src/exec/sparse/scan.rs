//! [`SparseScanExec`]: the operator that yields the visible cells of a sparse array as record batches.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::common::{Statistics, internal_err};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::CardinalityEffect;
use datafusion::physical_plan::projection::ProjectionExec;

use super::metrics::SparseMetrics;
use super::plan::{SparsePlan, TileTask};
use super::properties::{properties, statistics};
use super::pruner::Pruner;
use super::stream::SparseStream;
use super::tile_reader::TileReader;
use crate::array::{SparseArray, SparseFragment};
use crate::exec::batches::{Batches, stream_of};
use crate::exec::columns::picked;
use crate::exec::display::projection as shown_projection;
use crate::exec::operator::{Frame, Operator, operator_methods, shown_by_text};
use crate::source::TableOrigin;

/// An operator that scans the tiles of a [`SparsePlan`], and returns a row per visible cell that the plan's
/// filters select.
///
/// ```text
/// SparseScanExec: array=points, fragments=1/1, tiles=3/124, filter=x@0 < 5, projection=[x, v]
/// ```
///
/// The scan also skips tiles and rows by dynamic filters (of a TopK or a hash join). These filters only save
/// work: the operator above evaluates them again.
#[derive(Debug, Clone)]
pub struct SparseScanExec {
    array: Arc<SparseArray>,
    /// The places, format and options of the array; `None` if the caller opened it.
    origin: Option<Arc<TableOrigin>>,
    plan: Arc<SparsePlan>,
    /// Columns of the array's schema, in output order.
    projection: Vec<usize>,
    schema: SchemaRef,
    frame: Frame,
}

impl SparseScanExec {
    /// Makes a scan of `array` by `plan`; `projection` lists columns of the array's schema.
    ///
    /// # Errors
    /// If the projection lists a column that the schema does not have.
    pub(crate) fn try_new(
        array: Arc<SparseArray>,
        plan: impl Into<Arc<SparsePlan>>,
        projection: Vec<usize>,
    ) -> Result<Self> {
        let plan = plan.into();
        let schema = Arc::new(array.schema().project(&projection)?);
        let frame = Frame::new(properties(&array, &plan, &projection, &schema));
        Ok(Self { array, origin: None, plan, projection, schema, frame })
    }

    /// Sets what the array was opened from.
    #[must_use = "the scan is not changed in place"]
    pub fn with_origin(self, origin: Option<Arc<TableOrigin>>) -> Self {
        Self { origin, ..self }
    }

    /// Returns what the array was opened from; `None` if the caller opened it.
    pub fn origin(&self) -> Option<&Arc<TableOrigin>> {
        self.origin.as_ref()
    }

    /// Returns the same scan with these dynamic filters over the output columns.
    pub fn with_filters(self, filters: Vec<PhysicalExprRef>) -> Self {
        Self { frame: self.frame.with_filters(filters), ..self }
    }

    /// Returns the columns of the array's schema, in output order, and the dynamic filters over them.
    pub fn pushed_down(&self) -> (&[usize], &[PhysicalExprRef]) {
        (&self.projection, self.frame.filters())
    }

    /// Returns the array that is scanned.
    pub fn array(&self) -> &Arc<SparseArray> {
        &self.array
    }

    /// Returns the column of the table that an output column is.
    pub(super) fn table_column(&self, output: usize) -> Option<usize> {
        self.projection.get(output).copied()
    }

    /// Whether there may be tiles that the query sees whole.
    pub(super) fn has_answers(&self) -> bool {
        self.plan.partitions.iter().any(|it| it.tiles.iter().any(|task| task.is_inside))
    }

    /// Returns the same scan, which reads only `tiles` in one partition besides those to merge.
    pub(super) fn with_tiles(&self, partition: usize, tiles: Vec<TileTask>) -> Self {
        let mut plan = SparsePlan::clone(&self.plan);
        if let Some(tasks) = plan.partitions.get_mut(partition) {
            tasks.tiles = tiles;
        }
        Self { plan: Arc::new(plan), ..self.clone() }
    }

    /// Returns `count` scans that together yield the rows of this one, in as many partitions each.
    pub fn shares(&self, count: usize) -> Vec<Self> {
        let fragments = self.array.source().fragments();
        let cells = |task: &TileTask| fragments[task.tile.fragment].cells_of(task.tile.tile);
        let share = |plan: SparsePlan| self.over_plan(plan);
        self.plan.shares(cells, count).into_iter().map(share).collect()
    }

    /// Returns the same scan by another plan of as many partitions.
    fn over_plan(&self, plan: SparsePlan) -> Self {
        Self { plan: Arc::new(plan), ..self.with_frame(self.frame.anew()) }
    }

    /// Returns the position of the first tile that is read among all tiles of the array, and their number.
    pub fn first_tile(&self) -> (u64, u64) {
        let tasks = || self.plan.partitions.iter();
        let merged = tasks().flat_map(|it| &it.merges).flat_map(|merge| &merge.tiles);
        let mut read = tasks().flat_map(|it| &it.tiles).chain(merged);
        let of = |fragments: &[SparseFragment]| fragments.iter().map(|it| it.tiles).sum::<u64>();
        let fragments = self.array.source().fragments();
        let position = |task: &TileTask| of(&fragments[..task.tile.fragment]) + task.tile.tile;
        (read.next().map_or(0, position), of(fragments))
    }

    /// Returns the plan, which lists the tiles to read.
    #[doc(hidden)]
    pub fn plan(&self) -> &Arc<SparsePlan> {
        &self.plan
    }
}

shown_by_text!(SparseScanExec);

impl Operator for SparseScanExec {
    fn frame(&self) -> &Frame {
        &self.frame
    }

    fn with_frame(&self, frame: Frame) -> Self {
        Self { frame, ..self.clone() }
    }

    fn text(&self) -> Vec<String> {
        let mut parts = super::display::parts(&self.array, &self.plan);
        parts.push(shown_projection(&self.schema));
        parts.extend(self.plan.limit.map(|limit| format!("limit={limit}")));
        parts
    }

    fn usable(&self, filters: Vec<PhysicalExprRef>) -> Vec<PhysicalExprRef> {
        // A limit counts rows before filters.
        if self.plan.limit.is_none() { filters } else { vec![] }
    }

    fn estimate(&self, partition: Option<usize>) -> Result<Statistics> {
        statistics(&self.array, &self.plan, &self.projection, partition)
    }

    fn stream(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let Some(tasks) = self.plan.partitions.get(partition) else {
            return internal_err!("a sparse scan of no tiles");
        };
        let metrics = SparseMetrics::new(self.frame.metrics(), partition, &self.plan.counts);
        let filters = self.frame.filters();
        let pruner = Pruner::new(&self.array, &self.plan.known, filters, &self.projection)?;
        let reader = TileReader::new(
            Arc::clone(&self.array),
            Arc::clone(&self.plan),
            (self.projection.clone(), Arc::clone(&self.schema)),
            metrics,
            pruner,
            format!("SparseScanExec[{partition}]"),
            &context,
        );
        let batch_size = context.session_config().batch_size();
        let schema = Arc::clone(&self.schema);
        let stream = SparseStream::new(reader, tasks.clone(), schema, batch_size);
        Ok(stream_of(Arc::clone(&self.schema), stream.into_stream()))
    }
}

impl ExecutionPlan for SparseScanExec {
    operator_methods!();

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        if !self.frame.filters().is_empty() {
            return None; // the limit would count rows that the filters may leave out
        }
        Some(Arc::new(self.over_plan(self.plan.with_limit(limit))))
    }

    fn fetch(&self) -> Option<usize> {
        self.plan.limit
    }

    /// Returns a scan of fewer or reordered columns, which replaces the projection; `None` if the
    /// projection computes or renames anything.
    fn try_swapping_with_projection(
        &self,
        projection: &ProjectionExec,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        if !self.frame.filters().is_empty() {
            return Ok(None); // they refer to the current output columns
        }
        let Some(columns) = picked(projection) else { return Ok(None) };
        let columns = columns.into_iter().map(|column| self.projection[column]).collect();
        let scan = Self::try_new(Arc::clone(&self.array), Arc::clone(&self.plan), columns)?;
        Ok(Some(Arc::new(scan.with_origin(self.origin.clone()))))
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }
}
