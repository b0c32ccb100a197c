//! The shares of a sparse plan, for processes that scan it together.

use super::plan::{MergeTask, PartitionTasks, SparsePlan, TileCounts, TileTask};
use super::split::distribute;

impl SparsePlan {
    /// Divides the plan into `count` plans with about equally many cells, in as many partitions each. Together they read
    /// what this plan reads; only the first reports the tiles that are left out. With a limit, each has the limit.
    pub(super) fn shares(&self, cells: impl Fn(&TileTask) -> u64, count: usize) -> Vec<Self> {
        let of = |tiles: &[TileTask]| tiles.iter().map(&cells).fold(0, u64::saturating_add);
        let of_merge = |merge: &MergeTask| (of(&merge.tiles), merge.clone());
        let merges: Vec<(u64, MergeTask)> =
            self.partitions.iter().flat_map(|it| &it.merges).map(of_merge).collect();
        let tiles: Vec<TileTask> =
            self.partitions.iter().flat_map(|it| &it.tiles).copied().collect();
        let merged = merges.iter().map(|(cells, _)| *cells);
        let total = merged.fold(of(&tiles), u64::saturating_add);
        let partitions = self.partition_count();
        let tasks = distribute(merges, &tiles, &cells, total, count.saturating_mul(partitions));
        let shares = tasks.chunks(partitions).enumerate();
        shares.map(|(number, tasks)| self.share(number, tasks, of)).collect()
    }

    /// Returns the share of this number, which reads `tasks`; `of` counts the cells of tiles.
    fn share(
        &self,
        number: usize,
        tasks: &[PartitionTasks],
        of: impl Fn(&[TileTask]) -> u64,
    ) -> Self {
        let merged = tasks.iter().flat_map(|it| &it.merges).map(|merge| merge.tiles.as_slice());
        let read: Vec<&[TileTask]> =
            tasks.iter().map(|it| it.tiles.as_slice()).chain(merged).collect();
        let tiles = read.iter().map(|tiles| tiles.len() as u64).sum();
        let counts = TileCounts {
            elsewhere: self.counts.read().saturating_sub(tiles),
            is_reported_elsewhere: number > 0,
            ..self.counts
        };
        let cells = read.into_iter().map(of).fold(0, u64::saturating_add);
        Self { partitions: tasks.to_vec(), cells, counts, ..self.clone() }
    }
}
