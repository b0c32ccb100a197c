//! Counts of values: the cells of a group minus those that are NULL or excluded.
//!
//! The cells of a chunk are counted from its extents, without reading them ([`super::count_rows`]).
//! Here, the cells that do not count are subtracted. Counters of a batch are narrow, so that a register
//! holds as many counters as cells.
//!
//! No count becomes negative: before a batch, all cells of its chunk have been added. Wrapping operations
//! leave out the checks for overflow, which release builds of this crate have.

use super::cell::Cell;
use super::kernel::{Batch, GroupPlaces, add_row};

/// Subtracts the cells of `batch` that `keep` rejects from the counts of their groups. `aside` is
/// scratch memory.
pub(super) fn subtract_dropped<T: Cell>(
    counts: &mut [u64],
    batch: Batch<'_, T>,
    keep: impl Fn(T) -> bool + Copy,
    aside: &mut Vec<u32>,
) {
    for segment in batch.inner {
        for rows in batch.rows.by_place() {
            let starts = rows.each().map(|(start, _)| start);
            match &segment.places {
                GroupPlaces::Fixed(place) => {
                    // One group: counts the dropped cells of each run.
                    let dropped = |start| u64::from(dropped(batch.row(segment, start), keep));
                    counts[rows.place + place] -= starts.map(dropped).sum::<u64>();
                }
                GroupPlaces::Steps { first, step: 1 } => {
                    // One group per cell: counts per column over rows of the same groups, then subtracts
                    // once.
                    aside.clear();
                    aside.resize(segment.len, 0);
                    for start in starts {
                        add_row(aside, batch.row(segment, start), |dropped, cell| {
                            *dropped = dropped.wrapping_add(u32::from(!keep(T::load(cell))));
                        });
                    }
                    let counts = &mut counts[rows.place + first..][..segment.len];
                    counts.iter_mut().zip(&*aside).for_each(|(count, &dropped)| {
                        *count = count.wrapping_sub(u64::from(dropped));
                    });
                }
                places => {
                    for start in starts {
                        for (at, cell) in batch.row(segment, start).iter().enumerate() {
                            counts[rows.place + places.at(at)] -= u64::from(!keep(T::load(*cell)));
                        }
                    }
                }
            }
        }
    }
}

/// Returns how many cells of a run `keep` rejects. A run is at most a batch long.
#[inline(always)]
pub(super) fn dropped<T: Cell>(cells: &[T::Bytes], keep: impl Fn(T) -> bool) -> u32 {
    let mut lanes = [0_u32; 16];
    let (blocks, rest) = cells.as_chunks::<16>();
    for block in blocks {
        for (lane, cell) in lanes.iter_mut().zip(block) {
            *lane = lane.wrapping_add(u32::from(!keep(T::load(*cell))));
        }
    }
    let rest = rest.iter().filter(|cell| !keep(T::load(**cell))).count() as u32;
    lanes.iter().sum::<u32>() + rest
}
