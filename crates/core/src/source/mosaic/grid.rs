//! The chunk grid of a mosaic: cut at borders that all its parts share, unless such chunks are too large.
//!
//! ```text
//!   u             0 ─ ─ ─ 4 ─ ─ ─ 8 ─ ─ ─ 12 ─ ─ ─ 16 ─ ─ ─ 20 ─ ─ ─ 24
//!   v             0 ─ ─ ─ ─ ─ 6 ─ ─ ─ ─ ─ 12 ─ ─ ─ ─ ─ 18 ─ ─ ─ ─ ─ 24
//!   1 common      0 ───────────────────── 12 ───────────────────── 24     each stored chunk lies in one
//!   2 coarser     0 ───────── 6 ───────── 12 ───────── 18 ──────── 24     two chunks of u lie in two
//!   3 first       0 ───── 4 ───── 8 ───── 12 ───── 16 ──── 20 ──── 24     each chunk of v lies in two
//! ```
//!
//! Borders of 122 and 366 days meet every 366 days, and those of 999 and 1000 almost never. A file ends at a border, and
//! years have different lengths, so an axis may be cut anywhere (`AxisChunks::At`).

use std::num::NonZeroU64;

use crate::error::{Error, Result};
use crate::grid::{AxisChunks, ChunkGrid};

/// Cuts a table into chunks. `grids` holds the chunk grid of each variable in each file; files are concatenated
/// along `axis`. A cell of variable `v` has `widths[v]` bytes.
///
/// It tries three ways to cut until a chunk has at most `chunk_bytes`, or the size of the largest stored
/// chunk if that is more:
///
/// 1. At the borders that all variables share. Each stored chunk lies in one chunk of the table and is decoded
///    once.
/// 2. On each axis like the variable with the longest chunks. Chunks of other variables may be decoded more
///    than once.
/// 3. Like the first variable, with as many of its chunks joined as fit. A chunk is never less than one of
///    them, so it may exceed the limit.
///
/// # Errors
/// `Unsupported` if the concatenated axis has more chunks than an axis can list.
pub(super) fn table_grid(
    grids: &[&[ChunkGrid]],
    axis: usize,
    widths: &[u64],
    chunk_bytes: u64,
) -> Result<ChunkGrid> {
    // The limit: stored chunks of that size must be decoded as a whole anyway.
    let stored = grids.iter().zip(widths).flat_map(|(files, width)| {
        files.iter().map(move |grid| largest_chunk(grid).saturating_mul(*width))
    });
    let most = stored.max().unwrap_or_default().max(chunk_bytes);
    // A chunk of the table holds all variables, but a query may read only some of them.
    let width = widths.iter().copied().fold(0, u64::saturating_add);
    let bytes = |grid: &ChunkGrid| largest_chunk(grid).saturating_mul(width);
    let common = grid_by(grids, axis, AxisChunks::common, &[])?;
    if bytes(&common) <= most {
        return Ok(common);
    }
    let coarse = grid_by(grids, axis, coarser, &[])?;
    if bytes(&coarse) <= most {
        return Ok(coarse);
    }
    let fine = grid_by(grids, axis, first, &[])?;
    let times = times_within(&fine, &coarse, most / bytes(&fine).max(1));
    grid_by(grids, axis, first, &times)
}

/// Returns the chunk grids of the variables along which a table is cut, and the bytes of their cells. `cells` has the number of
/// cells of each array that is beside others, as coordinates are. Few cells are decoded for each chunk. That is
/// cheaper than larger chunks, each of which is the work of one thread.
pub(super) fn cutting<'a>(
    grids: &'a [Vec<ChunkGrid>],
    widths: &[u64],
    cells: &[Option<u64>],
) -> (Vec<&'a [ChunkGrid]>, Vec<u64>) {
    /// Bytes that are few beside any chunk.
    const FEW: u64 = 64 << 10;
    let all = || grids.iter().map(Vec::as_slice).zip(widths.iter().copied()).zip(cells);
    let variables = all().filter(|(_, cells)| cells.is_none());
    let chunks = variables.filter_map(|((grids, width), _)| {
        Some(largest_chunk(grids.first()?).saturating_mul(width))
    });
    let most = chunks.max().unwrap_or(0).max(FEW);
    let is_few = |cells: u64, width: u64| cells.saturating_mul(width) <= most;
    all()
        .filter(|((_, width), cells)| !cells.is_some_and(|cells| is_few(cells, *width)))
        .map(|(it, _)| it)
        .unzip()
}

/// Returns how many chunks of `fine` to join on each axis, at most `room` in all and at most to the size of
/// `coarse`. Larger chunks cut fewer stored chunks, which are then decoded less often.
/// Leading axes come first: fine chunks of 1 × 1024, coarse ones of 1048576 × 1024 and room for 8192 give
/// 8192 × 1.
fn times_within(fine: &ChunkGrid, coarse: &ChunkGrid, mut room: u64) -> Vec<NonZeroU64> {
    let edges = fine.chunk_shape().zip(coarse.chunk_shape()).zip(fine.shape());
    let times = edges.map(|((edge, wanted), len)| {
        // As many chunks as make up one of `coarse`, but none beyond the end of the axis.
        let wanted = wanted.min(*len).div_ceil(edge);
        let times = NonZeroU64::new(wanted.min(room)).unwrap_or(NonZeroU64::MIN);
        room /= times;
        times
    });
    times.collect()
}

/// Returns the number of cells of the largest chunk.
fn largest_chunk(grid: &ChunkGrid) -> u64 {
    let extents = grid.chunk_shape().zip(grid.shape()).map(|(edge, len)| edge.min(*len));
    extents.fold(1, u64::saturating_mul)
}

