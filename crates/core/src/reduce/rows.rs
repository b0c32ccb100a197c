//! Rows per group, computed from the sizes of selections without reading cells.
//!
//! With `GROUP BY station`, a chunk of 4 times × 3 stations adds 4 to the group of each station. An axis
//! in no key only multiplies the count, so the work is that of the other axes.

use std::collections::HashMap;
use std::ops::Range;

use super::batch::GroupPlaces;
use super::group_table::GroupTable;
use super::grouped_chunk::{ChunkAxis, GroupedChunk};
use crate::plan::{ScanPlan, TaskNumber};

/// Returns the number of rows of each group of `table` in a partition of `plan`.
pub fn rows_per_group(table: &GroupTable, plan: &ScanPlan, partition: usize) -> Vec<u64> {
    let mut rows = vec![0; table.len()];
    let mut add = |task: TaskNumber, count: u64| {
        let task = plan.task(task);
        let mut axes = GroupedChunk::new(table, plan.grid(), &task).axes();
        axes.retain(|axis| axis.is_keyed);
        add_products(&mut rows, &axes, 0, count);
    };
    let keyed: Vec<usize> = (0..plan.grid().rank()).filter(|axis| table.is_keyed(*axis)).collect();
    // Chunks at the same coordinates on the axes in keys have the same groups.
    let mut alike: HashMap<Vec<u64>, (TaskNumber, u64)> = HashMap::new();
    for number in plan.tasks(partition) {
        let task = plan.task(number);
        let others = (0..plan.grid().rank()).filter(|axis| !keyed.contains(axis));
        let count: u64 = others.map(|axis| task.selection[axis].count()).product();
        if keyed.len() == plan.grid().rank() {
            add(number, count);
            continue;
        }
        let coordinates = keyed.iter().map(|axis| task.coordinates[*axis]).collect();
        alike.entry(coordinates).or_insert((number, 0)).1 += count;
    }
    alike.into_values().for_each(|(task, count)| add(task, count));
    rows
}

/// Adds `count` to `rows` for each cell of `axes`, at the cell's place relative to `place`.
pub(super) fn add_products(rows: &mut [u64], axes: &[ChunkAxis], place: usize, count: u64) {
    each_place(axes, place, count, &mut |places, count| {
        rows[places].iter_mut().for_each(|rows| *rows = rows.wrapping_add(count));
    });
}

/// Calls `add` with places and the number of cells of each, until all cells of `axes` are in. A place may come several times.
/// Places are relative to `place`, and numbers are multiples of `count`.
pub(super) fn each_place(
    axes: &[ChunkAxis],
    place: usize,
    count: u64,
    add: &mut impl FnMut(Range<usize>, u64),
) {
    // Axes in no key multiply the count, once for all places.
    let (keyed, others): (Vec<_>, Vec<_>) = axes.iter().partition(|axis| axis.is_keyed);
    let cells =
        |axis: &ChunkAxis| axis.cells.segments().iter().map(|it| it.len as u64).sum::<u64>();
    let count = others.into_iter().map(cells).fold(count, |count, cells| count * cells);
    each_place_below(&keyed, place, count, add);
}

/// Calls `add` for the cells of axes in keys.
fn each_place_below(
    axes: &[&ChunkAxis],
    place: usize,
    count: u64,
    add: &mut impl FnMut(Range<usize>, u64),
) {
    let Some((axis, inner)) = axes.split_first() else {
        return add(place..place + 1, count);
    };
    let segments = axis.cells.segments();
    if segments.iter().all(|segment| segment.places == GroupPlaces::Fixed(0)) {
        // The axis does not move the place: it only multiplies the count.
        let cells: usize = segments.iter().map(|segment| segment.len).sum();
        return each_place_below(inner, place, count * cells as u64, add);
    }
    for segment in segments {
        match &segment.places {
            GroupPlaces::Fixed(at) => {
                each_place_below(inner, place + at, count * segment.len as u64, add);
            }
            GroupPlaces::Steps { first, step: 1 } if inner.is_empty() => {
                // The innermost axis with one group per cell: adds to a slice, which vectorises.
                add(place + first..place + first + segment.len, count);
            }
            places => {
                for at in 0..segment.len {
                    each_place_below(inner, place + places.at(at), count, add);
                }
            }
        }
    }
}
