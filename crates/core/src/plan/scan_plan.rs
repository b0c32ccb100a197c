//! [`ScanPlan`]: the chunks and cells that a scan reads, decided before it reads any payload.
//!
//! ```text
//!   selection  time: {0..24}        touched chunks  time: [0]        tasks  (0,0) (0,2)
//!              station: {0, 250}                    station: [0, 2]         └ 0 ┘ └ 1 ┘  partitions
//! ```
//!
//! A [`ScanPlan`] is a plain value: it can be compared, printed and cloned. Building it costs O(touched
//! chunks) and reads nothing.

use std::ops::Range;

use super::masks::ChunkMask;
use super::order::{ReadOrder, SlabShape, ordered_axes};
use super::partitions::{DivisionParams, Partitions, TaskPartition};
use super::pruned_chunks::{Account, PrunedChunks};
use super::task::{TaskNumber, TaskRange};
use super::touched::TouchedChunks;
use crate::error::Result;
use crate::grid::{AxisSelection, ChunkGrid, ChunkTask, Selection};

/// The part of one array that a query reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanRequest {
    /// The selected cells; each becomes a row.
    pub selection: Selection,
    /// Masks from the query's filters: a chunk that one of them drops holds no wanted row.
    pub masks: Vec<ChunkMask>,
    /// The number of rows that suffice, no matter which.
    pub limit: Option<u64>,
    /// The greatest number of partitions.
    pub partitions: usize,
    /// Whether partitions that are ranges of an axis are declared as such.
    pub declares_range: bool,
}

impl ScanRequest {
    /// Requests every cell of `grid`, in one partition.
    pub fn all(grid: &ChunkGrid) -> Self {
        Self {
            selection: Selection::all(grid.shape()),
            masks: vec![],
            limit: None,
            partitions: 1,
            declares_range: true,
        }
    }
}

/// The chunks that a scan reads, divided into partitions. They are in row-major order of the grid, unless
/// [`in_order`](Self::in_order) changes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanPlan {
    pub(super) chunks: TouchedChunks,
    /// The order to read rows in; `None` if chunks are read one by one.
    pub(super) order: Option<ReadOrder>,
    /// The number of chunks that only zone maps exclude.
    pub(super) pruned_by_zones: u64,
    pub(super) partitions: Partitions,
    /// The greatest number of partitions.
    pub(super) max_partitions: usize,
    /// Whether partitions may be declared as ranges of an axis.
    pub declares_range: bool,
    /// The number of rows that suffice of each partition; `None` without a limit.
    pub limit: Option<u64>,
    /// The chunks that the plan reports as left out.
    pub(super) account: Account,
}

impl ScanPlan {
    /// Plans a scan of an array with the chunks of `grid`.
    ///
    /// # Errors
    /// `Internal` if the request's rank differs from the grid's, or a mask's size does not match its axes.
    pub fn new(grid: ChunkGrid, request: ScanRequest) -> Result<Self> {
        let (chunks, pruned_by_zones) =
            TouchedChunks::new(grid, request.selection, &request.masks)?;
        let plan = Self {
            chunks,
            order: None,
            pruned_by_zones,
            partitions: Partitions::default(),
            max_partitions: request.partitions,
            declares_range: request.declares_range,
            limit: request.limit,
            account: Account::Own,
        };
        Ok(plan.divided())
    }

    /// Returns the array's chunk grid.
    pub fn grid(&self) -> &ChunkGrid {
        self.chunks.grid()
    }

    /// Returns the selected cells, before masks and limit.
    pub fn selection(&self) -> &Selection {
        self.chunks.selection()
    }

    /// Returns the number of partitions; at least one.
    pub fn partition_count(&self) -> usize {
        self.partitions.parts().len()
    }

    /// Returns the tasks of a partition; an empty range if there is no such partition.
    pub fn tasks(&self, partition: usize) -> TaskRange {
        self.part(partition).map(|part| part.tasks.clone()).unwrap_or_default()
    }

    fn part(&self, partition: usize) -> Option<&TaskPartition> {
        self.partitions.parts().get(partition)
    }

    /// Returns the axis along which partitions are ranges: no two of them share an index of it. `None` if
    /// there is no such axis, or only one partition.
    pub fn cut_along(&self) -> Option<usize> {
        self.partitions.axis()
    }

    /// Returns the number of rows of a partition, or of all partitions. It is exact for a scan without
    /// dynamic filters that is read to its end.
    pub fn rows(&self, partition: Option<usize>) -> u64 {
        // Each partition applies the limit on its own.
        let rows =
            |part: &TaskPartition| self.limit.map_or(part.rows, |limit| part.rows.min(limit));
        match partition {
            Some(partition) => self.part(partition).map_or(0, rows),
            None => self.partitions.parts().iter().map(rows).sum(),
        }
    }

    /// Returns the greatest number of rows of one partition; `None` without a limit.
    pub fn limit(&self) -> Option<u64> {
        self.limit
    }

    /// Returns the number of chunks that the scan reads.
    pub fn chunks(&self) -> u64 {
        self.partitions.parts().iter().map(|part| part.tasks.count_tasks()).sum()
    }

    /// Whether the rows are all cells of the selection: no mask and no limit leaves any out.
    pub fn is_selection(&self) -> bool {
        self.chunks.is_unmasked() && self.limit.is_none()
    }