/// A function that merges two ways to cut an axis; the last argument is the length of the axis.
type Pick = fn(&AxisChunks, &AxisChunks, u64) -> AxisChunks;

/// Takes the cut with longer chunks; of equal ones the first, so the result does not depend on later variables.
fn coarser(a: &AxisChunks, b: &AxisChunks, _: u64) -> AxisChunks {
    if b.edge() > a.edge() { b.clone() } else { a.clone() }
}

fn first(a: &AxisChunks, _: &AxisChunks, _: u64) -> AxisChunks {
    a.clone()
}

/// Cuts the table at the borders that `pick` makes of the variables' borders. Then joins `times` chunks into
/// one on each axis; an empty `times` joins none.
///
/// First the cuts of all variables in one file are merged. Then the files are put one after the other on
/// the axis `along`. On all other axes they are merged too, because the table has one cut there for all
/// files.
fn grid_by(
    grids: &[&[ChunkGrid]],
    along: usize,
    pick: Pick,
    times: &[NonZeroU64],
) -> Result<ChunkGrid> {
    let (Some(files), Some(grid)) = (grids.first(), grids.first().and_then(|files| files.first()))
    else {
        return Err(Error::internal("a table of no array"));
    };
    let mut shape = grid.shape().to_vec();
    shape[along] = files.iter().map(|grid| grid.shape()[along]).sum();
    let of_file = |file: usize, axis: usize| {
        let len = files[file].shape()[axis];
        let mut chunks = grids.iter().map(|files| &files[file].axis_chunks()[axis]);
        let first = chunks.next().cloned().unwrap_or_else(|| AxisChunks::whole(len));
        let picked = chunks.fold(first, |a, b| pick(&a, b, len));
        (picked.times(times.get(axis).copied().unwrap_or(NonZeroU64::MIN)), len)
    };
    let too_many = || Error::unsupported("the files have too many chunks to be one table");
    let chunks = (0..grid.rank()).map(|axis| {
        let of_files: Vec<(AxisChunks, u64)> =
            (0..files.len()).map(|file| of_file(file, axis)).collect();
        match of_files.as_slice() {
            [(chunks, _)] => Ok(chunks.clone()),
            _ if axis == along => {
                AxisChunks::concat(of_files.iter().map(|(chunks, len)| (chunks, *len)))
                    .ok_or_else(too_many)
            }
            [(chunks, len), others @ ..] => {
                Ok(others.iter().fold(chunks.clone(), |a, (b, _)| pick(&a, b, *len)))
            }
            [] => Err(too_many()),
        }
    });
    ChunkGrid::with_axis_chunks(&shape, chunks.collect::<Result<_>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(shape: &[u64], chunk: &[u64]) -> ChunkGrid {
        ChunkGrid::new(shape, chunk).unwrap()
    }

    fn ranges(grid: &ChunkGrid, axis: usize) -> Vec<u64> {
        (0..grid.chunks_per_axis()[axis]).map(|chunk| grid.axis_range(axis, chunk).end).collect()
    }

    #[test]
    fn variables_share_the_borders_that_both_have() {
        let grids = [[grid(&[24, 10], &[4, 10])], [grid(&[24, 10], &[6, 5])]];
        let table = table_grid(&[&grids[0], &grids[1]], 0, &[4, 4], 1 << 26).unwrap();
        assert_eq!((ranges(&table, 0), ranges(&table, 1)), (vec![12, 24], vec![10]));
    }

    #[test]
    fn few_cells_beside_others_cut_nothing() {
        let data = vec![grid(&[1000, 100], &[1, 100])];
        let whole = vec![grid(&[1000, 100], &[1000, 100])];
        let edges = |cells: Option<u64>| {
            let grids = [data.clone(), whole.clone()];
            let (grids, widths) = cutting(&grids, &[4, 8], &[None, cells]);
            let table = table_grid(&grids, 0, &widths, 1 << 26).unwrap();
            table.chunk_shape().collect::<Vec<_>>()
        };
        assert_eq!(edges(Some(1000)), [1, 100]);
        assert_eq!(edges(Some(100_000)), [1000, 100]);
        assert_eq!(edges(None), [1000, 100]);
    }

    #[test]
    fn files_end_at_borders() {
        let files = [grid(&[5, 8], &[3, 4]), grid(&[7, 8], &[4, 2])];
        let table = table_grid(&[&files], 0, &[4], 1 << 26).unwrap();
        assert_eq!((ranges(&table, 0), ranges(&table, 1)), (vec![3, 5, 9, 12], vec![4, 8]));
    }

    #[test]
    fn borders_too_far_apart_are_not_waited_for() {
        let shape = [1 << 20, 1 << 10];
        let table = |a: &[u64], b: &[u64]| {
            let table =
                table_grid(&[&[grid(&shape, a)], &[grid(&shape, b)]], 0, &[4, 4], 1 << 26).unwrap();
            table.chunk_shape().collect::<Vec<_>>()
        };
        assert_eq!(table(&[999, 1 << 10], &[1000, 1 << 10]), [1000, 1 << 10]);
        // As many chunks of the first variable are joined as fit.
        assert_eq!(table(&[1, 1 << 10], &[1 << 20, 1]), [1 << 13, 1 << 10]);
        assert_eq!(table(&[1 << 20, 1], &[1, 1 << 10]), [1 << 20, 1 << 3]);
        // A chunk may be as large as the largest stored chunk.
        assert_eq!(table(&[1 << 20, 1 << 10], &[1 << 20, 1]), [1 << 20, 1 << 10]);
    }
}
