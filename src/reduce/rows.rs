//! How many rows each group has, where no value has a say: products of counts per axis.

use super::dense::Chunk;
use super::kernel::{Places, Segment};

/// Adds the rows of a chunk's selected cells to `rows`, one element per place of the table.
pub fn count_rows(rows: &mut [u64], chunk: &Chunk<'_>) {
    add_products(rows, &chunk.segments(), 0, 1);
}

/// Adds `count` times the cells of `axes` to the places that they have from `place` on.
pub(super) fn add_products(rows: &mut [u64], axes: &[Vec<Segment>], place: usize, count: u64) {
    let Some((axis, inner)) = axes.split_first() else {
        rows[place] += count;
        return;
    };
    if axis.iter().all(|segment| segment.places == Places::Fixed(0)) {
        let cells: usize = axis.iter().map(|segment| segment.len).sum();
        return add_products(rows, inner, place, count * cells as u64);
    }
    for segment in axis {
        match &segment.places {
            Places::Fixed(at) => add_products(rows, inner, place + at, count * segment.len as u64),
            Places::Steps { first, step: 1 } if inner.is_empty() => {
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
