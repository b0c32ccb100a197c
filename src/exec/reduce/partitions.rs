//! The partitions of a reduction.
//!
//! If an axis can be cut so that no group lies on both sides of a cut, each partition finishes its own
//! groups. Then there is nothing to merge, and no final stage is needed.
//!
//! ```text
//!   GROUP BY month:   time  0 0 0 0 1 1 1 2 2 2 2 3 3 3        cut between 1 and 2: months stay whole
//!                           └─ part. 0 ───┘└─ part. 1 ─┘
//!   GROUP BY hour:    time  0 1 2 … 23 0 1 2 … 23 0 1 …        every cut splits every hour
//! ```
//!
//! Cuts are at a chunk's border, or inside a chunk if an axis has many chunks or states hold all values. In the latter case, groups that
//! return are divided by their numbers: hours 0 to 11, and 12 to 23. Otherwise, the reduction returns the partial states that DataFusion
//! defines for its functions, and DataFusion repartitions and merges them.

use std::ops::Range;
use std::sync::Arc;

use crate::grid::AxisSelection;
use crate::plan::ScanPlan;
use crate::reduce::AxisGroups;

/// The part of the array that a partition reduces: one partition of a plan.
#[derive(Debug, Clone)]
pub(in crate::exec) struct ReducePartition {
    pub(in crate::exec) plan: Arc<ScanPlan>,
    /// The number of the plan's partition.
    pub(in crate::exec) partition: usize,
}

/// Returns the partitions of the plan unchanged.
pub(in crate::exec) fn as_planned(plan: &Arc<ScanPlan>) -> Vec<ReducePartition> {
    let of_plan = |partition| ReducePartition { plan: Arc::clone(plan), partition };
    (0..plan.partition_count()).map(of_plan).collect()
}

/// How often a chunk may be read and decoded. With more partitions, they merge their values in less time.
const MOST_READS: usize = 4;

/// Whether as many partitions have rows as may read one chunk, or all.
pub(super) fn are_parallel(partitions: &[ReducePartition]) -> bool {
    let has_rows = |it: &&ReducePartition| it.plan.rows(Some(it.partition)) > 0;
    partitions.iter().filter(has_rows).count() >= partitions.len().min(MOST_READS)
}

/// Where partitions may be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::exec) enum Cuts {
    /// Where few chunks are read twice.
    Cheap,
    /// Anywhere: reading chunks a few times costs less than merging partial states.
    Anywhere,
}

/// Returns one partition with all chunks of the plan.
pub(super) fn in_one(plan: &Arc<ScanPlan>) -> Vec<ReducePartition> {
    let all = plan.selection().axes().first().filter(|_| plan.partition_count() > 1);
    match all {
        Some(all) => of_parts(plan, 0, std::slice::from_ref(all)),
        None => as_planned(plan),
    }
}

/// Returns as many partitions as the plan has, about equally large, that share no group; `None` if the
/// array cannot be cut this way.
pub(in crate::exec) fn without_shared_groups(
    plan: &Arc<ScanPlan>,
    groups: &[AxisGroups],
    allowed: Cuts,
) -> Option<Vec<ReducePartition>> {
    if plan.partition_count() == 1 {
        return Some(as_planned(plan));
    }
    let axes = KeyedAxis::all(plan, groups);
    let (axis, parts) = parts_apart(plan, &axes, plan.partition_count(), allowed)?;
    Some(of_parts(plan, axis, &parts))
}

/// Returns as many partitions as the plan has that share no group. If the array cannot be cut so often, some are empty.
pub(in crate::exec) fn without_shared_groups_or_empty(
    plan: &Arc<ScanPlan>,
    groups: &[AxisGroups],
    allowed: Cuts,
) -> Vec<ReducePartition> {
    if plan.partition_count() == 1 {
        return as_planned(plan);
    }
    let (axis, parts) = parts_apart_or_empty(plan, groups, plan.partition_count(), allowed);
    of_parts(plan, axis, &parts)
}

/// Returns `count` shares of a plan that share no group. If the array cannot be cut so often, some are empty.
///
/// The plan must be of an array with axes.
pub(in crate::exec) fn shares_apart(
    plan: &ScanPlan,
    groups: &[AxisGroups],
    count: usize,
    allowed: Cuts,
) -> Vec<ScanPlan> {
    let (axis, parts) = parts_apart_or_empty(plan, groups, count, allowed);
    let share = |(number, part): (usize, &AxisSelection)| plan.share_of(number, axis, part);
    parts.iter().enumerate().map(share).collect()
}

