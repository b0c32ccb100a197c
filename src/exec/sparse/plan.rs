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
}

/// Tiles that may hold cells of the same coordinates.
#[derive(Debug, Clone)]
pub(crate) struct MergeTask {
    /// In the order of fragments, and of the tiles in each.
    pub(crate) tiles: Vec<TileTask>,
    /// The coordinates that this task returns; `None` for all. Another task has the others.
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

/// Adds tiles to the partitions in order, until each has its part of `total` cells.
pub(super) fn fill<'a>(
    shares: &mut [(u64, PartitionTasks)],
    total: u64,
    mut tiles: impl Iterator<Item = &'a TileTask>,
    cells: &impl Fn(&TileTask) -> u64,
) {
    let share = total.div_ceil(shares.len().max(1) as u64).max(1);
    let last = shares.len().saturating_sub(1);
    for (at, (load, tasks)) in shares.iter_mut().enumerate() {
        while (*load < share || at == last)
            && let Some(task) = tiles.next()
        {
            *load = load.saturating_add(cells(task));
            tasks.tiles.push(*task);
        }
    }
}

impl SparsePlan {
    /// Returns how many tiles the plan reads, and why it does not read the others.
    pub fn counts(&self) -> TileCounts {
        self.counts
    }

    /// Divides the plan into `count` plans with about equally many cells, in as many partitions each. Together they read
    /// what this plan reads; only the first counts the tiles that are left out. With a limit, each has the limit.
    pub(crate) fn shares(&self, cells: impl Fn(&TileTask) -> u64, count: usize) -> Vec<Self> {
        let partitions = self.partition_count();
        let of = |tiles: &[TileTask]| tiles.iter().map(&cells).fold(0, u64::saturating_add);
        let mut shares = vec![(0_u64, PartitionTasks::default()); count.saturating_mul(partitions)];
        let mut merges: Vec<(u64, &MergeTask)> = self
            .partitions
            .iter()
            .flat_map(|it| &it.merges)
            .map(|it| (of(&it.tiles), it))
            .collect();
        // The largest first, each to the partition with the least work.
        merges.sort_by_key(|(cells, _)| std::cmp::Reverse(*cells));
        for (cells, merge) in merges {
            if let Some((load, tasks)) = shares.iter_mut().min_by_key(|(load, _)| *load) {
                *load = load.saturating_add(cells);
                tasks.merges.push(merge.clone());
            }
        }
        let tiles: Vec<TileTask> =
            self.partitions.iter().flat_map(|it| &it.tiles).copied().collect();
        let total = shares.iter().map(|(load, _)| *load).fold(of(&tiles), u64::saturating_add);
        fill(&mut shares, total, tiles.iter(), &cells);
        let tasks: Vec<PartitionTasks> = shares.into_iter().map(|(_, tasks)| tasks).collect();
        let share = |(number, tasks): (usize, &[PartitionTasks])| {
            let read = |it: &PartitionTasks| {
                of(&it.tiles).saturating_add(it.merges.iter().map(|it| of(&it.tiles)).sum())
            };
            let cells = tasks.iter().map(read).fold(0, u64::saturating_add);
            let tiles = |it: &PartitionTasks| {
                let merged: usize = it.merges.iter().map(|merge| merge.tiles.len()).sum();
                (it.tiles.len() + merged) as u64
            };
            let counts = TileCounts {
                elsewhere: self.counts.read().saturating_sub(tasks.iter().map(tiles).sum()),
                is_reported_elsewhere: number > 0,
                ..self.counts
            };
            Self { partitions: tasks.to_vec(), cells, counts, ..self.clone() }
        };
        tasks.chunks(partitions).enumerate().map(share).collect()
    }

    /// Returns the cells of the tiles that are read.
    pub fn cells(&self) -> u64 {
        self.cells
    }

    /// Returns the position of the first tile that is read among those that all shares read, and the number of these.
    pub fn first_tile(&self) -> (u64, u64) {
        let tasks = self.partitions.iter().find(|it| !it.tiles.is_empty());
        let first = tasks.and_then(|it| it.tiles.first()).map_or(0, |it| it.tile.tile);
        (first.min(self.counts.tiles), self.counts.tiles)
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
        if self.counts.merged > 0 || self.partitions.iter().any(|it| !it.merges.is_empty()) {
            return None;
        }
        let mut tiles = self.partitions.iter().flat_map(|tasks| &tasks.tiles);
        let first = tiles.next()?.tile.fragment;
        tiles.all(|task| task.tile.fragment == first).then_some(first)
    }
}
