//! [`GroupBlock`]: some of the groups of a partition, so that aggregates that hold all values of a group fit in memory.
//!
//! A partition is halved until the values of a block fit. A cut at a border of chunks reads no chunk twice:
//!
//! ```text
//!   GROUP BY lat, lon    chunks of all times × 2 lat × 2 lon         chunks of one time × all lat × all lon
//!
//!                          ┌───┬───┐                                   ┌───────┐
//!                          │ 0 │ 1 │   each chunk is in one block      │ 0     │   each chunk is in both blocks,
//!                          │ 0 │ 1 │                                   ├───────┤   and is read twice
//!                          └───┴───┘                                   │ 1     │
//!                                                                      └───────┘
//! ```

use std::ops::Range;
use std::sync::Arc;

use super::partitions::ReducePartition;
use super::reduction::Reduction;
use crate::grid::AxisSelection;
use crate::plan::ScanPlan;
use crate::reduce::AxisGroups;

/// Groups of a partition of a reduction: those whose numbers lie in a range on each axis.
#[derive(Debug, Clone)]
pub(super) struct GroupBlock {
    pub(super) part: ReducePartition,
    /// The range of group numbers on each axis; of the ranks of labels where each label is a group.
    numbers: Vec<Range<u64>>,
}

/// Where to halve a block.
struct Cut {
    axis: usize,
    /// The group number of the axis with which the second half begins.
    at: u64,
    /// How often chunks need not be read twice, and groups can be halved; the greatest is the best.
    merit: (u64, u64),
}

impl GroupBlock {
    /// All groups of a partition.
    pub(super) fn new(reduction: &Reduction, part: ReducePartition) -> Self {
        let windows = part.plan.index_windows(part.partition);
        let selection = reduction.plan.selection().axes();
        let numbers = |(axis, groups): (usize, &AxisGroups)| {
            let rank = |index| selection[axis].count_before(index);
            let ranks = rank(windows[axis].start)..rank(windows[axis].end);
            match groups {
                AxisGroups::One => 0..1,
                AxisGroups::Each => ranks,
                AxisGroups::Numbered { numbers, .. } => {
                    let of_ranks = numbers.get(ranks.start as usize..ranks.end as usize);
                    let of_ranks = of_ranks.unwrap_or_default();
                    let least = of_ranks.iter().min().map_or(0, |least| u64::from(*least));
                    least..of_ranks.iter().max().map_or(0, |most| u64::from(*most) + 1)
                }
            }
        };
        let numbers = reduction.keys.axes.iter().enumerate().map(numbers).collect();
        Self { part, numbers }
    }

    /// Returns the number of rows.
    pub(super) fn rows(&self) -> u64 {
        self.part.plan.rows(Some(self.part.partition))
    }

    /// Returns two blocks that together have the groups of this one; `None` if it is one group. Only those with rows are
    /// returned.
    pub(super) fn halves(&self, reduction: &Reduction) -> Option<Vec<Self>> {
        let axes = reduction.keys.axes.iter().enumerate();
        let cuts = axes.filter_map(|(axis, groups)| self.cut(reduction, axis, groups));
        let Cut { axis, at, .. } = cuts.max_by_key(|cut| cut.merit)?;
        let Range { start, end } = self.numbers[axis].clone();
        let plan = self.part.plan.partition(self.part.partition);
        let half = |numbers: Range<u64>| {
            let plan = plan.restricted(axis, &labels(reduction, axis, &numbers));
            let mut half = self.clone();
            half.part = ReducePartition { plan: Arc::new(plan), partition: 0 };
            half.numbers[axis] = numbers;
            half
        };
        let halves = [half(start..at), half(at..end)];
        Some(halves.into_iter().filter(|half| half.rows() > 0).collect())
    }

    /// Returns the best cut of an axis; `None` if the block has one group on it.
    fn cut(&self, reduction: &Reduction, axis: usize, groups: &AxisGroups) -> Option<Cut> {
        let Range { start, end } = self.numbers[axis];
        let count = end.saturating_sub(start);
        if count < 2 {
            return None;
        }
        let middle = start + count / 2;
        let at_border = match groups {
            AxisGroups::Each => chunk_border(&reduction.plan, axis, start..end, middle),
            _ => None,
        };
        Some(match at_border {
            Some((at, chunks)) => Cut { axis, at, merit: (chunks, count) },
            None => Cut { axis, at: middle, merit: (0, count) },
        })
    }
}

/// Returns the rank nearest to `middle` at which a chunk begins, and the number of chunks that hold `ranks`; `None` if it
/// is one.
fn chunk_border(
    plan: &ScanPlan,
    axis: usize,
    ranks: Range<u64>,
    middle: u64,
) -> Option<(u64, u64)> {
    let (selection, grid) = (&plan.selection().axes()[axis], plan.grid());
    let chunk = |rank: u64| {
        let label = selection.slice(rank..rank + 1);
        label.ranges().first().map(|range| grid.chunk_of(axis, range.start))
    };
    let extent = grid.axis_range(axis, chunk(middle)?);
    let borders = [extent.start, extent.end].map(|index| selection.count_before(index));
    let inside = borders.into_iter().filter(|rank| ranks.start < *rank && *rank < ranks.end);
    let nearest = inside.min_by_key(|rank| rank.abs_diff(middle))?;
    Some((nearest, chunk(ranks.end - 1)? - chunk(ranks.start)? + 1))
}

/// Returns the selected labels of an axis whose group numbers lie in a range.
fn labels(reduction: &Reduction, axis: usize, wanted: &Range<u64>) -> AxisSelection {
    let selection = &reduction.plan.selection().axes()[axis];
    let AxisGroups::Numbered { numbers, .. } = &reduction.keys.axes[axis] else {
        return selection.slice(wanted.clone());
    };
    let indices = selection.ranges().iter().cloned().flatten();
    let of_wanted = indices.zip(numbers.iter()).filter(|(_, of)| wanted.contains(&u64::from(**of)));
    AxisSelection::from_ranges(selection.len(), of_wanted.map(|(index, _)| index..index + 1))
}
