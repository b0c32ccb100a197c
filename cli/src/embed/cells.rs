//! The cells of a query that shows a box of an array: in one piece per variable, without rows.
//!
//! ```text
//!   SELECT time, lat, t2m, t2m - 273.15 AS c FROM … WHERE lat > 30     ProjectionExec
//!                                                                       └ GridScanExec: all cells of a box
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::compute::{partition, sort};
use datafusion::arrow::datatypes::FieldRef;
use datafusion::common::tree_node::TreeNode;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use gridfusion::GridScanExec;
use gridfusion::array::{ColumnSource, GridArray, LabelOrder};
use gridfusion::grid::{AxisSelection, Selection};
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

use super::box_reader::{BoxReader, Stop, is_number};
use super::computed::{BoxColumn, Computed, renumbered};
use crate::reads::Reads;

/// The cells of a box of an array, row-major.
#[derive(Debug)]
pub struct GridCells {
    /// Per axis the column of the query that shows it, and the selected labels.
    pub labels: Vec<(usize, ArrayRef)>,
    /// The columns that show or compute values per cell.
    pub variables: Vec<(usize, ArrayRef)>,
}

/// A plan that shows each cell of a box once.
#[derive(Debug)]
pub(super) struct GridBox {
    array: Arc<GridArray>,
    selection: Selection,
    /// The columns of the scan, and behind them those that projections compute.
    columns: Vec<(FieldRef, BoxColumn)>,
    /// Per column of the query, its place in `columns`.
    shown: Vec<usize>,
}

/// The counts of a box that is read, up to now.
#[derive(Debug, Default)]
pub(super) struct ReadCounts {
    /// The chunks of the array, and those of the box.
    all: u64,
    of_box: u64,
    variables: u64,
    /// The chunks of variables that were read, and their stored bytes.
    chunks: AtomicU64,
    bytes: AtomicU64,
}

impl ReadCounts {
    pub(super) fn of(it: &GridBox, computed: &Computed) -> Self {
        let grid = it.array.grid();
        let axes = it.selection.axes().iter().enumerate();
        let of_box = axes.map(|(axis, selected)| grid.chunks_of(axis, selected).count());
        let variables = (it.variables(computed).len() + computed.variables()) as u64;
        Self { all: grid.chunks(), of_box: of_box.product(), variables, ..Self::default() }
    }

