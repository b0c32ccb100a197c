//! How many rows each group has, where no value has a say: products of counts per axis.

use super::dense::Chunk;
use super::kernel::Segment;

/// Adds the rows of a chunk's selected cells to `rows`, one element per place of the table.
pub fn count_rows(rows: &mut [u64], chunk: &Chunk<'_>) {
    let axes: Vec<Vec<(usize, u64)>> = (0..chunk.task.selection.len())
        .map(|axis| {
            let covered = chunk.grid.axis_range(axis, chunk.task.coordinates[axis]);
            multiplicities(&chunk.table.segments(axis, chunk.task, &covered))
        })
        .collect();
    add_products(rows, &axes, 0, 1);
}

/// Places of an axis and how many elements have them, without repeats.
fn multiplicities(segments: &[Segment]) -> Vec<(usize, u64)> {
    let mut places: Vec<(usize, u64)> = Vec::new();
    for segment in segments {
        match segment.places {
            super::kernel::Places::Fixed(place) => places.push((place, segment.len as u64)),
            _ => places.extend((0..segment.len).map(|at| (segment.places.at(at), 1))),
        }
    }
    places.sort_unstable();
    places.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        kept.1 += if same { next.1 } else { 0 };
        same
    });
    places
}

fn add_products(rows: &mut [u64], axes: &[Vec<(usize, u64)>], place: usize, count: u64) {
    match axes.split_first() {
        None => rows[place] += count,
        Some((axis, inner)) => {
            for (at, times) in axis {
                add_products(rows, inner, place + at, count * times);
            }
        }
    }
}
