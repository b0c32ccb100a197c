//! Rows per group, computed from the sizes of selections without reading cells.
//!
//! With `GROUP BY station`, a chunk of 4 times × 3 stations adds 4 to the group of each station. An axis
//! in no key only multiplies the count, so the work is that of the other axes.

use super::batch::GroupPlaces;
use super::grouped_chunk::{ChunkAxis, GroupedChunk};

/// Adds the number of selected cells of a chunk to `rows`, which has one element per place of the
/// table.
pub fn count_rows(rows: &mut [u64], chunk: &GroupedChunk<'_>) {
    add_products(rows, &chunk.axes(), 0, 1);
}

/// Adds `count` to `rows` for each cell of `axes`, at the cell's place relative to `place`.
pub(super) fn add_products(rows: &mut [u64], axes: &[ChunkAxis], place: usize, count: u64) {
    let Some((ChunkAxis { segments: axis, .. }, inner)) = axes.split_first() else {
        rows[place] += count;
        return;
    };
    if axis.iter().all(|segment| segment.places == GroupPlaces::Fixed(0)) {
        // The axis does not move the place: it only multiplies the count.
        let cells: usize = axis.iter().map(|segment| segment.len).sum();
        return add_products(rows, inner, place, count * cells as u64);
    }
    for segment in axis {
        match &segment.places {
            GroupPlaces::Fixed(at) => {
                add_products(rows, inner, place + at, count * segment.len as u64)
            }
            GroupPlaces::Steps { first, step: 1 } if inner.is_empty() => {
                // The innermost axis with one group per cell: adds to a slice, which vectorises.
                let rows = &mut rows[place + first..][..segment.len];
                rows.iter_mut().for_each(|rows| *rows = rows.wrapping_add(count));
            }
            places => {
                for at in 0..segment.len {
                    add_products(rows, inner, place + places.at(at), count);
                }
            }
        }
    }
}