    /// Adds chunks that were read, and their bytes.
    pub(super) fn add(&self, chunks: u64, bytes: u64) {
        self.chunks.fetch_add(chunks, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns the chunks that were read, all of them, and the bytes.
    pub(super) fn progress(&self) -> (u64, u64, u64) {
        let read = self.chunks.load(Ordering::Relaxed);
        (read, self.of_box * self.variables, self.bytes.load(Ordering::Relaxed))
    }

    /// Returns the counts as those of a scan, where a chunk has all variables.
    pub(super) fn reads(&self) -> Reads {
        let read = if self.variables > 0 { self.of_box } else { 0 };
        let pruned = self.all - read;
        let bytes = self.bytes.load(Ordering::Relaxed);
        Reads { chunks: self.all, pruned, pruned_by_plan: pruned, answered: 0, read, bytes }
    }
}

impl GridBox {
    /// Whether the steps of a query may show a box; others need no plan to tell that they do not.
    pub(super) fn may_be_shown(query: &LogicalPlan) -> Result<bool> {
        let hides_cells = |step: &LogicalPlan| {
            !matches!(
                step,
                LogicalPlan::Projection(_)
                    | LogicalPlan::Filter(_)
                    | LogicalPlan::Sort(_)
                    | LogicalPlan::SubqueryAlias(_)
                    | LogicalPlan::TableScan(_)
            )
        };
        Ok(!query.exists(|step| Ok(hides_cells(step)))?)
    }

    /// Returns the box that a plan shows; `None` unless it does nothing else, in any order of the rows.
    pub(super) fn from_plan(plan: &Arc<dyn ExecutionPlan>) -> Option<Self> {
        if let Some(scan) = plan.downcast_ref::<GridScanExec>() {
            let sources = scan.columns().into_iter().map(BoxColumn::Source);
            let columns: Vec<_> = scan.schema().fields().iter().cloned().zip(sources).collect();
            return Some(Self {
                array: Arc::clone(scan.array()),
                selection: scan.whole_box()?.clone(),
                shown: (0..columns.len()).collect(),
                columns,
            });
        }
        if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
            let mut it = Self::from_plan(projection.input())?;
            let place = |at: usize| it.shown.get(at).copied();
            let mut shown = vec![];
            for (projected, field) in projection.expr().iter().zip(projection.schema().fields()) {
                if let Some(column) = projected.expr.downcast_ref::<Column>() {
                    shown.push(place(column.index())?);
                } else {
                    let expr = renumbered(&projected.expr, place)?;
                    shown.push(it.columns.len());
                    it.columns.push((Arc::clone(field), BoxColumn::Computed(expr)));
                }
            }
            return Some(Self { shown, ..it });
        }
        let only_moves = plan.is::<CoalescePartitionsExec>()
            || plan.is::<RepartitionExec>()
            || plan.is::<SortExec>()
            || plan.is::<SortPreservingMergeExec>();
        match plan.children().as_slice() {
            [input] if only_moves && plan.fetch().is_none() => Self::from_plan(input),
            _ => None,
        }
    }

    /// Makes labels in other columns than `dims` values of each cell.
    pub(super) fn with_dims(mut self, dims: &[usize]) -> Self {
        for (at, column) in self.shown.iter_mut().enumerate() {
            let (field, source) = &self.columns[*column];
            if let BoxColumn::Source(ColumnSource::Label(_) | ColumnSource::Index(_)) = source
                && !dims.contains(&at)
            {
                let expr = Arc::new(Column::new(field.name(), *column));
                let repeated = (Arc::clone(field), BoxColumn::Computed(expr));
                *column = self.columns.len();
                self.columns.push(repeated);
            }
        }
        self
    }

    /// The number of cells.
    pub(super) fn cells(&self) -> usize {
        usize::try_from(self.selection.cells()).unwrap_or(usize::MAX)
    }

    /// Whether the columns `dims` of the query tell the place of each cell, and all others are numbers or times.
    ///
    /// # Errors
    /// If labels cannot be made.
    pub(super) fn is_dense(&self, dims: &[usize]) -> Result<bool> {
        if self.cells() == 0 {
            // No row shows a label then, and no box does.
            return Ok(false);
        }
        let mut shown = vec![0; self.selection.axes().len()];
        for (at, column) in self.shown.iter().enumerate() {
            let (field, column) = &self.columns[*column];
            let is_known = match column {
                BoxColumn::Source(ColumnSource::Label(axis) | ColumnSource::Index(axis)) => {
                    shown[*axis] += 1;
                    true
                }
                BoxColumn::Source(ColumnSource::File(_)) => false,
                BoxColumn::Source(ColumnSource::Value(_)) | BoxColumn::Computed(_) => {
                    !dims.contains(&at) && is_number(field.data_type())
                }
            };
            if !is_known {
                return Ok(false);
            }
        }
        let counts = self.selection.axes().iter().map(AxisSelection::count);
        if !shown.iter().zip(counts).all(|(shown, len)| *shown == 1 || *shown == 0 && len == 1) {
            return Ok(false);
        }
        for (_, column) in self.sources() {
            let (Some(axis), Some(labels)) = (column.axis(), self.array.labels_of(column)) else {
                continue;
            };
            if labels.order() == LabelOrder::Unsorted {
                // Labels that repeat or are NULL tell no place.
                let labels = labels.select(&self.selection.axes()[axis], 0)?;
                let runs = partition(&[sort(&labels, None)?])?.len();
                if labels.null_count() > 0 || runs != labels.len() {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// The columns of the query that show those of the scan.
    fn sources(&self) -> impl Iterator<Item = (usize, ColumnSource)> {
        self.shown.iter().enumerate().filter_map(|(at, column)| match self.columns[*column].1 {
            BoxColumn::Source(source) => Some((at, source)),
            BoxColumn::Computed(_) => None,
        })
    }

    /// Returns what the query computes; `None` if that needs texts or other values that are not read to their places.
    ///
    /// # Errors
    /// If labels cannot be made.
    pub(super) fn computed(&self) -> Result<Option<Computed>> {
        Computed::try_new(&self.array, &self.selection, &self.columns, &self.shown)
    }

    /// Returns the columns of the query that show variables, and which. Variables that expressions read are not among them.
    fn variables(&self, computed: &Computed) -> Vec<(usize, usize)> {
        let values = self.sources().filter_map(|(at, source)| Some((at, source.value()?)));
        values.filter(|(at, _)| !computed.has(*at)).collect()
    }

    /// Returns the labels that the query shows, with their axis and column, in the order of the axes.
    fn labels(&self) -> Result<Vec<(usize, usize, ArrayRef)>> {
        let mut shown = vec![];
        for (at, column) in self.sources() {
            if let (Some(axis), Some(labels)) = (column.axis(), self.array.labels_of(column)) {
                shown.push((axis, at, labels.select(&self.selection.axes()[axis], 0)?));
            }
        }
        shown.sort_by_key(|(axis, ..)| *axis);
        Ok(shown)
    }

    /// Reads the cells. They count towards the memory limit meanwhile.
    pub(super) async fn read(
        self,
        computed: Computed,
        threads: usize,
        keeps_nulls: bool,
        pool: &Arc<dyn MemoryPool>,
        counts: Arc<ReadCounts>,
    ) -> Result<GridCells> {
        let labels = self.labels()?;
        let variables = self.variables(&computed);
        let reservation = MemoryConsumer::new("result").register(pool);
        let stop = Stop(Arc::new(AtomicBool::new(false)));
        let job = BoxReader {
            array: self.array,
            selection: self.selection,
            threads,
            keeps_nulls,
            counts,
            stop: Arc::clone(&stop.0),
            handle: Handle::current(),
        };
        let read = move || -> Result<_> {
            let mut all = job.read_all(variables, &reservation)?;
            all.extend(computed.compute(&job, &reservation)?);
            Ok(all)
        };
        let read = spawn_blocking(read).await.map_err(|it| DataFusionError::External(it.into()))?;
        Ok(GridCells {
            labels: labels.into_iter().map(|(_, at, labels)| (at, labels)).collect(),
            variables: read?,
        })
    }
}
