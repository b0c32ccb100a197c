//! Selections, lists of chunks and partitions as runs of numbers.
//!
//! ```text
//!   3..5, 9..10, 12..20     gaps 3, 4, 2 and lengths 2, 1, 8
//! ```
//!
//! A plan over a million chunks has few runs, or runs that repeat, which compression shortens.

use std::ops::Range;

use super::messages::{Axis, Flags, LeftOut, Part, Plan, Runs};
use crate::error::{Error, Result};
use crate::grid::{AxisSelection, ChunkGrid, Selection};
use crate::plan::{Account, PlanParts, PrunedChunks, ScanPlan};

/// The most places of a plan that masks keep. A plan lists them in memory.
const MOST_PLACES: u64 = 1 << 28;

/// Returns ascending ranges as runs.
fn runs(ranges: &[Range<u64>]) -> Runs {
    let mut end = 0;
    let mut gaps_and_lengths = Vec::with_capacity(2 * ranges.len());
    for range in ranges {
        gaps_and_lengths.extend([range.start - end, range.end - range.start]);
        end = range.end;
    }
    Runs { gaps_and_lengths }
}

/// Returns the ranges of runs.
///
/// # Errors
/// `Corrupt` if they end beyond `len`.
fn ranges(runs: &Runs, len: u64) -> Result<Vec<Range<u64>>> {
    let wrong = || Error::corrupt_region("plan", format!("a range beyond {len} numbers"));
    let (pairs, rest) = runs.gaps_and_lengths.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(Error::corrupt_region("plan", "a range without an end"));
    }
    let mut end = 0_u64;
    let mut ranges = Vec::with_capacity(pairs.len());
    for [gap, length] in pairs {
        let start = end.checked_add(*gap).ok_or_else(wrong)?;
        end = start.checked_add(*length).filter(|end| *end <= len).ok_or_else(wrong)?;
        ranges.push(start..end);
    }
    Ok(ranges)
}

/// Returns a plan as a message.
pub(super) fn plan_message(plan: &ScanPlan) -> Plan {
    let (parts, grid) = (plan.parts(), plan.grid());
    let axis = |(axis, selection): (usize, &AxisSelection)| Axis {
        len: selection.len(),
        chunk: grid.axis_chunks()[axis].edge(),
        chunks: grid.chunks_per_axis()[axis],
        selected: runs(selection.ranges()),
        reversed: parts.reversed[axis],
    };
    let part = |(tasks, rows): &(Range<u64>, u64)| Part {
        first_task: tasks.start,
        tasks: tasks.end - tasks.start,
        rows: *rows,
    };
    Plan {
        axes: parts.selection.axes().iter().enumerate().map(axis).collect(),
        kept: parts.kept.as_deref().map(runs),
        order: parts.order.clone().map(|flags| Flags { flags }),
        pruned_by_zones: parts.pruned_by_zones,
        parts: parts.partitions.iter().map(part).collect(),
        cut_along: parts.cut_along.map(|axis| axis as u64),
        max_partitions: parts.max_partitions as u64,
        limit: parts.limit,
        left_out: match parts.account {
            Account::OfAll(pruned) => Some(LeftOut {
                by_selection: pruned.by_selection,
                by_zones: pruned.by_zones,
                by_limit: pruned.by_limit,
            }),
            Account::Own | Account::Elsewhere => None,
        },
        is_reported_elsewhere: parts.account == Account::Elsewhere,
    }
}

/// Returns the chunks that a plan of this message reports as left out.
///
/// # Errors
/// `Corrupt` if these are more than the grid has.
fn account_of(message: &Plan, grid: &ChunkGrid) -> Result<Account> {
    match (message.left_out, message.is_reported_elsewhere) {
        (None, true) => Ok(Account::Elsewhere),
        (None, false) => Ok(Account::Own),
        (Some(LeftOut { by_selection, by_zones, by_limit }), _) => {
            let all = by_selection.saturating_add(by_zones).saturating_add(by_limit);
            if all > grid.chunks() {
                let message = "it leaves out more chunks than the array has";
                return Err(Error::corrupt_region("plan", message));
            }
            Ok(Account::OfAll(PrunedChunks { by_selection, by_zones, by_limit }))
        }
    }
}

/// Makes the plan of a message again, over an array with the chunks of `grid`.
///
/// # Errors
/// `Corrupt` if the plan is one of an array with other chunks, or if its numbers do not fit each other.
pub(super) fn plan_of(message: &Plan, grid: &ChunkGrid) -> Result<ScanPlan> {
    let planned = message.axes.iter().map(|axis| (axis.len, axis.chunk, axis.chunks));
    let opened = (0..grid.rank()).map(|axis| {
        (grid.shape()[axis], grid.axis_chunks()[axis].edge(), grid.chunks_per_axis()[axis])
    });
    if !planned.eq(opened) {
        let message = "it was made for an array of another shape, or with other chunks";
        return Err(Error::corrupt_region("plan", message));
    }
    let selected =
        |axis: &Axis| Ok(AxisSelection::from_ranges(axis.len, ranges(&axis.selected, axis.len)?));
    let axes = message.axes.iter().map(selected).collect::<Result<Vec<_>>>()?;
    let kept = message.kept.as_ref().map(|kept| ranges(kept, grid.chunks())).transpose()?;
    let places = kept.iter().flatten().map(|run| run.end - run.start);
    if places.fold(0, u64::saturating_add) > MOST_PLACES {
        return Err(Error::corrupt_region("plan", "too many chunks"));
    }
    let part = |part: &Part| {
        let end = part.first_task.checked_add(part.tasks);
        let end = end.ok_or_else(|| Error::corrupt_region("plan", "too many chunks"))?;
        Ok((part.first_task..end, part.rows))
    };
    let parts = PlanParts {
        selection: Selection::from_axes(axes),
        reversed: message.axes.iter().map(|axis| axis.reversed).collect(),
        kept,
        order: message.order.as_ref().map(|order| order.flags.clone()),
        pruned_by_zones: message.pruned_by_zones,
        partitions: message.parts.iter().map(part).collect::<Result<_>>()?,
        cut_along: message.cut_along.map(|axis| axis as usize),
        max_partitions: message.max_partitions as usize,
        limit: message.limit,
        account: account_of(message, grid)?,
    };
    ScanPlan::from_parts(grid.clone(), parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_ranges_again() {
        let all = [3..5, 9..10, 12..20];
        assert_eq!(runs(&all).gaps_and_lengths, [3, 2, 4, 1, 2, 8]);
        assert_eq!(ranges(&runs(&all), 20).unwrap(), all);
        assert!(ranges(&runs(&all), 19).is_err(), "beyond the end");
        let odd = Runs { gaps_and_lengths: vec![1, 2, 3] };
        assert!(ranges(&odd, 100).is_err(), "half a range");
        let long = Runs { gaps_and_lengths: vec![u64::MAX, 1] };
        assert!(ranges(&long, u64::MAX).is_err(), "beyond all numbers");
    }
}
