//! What a scan will read, decided before any payload is touched.
//!
//! ```text
//!   selection  time: {0..24}        touched chunks  time: [0]        tasks  (0,0) (0,2)
//!              station: {0, 250}                    station: [0, 2]         └ 0 ┘ └ 1 ┘  partitions
//! ```
//!
//! A [`ScanPlan`] is a plain value: it can be compared, printed and sent elsewhere. Building it
//! costs O(touched chunks) and reads nothing.

use std::ops::Range;

use super::masks::ChunkMask;
use super::order::{ReadOrder, SlabShape, ordered_axes};
use super::partitions::{Division, Part, Partitions};
use super::task::{TaskNumber, TaskRange};
use super::touched::TouchedChunks;
use crate::error::Result;
use crate::grid::{AxisSelection, ChunkGrid, ChunkTask, Selection};

/// The part of one array that a query reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanRequest {
    /// The selected cells; each becomes a row.
    pub selection: Selection,
    /// Chunks without a row that passes the query's filters, by pairs or more of axes.
    pub masks: Vec<ChunkMask>,
    /// Stop after this many rows, whichever they are.
    pub limit: Option<u64>,
    /// Into how many partitions to cut the chunks, at most.
    pub partitions: usize,
}

impl ScanRequest {
    /// Every cell of `grid`, in one partition.
    pub fn all(grid: &ChunkGrid) -> Self {
        Self { selection: Selection::all(grid.shape()), masks: vec![], limit: None, partitions: 1 }
    }
}

/// How many chunks of the grid a plan leaves out, by what rules them out first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    /// The labels of their dimensions.
    pub by_selection: u64,
    /// The zone maps of their values.
    pub by_zones: u64,
    /// A limit that chunks before them reach.
    pub by_limit: u64,
}

/// The chunks to read, in row-major order of the grid, divided into partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanPlan {
    chunks: TouchedChunks,
    /// In which order rows are read; `None` if chunks are read one by one.
    order: Option<ReadOrder>,
    /// Chunks that only zone maps rule out.
    pruned_by_zones: u64,
    partitions: Partitions,
    /// The requested number of partitions.
    max_partitions: usize,
    limit: Option<u64>,
}

impl ScanPlan {
    /// Plans a scan of an array cut by `grid`.
    ///
    /// # Errors
    /// `Internal` if the request is of another rank or a mask of another size.
    pub fn new(grid: ChunkGrid, request: ScanRequest) -> Result<Self> {
        let (chunks, pruned_by_zones) =
            TouchedChunks::new(grid, request.selection, &request.masks)?;
        let (max_partitions, limit) = (request.partitions, request.limit);
        let division = Division { max_partitions, limit, places_per_slab: 1 };
        let partitions = Partitions::of(&chunks, division);
        Ok(Self { chunks, order: None, pruned_by_zones, partitions, max_partitions, limit })
    }

    /// How the array is cut into chunks.
    pub fn grid(&self) -> &ChunkGrid {
        self.chunks.grid()
    }

    /// The selected cells, before masks and limit.
    pub fn selection(&self) -> &Selection {
        self.chunks.selection()
    }

    /// How many partitions there are; at least one.
    pub fn partition_count(&self) -> usize {
        self.partitions.parts().len()
    }

    /// The tasks of a partition; none if there is no such partition.
    pub fn tasks(&self, partition: usize) -> TaskRange {
        self.part(partition).map(|part| part.tasks.clone()).unwrap_or_default()
    }

    fn part(&self, partition: usize) -> Option<&Part> {
        self.partitions.parts().get(partition)
    }

    /// The axis along which partitions are ranges, if there are several: none of its indices is in two.
    pub fn cut_along(&self) -> Option<usize> {
        self.partitions.axis()
    }

    /// Rows of a partition, or of all: exactly what the scan yields unless it is dropped early.
    pub fn rows(&self, partition: Option<usize>) -> u64 {
        // Each partition stops at the limit by itself.
        let rows = |part: &Part| self.limit.map_or(part.rows, |limit| part.rows.min(limit));
        match partition {
            Some(partition) => self.part(partition).map_or(0, rows),
            None => self.partitions.parts().iter().map(rows).sum(),
        }
    }

    /// The most rows a partition yields.
    pub fn limit(&self) -> Option<u64> {
        self.limit
    }

