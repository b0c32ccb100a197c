//! The shares of a plan, for processes that scan it together.
//!
//! ```text
//!   plan of 2 partitions      ├──────────────┼──────────────┤
//!   3 shares of 2 partitions  ├────┼────┤├────┼────┤├────┼────┤
//! ```
//!
//! Each process has about as many partitions as one process alone would have, because it has processors of its own. All
//! shares have the same number of partitions, so some may be empty.

use super::partitions::{DivisionParams, Partitions, TaskPartition};
use super::pruned_chunks::Account;
use super::scan_plan::ScanPlan;
use super::task::TaskRange;
use crate::grid::AxisSelection;

impl ScanPlan {
    /// Divides the plan into `count` plans with about equally many cells. Together they read what this plan reads, in as
    /// many partitions each. With a limit, each of their partitions has the limit.
    pub fn shares(&self, count: usize) -> Vec<Self> {
        let partitions = self.partition_count();
        let max_partitions = partitions.saturating_mul(count);
        let division = DivisionParams { max_partitions, ..self.division() };
        let all = Partitions::new(&self.chunks, division);
        let parts = all.parts();
        let border = |number: usize| number * parts.len() / count;
        (0..count)
            .map(|number| {
                self.share(number, &parts[border(number)..border(number + 1)], partitions)
            })
            .collect()
    }

    /// Returns the share of this number, which reads `parts` in as many partitions as given.
    fn share(&self, number: usize, parts: &[TaskPartition], partitions: usize) -> Self {
        let first = parts.first().map_or(0, |part| part.tasks.numbers().start);
        let end = parts.last().map_or(first, |part| part.tasks.numbers().end);
        let renumbered = |part: &TaskPartition| {
            let tasks = part.tasks.numbers();
            TaskPartition {
                tasks: TaskRange::new(tasks.start - first..tasks.end - first),
                rows: part.rows,
            }
        };
        let mut parts: Vec<TaskPartition> = parts.iter().map(renumbered).collect();
        parts.resize(
            partitions,
            TaskPartition { tasks: TaskRange::new(end - first..end - first), rows: 0 },
        );
        Self {
            chunks: self.chunks.only(&TaskRange::new(first..end)).narrowed(),
            partitions: Partitions::from_parts(parts, None),
            max_partitions: partitions,
            declares_range: false,
            account: self.account_of(number),
            ..self.clone()
        }
    }

    /// Returns a share of the plan: the cells in `wanted` on `axis`, in as many partitions as the plan has. The plan must
    /// read chunks one by one.
    pub fn share_of(&self, number: usize, axis: usize, wanted: &AxisSelection) -> Self {
        let partitions = self.partition_count();
        let chunks = self.chunks.restricted(axis, wanted);
        let division = DivisionParams { max_partitions: partitions, ..self.division() };
        let mut parts = Partitions::new(&chunks, division).parts().to_vec();
        let tasks = chunks.tasks();
        parts.resize(partitions, TaskPartition { tasks: TaskRange::new(tasks..tasks), rows: 0 });
        Self {
            chunks,
            partitions: Partitions::from_parts(parts, None),
            max_partitions: partitions,
            declares_range: false,
            account: self.account_of(number),
            ..self.clone()
        }
    }

    /// Whether this plan is a share of another.
    pub fn is_share(&self) -> bool {
        self.account != Account::Own
    }

    fn account_of(&self, number: usize) -> Account {
        match self.pruned() {
            Some(pruned) if number == 0 => Account::OfAll(pruned),
            _ => Account::Elsewhere,
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;
    use crate::grid::{ChunkGrid, Selection};
    use crate::plan::{ChunkMask, PrunedChunks, ScanRequest};

    /// The chunks that a plan reads, with their selected cells, by partition.
    fn read(plan: &ScanPlan) -> Vec<(u64, Vec<AxisSelection>)> {
        (0..plan.partition_count())
            .flat_map(|partition| plan.tasks(partition))
            .map(|task| {
                let task = plan.task(task);
                (task.chunk_number, task.selection)
            })
            .collect()
    }

    #[test]
    fn shares_read_each_chunk_once_and_report_what_is_left_out_once() {
        let mut random = StdRng::seed_from_u64(20);
        let (mut masked, mut limited, mut ordered, mut narrowed, mut empty) = (0, 0, 0, 0, 0);
        for _ in 0..500 {
            let shape: Vec<u64> =
                (0..random.random_range(1..4)).map(|_| random.random_range(1..30)).collect();
            let chunks: Vec<u64> = shape.iter().map(|len| random.random_range(1..=*len)).collect();
            let grid = ChunkGrid::new(&shape, &chunks).unwrap();
            let mut selection = Selection::all(&shape);
            let wanted = |random: &mut StdRng, len: u64| {
                let mask: Vec<bool> = (0..len).map(|_| random.random_bool(0.5)).collect();
                AxisSelection::from_mask(&mask)
            };
            if random.random_bool(0.5) {
                selection.restrict(0, &wanted(&mut random, shape[0]));
            }
            let partitions = random.random_range(1..5);
            let mut request = ScanRequest { selection, partitions, ..ScanRequest::all(&grid) };
            if random.random_bool(0.3) {
                let touched = crate::plan::touched_chunks(&grid, &request.selection, 0).len();
                let keep: Vec<bool> = (0..touched).map(|_| random.random_bool(0.6)).collect();
                request.masks.push(ChunkMask { axes: vec![0], keep, by_zones: false });
                masked += 1;
            }
            if random.random_bool(0.2) {
                request.limit = Some(random.random_range(1..20));
                limited += 1;
            }
            let mut plan = ScanPlan::new(grid, request).unwrap();
            if plan.limit().is_none() && random.random_bool(0.3) {
                plan = plan.in_order(shape.iter().map(|_| random.random()).collect());
                ordered += 1;
            }
            let count = random.random_range(1..6);
            let shares = plan.shares(count);
            assert_eq!(shares.len(), count);
            let mut found: Vec<_> = shares.iter().flat_map(read).collect();
            found.sort_by_key(|(chunk, _)| *chunk);
            let mut expected = read(&plan);
            expected.sort_by_key(|(chunk, _)| *chunk);
            assert_eq!(found, expected);
            assert!(shares.iter().all(|it| it.partition_count() == plan.partition_count()));
            let reported: Vec<PrunedChunks> = shares.iter().filter_map(ScanPlan::pruned).collect();
            assert_eq!(reported, [plan.pruned().unwrap()]);
            let rows: u64 = shares.iter().map(|it| it.rows(None)).sum();
            assert!(rows >= plan.rows(None), "{rows}");
            let labels = |plan: &ScanPlan| plan.selection().axes()[0].count();
            let needs = |share: &ScanPlan| {
                let found = read(share).iter().map(|(_, cells)| cells[0].count()).max();
                found.is_none_or(|most| most <= labels(share))
            };
            assert!(shares.iter().all(needs));
            narrowed += shares.iter().filter(|it| labels(it) < labels(&plan)).count();
            empty += shares.iter().filter(|it| it.chunks() == 0).count();
        }
        let counts = [masked, limited, ordered, narrowed, empty];
        assert!(counts.iter().all(|count| *count > 50), "{counts:?}");
    }
}