    /// Returns how many chunks the plan leaves out, by reason. `None` for a share of a plan that another share reports.
    pub fn pruned(&self) -> Option<PrunedChunks> {
        match self.account {
            Account::Own => Some(self.left_out()),
            Account::OfAll(pruned) => Some(pruned),
            Account::Elsewhere => None,
        }
    }

    fn left_out(&self) -> PrunedChunks {
        let (tasks, by_zones) = (self.chunks.tasks(), self.pruned_by_zones);
        let by_selection = self.grid().chunks().saturating_sub(tasks + by_zones);
        PrunedChunks { by_selection, by_zones, by_limit: tasks - self.chunks() }
    }

    /// Returns the order of the rows of each partition: per leading axis that sorts them, whether indices
    /// descend. Rows are sorted by the index on the first axis, then on the second, and so on.
    pub fn order(&self) -> Vec<bool> {
        match &self.order {
            Some(order) => order.descending.clone(),
            None => vec![false; ordered_axes(&self.chunks)],
        }
    }

    /// Returns the order to read rows in, per leading axis whether indices descend; `None` if chunks are
    /// read one by one.
    pub fn reordered(&self) -> Option<&[bool]> {
        self.order.as_ref().map(|order| order.descending.as_slice())
    }

    /// Returns the size of the slabs that a scan holds in memory to read rows in order of the first
    /// `ordered` axes.
    pub fn slab_shape(&self, ordered: usize) -> SlabShape {
        SlabShape::new(&self.chunks, ordered)
    }

    /// Removes the tasks of the first slab from `tasks`, and returns them. If chunks are read one by one,
    /// that is one task.
    pub fn take_slab(&self, tasks: &mut TaskRange) -> TaskRange {
        self.chunks.take_slab(tasks, self.places_per_slab())
    }

    fn places_per_slab(&self) -> u64 {
        self.order.as_ref().map_or(1, |order| order.places_per_slab)
    }

    /// Returns, per axis, a range of indices that covers the chunks of a partition. The plan must read
    /// chunks one by one: on a descending axis the range would begin behind its end.
    pub fn index_windows(&self, partition: usize) -> Vec<Range<u64>> {
        self.chunks.index_windows(&self.tasks(partition))
    }

    /// Returns the chunk of a task and its selected cells.
    ///
    /// # Panics
    /// If `task` comes from another plan, which has more tasks.
    pub fn task(&self, task: TaskNumber) -> ChunkTask {
        self.chunks.task(task)
    }

    pub(super) fn division(&self) -> DivisionParams {
        DivisionParams {
            max_partitions: self.max_partitions,
            limit: self.limit,
            places_per_slab: self.places_per_slab(),
            declares_range: self.declares_range,
        }
    }

    /// Divides the tasks among partitions again, after they, the limit or the order have changed.
    pub(super) fn divided(self) -> Self {
        Self { partitions: Partitions::new(&self.chunks, self.division()), ..self }
    }

    /// Returns the plan with another limit, or none, in at most as many partitions as it has now. Adding a
    /// limit to a plan without one keeps the borders of partitions that are ranges, because the scan has
    /// declared them to DataFusion.
    #[must_use = "the plan is not changed in place"]
    pub fn with_limit(&self, limit: Option<u64>) -> Self {
        let plan = Self { limit, max_partitions: self.partition_count(), ..self.clone() };
        if limit.is_some() && self.limit.is_none() && self.cut_along().is_some() {
            let partitions = self.partitions.cut_short(&plan.chunks, plan.division());
            return Self { partitions, ..plan };
        }
        plan.divided()
    }

    /// Returns a plan that reads the same rows in order of the leading axes: `descending` has one entry
    /// per axis. The plan must have no limit, because in another order the limit would keep other rows.
    #[must_use = "the plan is not changed in place"]
    pub fn in_order(&self, descending: Vec<bool>) -> Self {
        let before = self.reordered().unwrap_or_default();
        // An axis is turned if its direction changes; axes that the order does not name ascend.
        let is = |order: &[bool], axis: usize| order.get(axis).copied().unwrap_or_default();
        let turned: Vec<bool> =
            (0..self.grid().rank()).map(|axis| is(&descending, axis) != is(before, axis)).collect();
        let order = ReadOrder::new(&self.chunks, descending);
        let plan = Self {
            chunks: self.chunks.reversed(&turned),
            order: Some(order),
            max_partitions: self.partition_count(),
            ..self.clone()
        };
        match self.cut_along() {
            // The scan has declared partitions that are ranges to DataFusion: their borders stay.
            Some(axis) if turned[axis] => Self { partitions: self.partitions.reversed(), ..plan },
            Some(_) => plan,
            None => plan.divided(),
        }
    }

    /// Returns the part of the plan whose cells lie in `wanted` on `axis`, in one partition. The plan must
    /// read chunks one by one.
    #[must_use = "the plan is not changed in place"]
    pub fn restricted(&self, axis: usize, wanted: &AxisSelection) -> Self {
        let chunks = self.chunks.restricted(axis, wanted);
        Self { chunks, max_partitions: 1, ..self.clone() }.divided()
    }

    /// Returns one partition as a plan of its own, with tasks numbered from 0. It keeps the
    /// selection of the whole plan, so [`is_selection`](Self::is_selection) is false.
    #[must_use = "the plan is not changed in place"]
    pub fn partition(&self, partition: usize) -> Self {
        let chunks = self.chunks.only(&self.tasks(partition));
        Self { chunks, max_partitions: 1, ..self.clone() }.divided()
    }
}
