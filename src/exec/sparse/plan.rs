//! [`SparsePlan`]: the tiles that each partition of a scan reads.

use std::sync::Arc;

use super::bounds::KnownTiles;
use super::filters::{RowFilter, SparseFilters};
use crate::array::TileNumber;

/// A tile of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TileTask {
    pub(crate) tile: TileNumber,
    /// Whether the filters over dimensions are true for all of its cells.
    pub(crate) is_inside: bool,
    /// Whether cells of it may lie outside the range of its merge.
    pub(crate) is_cut: bool,
}

/// Tiles that may hold cells of the same coordinates.
#[derive(Debug, Clone)]
pub(crate) struct MergeTask {
    /// In the order of fragments, and of the tiles in each.
    pub(crate) tiles: Vec<TileTask>,
    /// The coordinates that this task returns; `None` for all. Another task has the others. Only tiles that are cut have
    /// cells of both.
    pub(crate) range: Option<RowFilter>,
}

/// The tasks of one partition.
#[derive(Debug, Clone, Default)]
pub(crate) struct PartitionTasks {
    pub(crate) merges: Vec<MergeTask>,
    /// Tiles that share no coordinates with others.
    pub(crate) tiles: Vec<TileTask>,
}

/// How many tiles and fragments a plan reads, and why it does not read the others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TileCounts {
    /// The fragments of the array.
    pub fragments: u64,
    /// The fragments of which the plan reads tiles.
    pub fragments_read: u64,
    /// The tiles of the array.
    pub tiles: u64,
    /// Tiles of fragments outside the selected coordinates.
    pub outside_domain: u64,
    /// Tiles whose rectangles lie outside the selected coordinates.
    pub outside_rectangle: u64,
    /// Tiles whose statistics exclude the selected values.
    pub outside_statistics: u64,
    /// Tiles that are merged with others.
    pub merged: u64,
    /// Tiles that other shares of the plan read.
    pub elsewhere: u64,
    /// Whether another share of the plan reports the tiles that it does not read.
    pub is_reported_elsewhere: bool,
}

impl TileCounts {
    /// Returns the number of tiles that the plan reads.
    pub fn read(&self) -> u64 {
        [self.outside_domain, self.outside_rectangle, self.outside_statistics, self.elsewhere]
            .into_iter()
            .fold(self.tiles, u64::saturating_sub)
    }
}

/// The tiles that each partition of a scan reads, and the filters of their rows. Holds no open files.
#[derive(Debug, Clone)]
pub struct SparsePlan {
    pub(crate) partitions: Vec<PartitionTasks>,
    pub(crate) filters: SparseFilters,
    /// The rectangles and statistics that planning has read.
    pub(crate) known: Arc<KnownTiles>,
    pub(crate) counts: TileCounts,
    /// The cells of the tiles that are read: the most rows that the scan returns.
    pub(crate) cells: u64,
    /// Whether the scan returns exactly one row per cell.
    pub(crate) is_exact: bool,
    /// The most rows that are needed, in any order.
    pub(crate) limit: Option<usize>,
}

impl SparsePlan {
    /// Returns how many tiles the plan reads, and why it does not read the others.
    pub fn counts(&self) -> TileCounts {
        self.counts
    }

    /// Returns the cells of the tiles that are read.
    pub fn cells(&self) -> u64 {
        self.cells
    }

    /// Returns the number of partitions, at least 1.
    pub fn partition_count(&self) -> usize {
        self.partitions.len()
    }

    /// Returns the same plan with a limit of rows.
    #[must_use]
    pub(crate) fn with_limit(&self, limit: Option<usize>) -> Self {
        Self { limit, ..self.clone() }
    }

    /// Whether the rows of the plan are those of whole tiles of one fragment, in order.
    pub(crate) fn single_fragment(&self) -> Option<usize> {
        if self.counts.merged > 0 {
            return None;
        }
        let mut tiles = self.partitions.iter().flat_map(|tasks| &tasks.tiles);
        let first = tiles.next()?.tile.fragment;
        tiles.all(|task| task.tile.fragment == first).then_some(first)
    }
}