/// Returns an axis and `count` parts of its selected indices that share no group: as many as possible, and then empty
/// ones.
fn parts_apart_or_empty(
    plan: &ScanPlan,
    groups: &[AxisGroups],
    count: usize,
    allowed: Cuts,
) -> (usize, Vec<AxisSelection>) {
    let axes = KeyedAxis::all(plan, groups);
    let apart = (2..=count).rev().find_map(|count| parts_apart(plan, &axes, count, allowed));
    let (axis, mut parts) = apart.unwrap_or_else(|| (0, vec![plan.selection().axes()[0].clone()]));
    parts.resize(count, AxisSelection::from_range(parts[0].len(), 0..0));
    (axis, parts)
}

/// An axis in a key.
struct KeyedAxis<'a> {
    axis: usize,
    groups: &'a AxisGroups,
    /// Per rank, whether a cut before it splits no group; `None` if no cut splits any.
    splits_no_group: Option<Vec<bool>>,
}

impl<'a> KeyedAxis<'a> {
    fn all(plan: &ScanPlan, groups: &'a [AxisGroups]) -> Vec<Self> {
        let keyed = groups.iter().enumerate().filter(|(_, groups)| **groups != AxisGroups::One);
        let keyed = keyed.map(|(axis, groups)| {
            let len = plan.selection().axes()[axis].count();
            Self { axis, groups, splits_no_group: group_borders(groups, len) }
        });
        keyed.collect()
    }
}