    /// Chunks that will be read.
    pub fn chunks(&self) -> u64 {
        self.partitions.parts().iter().map(|part| part.tasks.count_tasks()).sum()
    }

    /// Whether the rows are the selection's cells and no others: no mask and no limit cut any off.
    pub fn is_selection(&self) -> bool {
        self.chunks.is_unmasked() && self.limit.is_none()
    }

    /// What is left out, and why.
    pub fn pruned(&self) -> Pruned {
        let (tasks, by_zones) = (self.chunks.tasks(), self.pruned_by_zones);
        let by_selection = self.grid().chunks().saturating_sub(tasks + by_zones);
        Pruned { by_selection, by_zones, by_limit: tasks - self.chunks() }
    }

    /// Of the leading axes by which the rows of each partition are in order whether they descend: by
    /// index on the first, among equals on the second, and so on.
    pub fn order(&self) -> Vec<bool> {
        match &self.order {
            Some(order) => order.descending.clone(),
            None => vec![false; ordered_axes(&self.chunks)],
        }
    }

    /// The order in which rows must be read, if chunks cannot simply be read one by one.
    pub fn reordered(&self) -> Option<&[bool]> {
        self.order.as_ref().map(|order| order.descending.as_slice())
    }

    /// What must be held together for rows in order of the first `ordered` axes.
    pub fn slab_shape(&self, ordered: usize) -> SlabShape {
        SlabShape::new(&self.chunks, ordered)
    }

    /// Takes off the tasks of the slab with which `tasks` begin.
    pub fn take_slab(&self, tasks: &mut TaskRange) -> TaskRange {
        self.chunks.take_slab(tasks, self.places_per_slab())
    }

    fn places_per_slab(&self) -> u64 {
        self.order.as_ref().map_or(1, |order| order.places_per_slab)
    }

    /// Per axis the indices that the chunks of a partition span, from the first to the last.
    pub fn index_windows(&self, partition: usize) -> Vec<Range<u64>> {
        self.chunks.index_windows(&self.tasks(partition))
    }

    /// The chunk of a task and its selected cells.
    ///
    /// # Panics
    /// For the number of a task of another plan, which has more tasks.
    pub fn task(&self, task: TaskNumber) -> ChunkTask {
        self.chunks.task(task)
    }

    fn division(&self) -> Division {
        Division {
            max_partitions: self.max_partitions,
            limit: self.limit,
            places_per_slab: self.places_per_slab(),
        }
    }

    /// The plan with its tasks divided anew.
    fn divided(self) -> Self {
        Self { partitions: Partitions::of(&self.chunks, self.division()), ..self }
    }

    /// The same plan with a limit, or without one, in at most as many partitions as it has now. Partitions
    /// that are ranges keep their borders, because DataFusion was told of them.
    #[must_use = "the plan is not changed in place"]
    pub fn with_limit(&self, limit: Option<u64>) -> Self {
        let plan = Self { limit, max_partitions: self.partition_count(), ..self.clone() };
        if limit.is_some() && self.limit.is_none() && self.cut_along().is_some() {
            let partitions = self.partitions.cut_short(&plan.chunks, plan.division());
            return Self { partitions, ..plan };
        }
        plan.divided()
    }

    /// The same rows in order of the leading axes: per axis whether its index descends. The plan must
    /// have no limit, which would be one on other rows.
    #[must_use = "the plan is not changed in place"]
    pub fn in_order(&self, descending: Vec<bool>) -> Self {
        let before = self.reordered().unwrap_or_default();
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
            // Partitions that are ranges keep their borders: DataFusion was told of them.
            Some(axis) if turned[axis] => Self { partitions: self.partitions.reversed(), ..plan },
            Some(_) => plan,
            None => plan.divided(),
        }
    }

    /// The part of the plan whose cells lie in `wanted` on `axis`, in one partition. Only for plans
    /// that read chunks one by one.
    #[must_use = "the plan is not changed in place"]
    pub fn restricted(&self, axis: usize, wanted: &AxisSelection) -> Self {
        let chunks = self.chunks.restricted(axis, wanted);
        Self { chunks, max_partitions: 1, ..self.clone() }.divided()
    }

    /// One partition of the plan as a plan of its own.
    #[must_use = "the plan is not changed in place"]
    pub fn partition(&self, partition: usize) -> Self {
        let chunks = self.chunks.only(&self.tasks(partition));
        Self { chunks, max_partitions: 1, ..self.clone() }.divided()
    }
}
