//! [`matched_tasks`]: the chunks of a partition that have a cell with a match.
//!
//! ```text
//!   labels with a match   lat 0, 5   lon 0, 5        chunks of 3 × 3 cells
//!   rows                  (0, 0), (5, 5)             a ·     a and d have a match; the labels alone keep
//!                                                    · d     all four
//! ```

use std::collections::{HashMap, HashSet};

use super::build_side::BuildSide;
use super::grid_lookup::GridLookup;
use crate::plan::{ScanPlan, TaskNumber};
use crate::reduce::AxisGroups;

/// The most combinations of rows and chunks that are looked at.
const MOST: usize = 1 << 20;

/// Returns the tasks of the only partition of `plan` whose chunks have a cell with a match. It may return others, too, if finding
/// these out costs much.
pub(in crate::exec) fn matched_tasks(
    lookup: &GridLookup,
    built: &BuildSide,
    plan: &ScanPlan,
) -> Vec<TaskNumber> {
    let Some(chunks) = matched_chunks(lookup, built) else { return plan.tasks(0).collect() };
    let axes: Vec<usize> = lookup.keys.iter().map(|keys| keys.axis).collect();
    let is_matched = |task: &TaskNumber| {
        let coordinates = plan.task(*task).coordinates;
        chunks.contains(&axes.iter().map(|axis| coordinates[*axis]).collect::<Vec<u64>>())
    };
    plan.tasks(0).filter(is_matched).collect()
}

/// Returns the coordinates of the chunks with a match along the axes of the join. `None` if the labels of single axes tell as much,
/// or there are too many.
fn matched_chunks(lookup: &GridLookup, built: &BuildSide) -> Option<HashSet<Vec<u64>>> {
    if lookup.keys.len() < 2 {
        return None;
    }
    let of_axes: Vec<HashMap<u32, Vec<u64>>> = (0..lookup.keys.len())
        .map(|at| chunks_of_numbers(lookup, built, at))
        .collect::<Option<_>>()?;
    let (mut found, mut work) = (HashSet::new(), 0);
    'rows: for row in 0..built.rows.num_rows() {
        let mut combinations = vec![vec![]];
        for (chunks, numbers) in of_axes.iter().zip(&built.numbers) {
            let Some(chunks) = numbers[row].and_then(|number| chunks.get(&number)) else {
                continue 'rows;
            };
            work += combinations.len() * chunks.len();
            if work > MOST {
                return None;
            }
            let longer = combinations.iter().flat_map(|combination| {
                chunks.iter().map(|chunk| [combination.as_slice(), &[*chunk]].concat())
            });
            combinations = longer.collect();
        }
        found.extend(combinations);
    }
    Some(found)
}

/// Returns the chunks along an axis that have labels of each number in the rows; `None` if the axis is long.
fn chunks_of_numbers(
    lookup: &GridLookup,
    built: &BuildSide,
    at: usize,
) -> Option<HashMap<u32, Vec<u64>>> {
    let axis = lookup.keys[at].axis;
    let plan = lookup.scan.plan();
    let selection = &plan.selection().axes()[axis];
    if selection.count() > MOST as u64 {
        return None;
    }
    let mut chunks: HashMap<u32, Vec<u64>> = HashMap::new();
    for number in built.numbers[at].iter().flatten() {
        chunks.entry(*number).or_default();
    }
    let indices = selection.ranges().iter().cloned().flatten();
    for (rank, index) in indices.enumerate() {
        let number = match &lookup.groups[axis] {
            AxisGroups::One => 0,
            AxisGroups::Each => rank as u32,
            AxisGroups::Numbered { numbers, .. } => numbers[rank],
        };
        let Some(chunks) = chunks.get_mut(&number) else { continue };
        let chunk = plan.grid().chunk_of(axis, index);
        if chunks.last() != Some(&chunk) {
            chunks.push(chunk);
        }
    }
    Some(chunks)
}