/// Returns an axis and `count` parts of its selected indices, about equally large, that share no group. The first axis
/// that has suitable cuts is cut, and no other. If none has any, groups that occur all along an axis are divided.
fn parts_apart(
    plan: &ScanPlan,
    axes: &[KeyedAxis<'_>],
    count: usize,
    allowed: Cuts,
) -> Option<(usize, Vec<AxisSelection>)> {
    let apart = |allowed| {
        axes.iter().find_map(|keyed| {
            let cuts = cuts(plan, keyed, count as u64, allowed)?;
            let selection = &plan.selection().axes()[keyed.axis];
            let between = |ranks: &[u64]| selection.slice(ranks[0]..ranks[1]);
            Some((keyed.axis, cuts.windows(2).map(between).collect()))
        })
    };
    // Each part may read all chunks.
    let may_cut_anywhere = allowed == Cuts::Anywhere && count <= MOST_READS;
    let by_number =
        || axes.iter().find_map(|keyed| Some((keyed.axis, by_number(plan, keyed, count)?)));
    let anywhere = || apart(Cuts::Anywhere).or_else(by_number);
    apart(Cuts::Cheap).or_else(|| may_cut_anywhere.then(anywhere).flatten())
}

/// Returns `count` parts of the selected indices of an axis, by the numbers of their groups; `None` if the groups are too few. Parts are
/// about equally large.
///
/// Two parts of the hours of some days are the first and the second half of each day.
fn by_number(plan: &ScanPlan, keyed: &KeyedAxis<'_>, count: usize) -> Option<Vec<AxisSelection>> {
    let AxisGroups::Numbered { numbers, groups } = keyed.groups else { return None };
    let mut labels = vec![0; *groups as usize];
    numbers.iter().for_each(|group| labels[*group as usize] += 1);
    let mut before = 0;
    let part = |labels: &usize| {
        let middle = before + labels / 2;
        before += labels;
        middle * count / numbers.len()
    };
    let parts: Vec<usize> = labels.iter().map(part).collect();
    let selection = &plan.selection().axes()[keyed.axis];
    let selected = |part: usize| {
        let indices = selection.ranges().iter().cloned().flatten().zip(numbers.iter());
        let of_part = indices.filter(|(_, group)| parts[**group as usize] == part);
        AxisSelection::from_ranges(selection.len(), of_part.map(|(index, _)| index..index + 1))
    };
    let parts: Vec<AxisSelection> = (0..count).map(selected).collect();
    parts.iter().all(|part| part.count() > 0).then_some(parts)
}

/// Returns a partition per part of an axis.
fn of_parts(plan: &ScanPlan, axis: usize, parts: &[AxisSelection]) -> Vec<ReducePartition> {
    let partition = |part: &AxisSelection| {
        let plan = Arc::new(plan.restricted(axis, part));
        ReducePartition { plan, partition: 0 }
    };
    parts.iter().map(partition).collect()
}

/// Returns the ranks at which to cut the selected indices of `axis` into `count` parts, both ends included; `None` if
/// there are no suitable ranks.
///
/// Of 1440 indices in chunks of 240, two partitions are cut at 720: the ideal rank, and a chunk's border.
/// If a group has cells on both sides, there is no cut: no other border is near enough, between 630 and
/// 809.
fn cuts(plan: &ScanPlan, keyed: &KeyedAxis<'_>, count: u64, allowed: Cuts) -> Option<Vec<u64>> {
    /// A cut inside a chunk makes two partitions read it. That costs little if each has so many chunks.
    const CHUNKS_PER_SPLIT: u64 = 16;
    /// A cut may lie `1 / SLACK` of a share away from its ideal rank.
    const SLACK: u64 = 8;
    let &KeyedAxis { axis, ref splits_no_group, .. } = keyed;
    let selection = &plan.selection().axes()[axis];
    let len = selection.count();
    // Many chunks per partition: then a cut may be anywhere.
    let may_split = allowed == Cuts::Anywhere
        || plan.grid().chunks_per_axis()[axis] / count >= CHUNKS_PER_SPLIT;
    let mut cuts = vec![0];
    for number in 1..count {
        let ideal = len * number / count;
        let slack = (len / count / SLACK).max(1);
        let near = ideal.saturating_sub(slack)..(ideal + slack).min(len);
        let possible = |rank: &u64| {
            (may_split || is_chunk_border(plan, axis, selection, *rank))
                && splits_no_group.as_ref().is_none_or(|borders| borders[*rank as usize])
        };
        let nearest = nearest(ideal, &near, possible)?;
        if cuts.last().is_some_and(|last| *last >= nearest) {
            return None;
        }
        cuts.push(nearest);
    }
    cuts.push(len);
    Some(cuts)
}

/// Returns the rank nearest to `ideal` within `near` for which `possible` is true.
fn nearest(ideal: u64, near: &Range<u64>, possible: impl Fn(&u64) -> bool) -> Option<u64> {
    let below = (near.start..=ideal).rev().find(&possible);
    let above = (ideal + 1..near.end).find(&possible);
    match (below, above) {
        (Some(below), Some(above)) if above - ideal < ideal - below => Some(above),
        (below, above) => below.or(above),
    }
}

/// Whether the selected indices at `rank - 1` and `rank` are in different chunks.
fn is_chunk_border(plan: &ScanPlan, axis: usize, selection: &AxisSelection, rank: u64) -> bool {
    let chunk = |rank: u64| {
        let index = selection.slice(rank..rank + 1).ranges().first().map(|range| range.start);
        index.map(|index| plan.grid().chunk_of(axis, index))
    };
    rank > 0 && rank < selection.count() && chunk(rank - 1) != chunk(rank)
}

/// Returns, per rank, whether a cut before it splits no group; `None` if no cut splits any. The result has
/// `len + 1` entries. For the groups 0 0 1 0 2 2, cuts before ranks 0, 4 and 6 split none.
fn group_borders(groups: &AxisGroups, len: u64) -> Option<Vec<bool>> {
    let AxisGroups::Numbered { numbers, groups } = groups else { return None };
    let mut last = vec![0; *groups as usize];
    for (rank, &group) in numbers.iter().enumerate() {
        last[group as usize] = rank;
    }
    let mut borders = Vec::with_capacity(len as usize + 1);
    borders.push(true);
    // A group is open from its first rank to its last one. A cut is possible where none is open.
    let mut open_until = 0;
    for (rank, &group) in numbers.iter().enumerate() {
        open_until = open_until.max(last[group as usize]);
        borders.push(open_until == rank);
    }
    Some(borders)
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;
    use crate::grid::ChunkGrid;
    use crate::plan::ScanRequest;

    /// Partitions cover the selection, each cell once, and no group is in two of them.
    #[test]
    fn partitions_share_no_group() {
        let mut rng = StdRng::seed_from_u64(6);
        let mut found = 0;
        for _ in 0..2_000 {
            let shape: Vec<u64> = (0..2).map(|_| rng.random_range(1..200)).collect();
            let chunk: Vec<u64> = (0..2).map(|_| rng.random_range(1..12)).collect();
            let grid = ChunkGrid::new(&shape, &chunk).unwrap();
            let mut request = ScanRequest::all(&grid);
            request.partitions = rng.random_range(1..5);
            let mask: Vec<bool> = (0..shape[0]).map(|_| rng.random_bool(0.8)).collect();
            request.selection.restrict(0, &AxisSelection::from_mask(&mask));
            let plan = Arc::new(ScanPlan::new(grid, request).unwrap());
            let selected = plan.selection().axes()[0].count();
            let run = rng.random_range(1..20);
            let numbers: Arc<[u32]> = (0..selected as u32).map(|rank| rank / run).collect();
            let count = numbers.last().map_or(0, |last| last + 1);
            let numbered = AxisGroups::Numbered { numbers: Arc::clone(&numbers), groups: count };
            let Some(partitions) =
                without_shared_groups(&plan, &[numbered, AxisGroups::One], Cuts::Cheap)
            else {
                continue;
            };
            found += 1;
            assert_eq!(partitions.len(), plan.partition_count());
            let rows: u64 =
                partitions.iter().map(|part| part.plan.rows(Some(part.partition))).sum();
            assert_eq!(rows, plan.rows(None));
            let mut groups: Vec<Vec<u32>> = partitions
                .iter()
                .map(|part| {
                    let elements =
                        part.plan.selection().axes()[0].ranges().iter().cloned().flatten();
                    let all: Vec<u64> =
                        plan.selection().axes()[0].ranges().iter().cloned().flatten().collect();
                    let number = |index| numbers[all.binary_search(&index).unwrap()];
                    elements.map(number).collect()
                })
                .collect();
            groups.iter_mut().for_each(Vec::dedup);
            let together: Vec<u32> = groups.concat();
            if plan.partition_count() > 1 {
                assert_eq!(together, (0..count).collect::<Vec<_>>());
            }
        }
        assert!(found > 500, "{found}");
    }

    #[test]
    fn groups_that_return_cannot_be_cut_apart() {
        let grid = ChunkGrid::new(&[96], &[1]).unwrap();
        let request = ScanRequest { partitions: 2, ..ScanRequest::all(&grid) };
        let plan = Arc::new(ScanPlan::new(grid, request).unwrap());
        let hours = AxisGroups::Numbered { numbers: (0..96).map(|i| i % 24).collect(), groups: 24 };
        let hours = [hours];
        assert!(without_shared_groups(&plan, &hours, Cuts::Cheap).is_none());
        // Where cuts are anywhere, each partition has half of the groups, and a part of all days.
        let halves = without_shared_groups(&plan, &hours, Cuts::Anywhere).unwrap();
        for (half, first) in halves.iter().zip([0, 12]) {
            let indices = half.plan.selection().axes()[0].ranges().iter().cloned().flatten();
            let expected = (0..96).filter(|index| (first..first + 12).contains(&(index % 24)));
            assert!(indices.eq(expected));
        }
        let few = [AxisGroups::Numbered { numbers: vec![0; 96].into(), groups: 1 }];
        assert!(without_shared_groups(&plan, &few, Cuts::Anywhere).is_none());
        assert_eq!(
            without_shared_groups(&plan, &[AxisGroups::Each], Cuts::Cheap).unwrap().len(),
            2
        );
    }

    /// Cuts inside a chunk are for few partitions, and for axes without borders of chunks where they are needed.
    #[test]
    fn at_most_four_parts_read_one_chunk() {
        let plan = |chunk, partitions| {
            let grid = ChunkGrid::new(&[20, 90], &[1, chunk]).unwrap();
            Arc::new(
                ScanPlan::new(grid.clone(), ScanRequest { partitions, ..ScanRequest::all(&grid) })
                    .unwrap(),
            )
        };
        let groups = [AxisGroups::One, AxisGroups::Each];
        let rows = |parts: Vec<ReducePartition>| -> Vec<u64> {
            parts.iter().map(|it| it.plan.rows(Some(it.partition)) / 20).collect()
        };
        assert!(without_shared_groups(&plan(90, 4), &groups, Cuts::Cheap).is_none());
        let four = without_shared_groups(&plan(90, 4), &groups, Cuts::Anywhere).unwrap();
        assert_eq!(rows(four), [22, 23, 22, 23]);
        assert!(without_shared_groups(&plan(90, 5), &groups, Cuts::Anywhere).is_none());
        let some = without_shared_groups_or_empty(&plan(90, 6), &groups, Cuts::Anywhere);
        assert_eq!(rows(some), [22, 23, 22, 23, 0, 0]);
        // A border of chunks near the middle is better than the middle.
        let two = without_shared_groups(&plan(7, 2), &groups, Cuts::Anywhere).unwrap();
        assert_eq!(rows(two), [42, 48]);
    }
}
