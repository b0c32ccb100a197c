//! Copying the cells of a stored tile to their places in a chunk.
//!
//! ```text
//!   stored tile   . . . . .        chunk   . . .      Axes with evenly spaced cells in both are
//!                 . a b c .   ─▶           a b c      merged: rows of full length are one run,
//!                 . d e f .                d e f      and so are the cells of one column.
//! ```
//!
//! Each axis becomes a count of cells and two steps: elements to the next cell in the chunk and in the
//! tile. The picture's chunk has 3 columns, and its tile 5:
//!
//! ```text
//!   axis 0   2 cells, steps 3 and 5     a row is 3 cells in the chunk, but 5 in the tile:
//!   axis 1   3 cells, steps 1 and 1     two runs of 3 cells
//!
//!   With a tile of 3 columns, axis 0 has the steps 3 and 3, which are 3 cells of axis 1 on both sides.
//!   The axes are merged: one run of 6 cells, which is a single `memcpy`.
//! ```
//!
//! An axis of one element in the tile may have more cells in the chunk. They all are that element: its step in the
//! tile is 0.
//!
//! `layers.rs` calls this module for values, for validity bytes and for spans of text.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::format::{Placement, StorageOrder};

/// Copies the cells of a stored tile to a chunk with these `extents`. Each cell has `parts` elements:
/// either `T` is a whole cell and there is 1 part, or `T` is a byte of it.
///
/// # Errors
/// `Internal` if the placement does not fit, or if `stored` or `chunk` is too short for it.
pub(crate) fn copy_cells<T: Clone>(
    placement: Option<&Placement>,
    extents: &[u64],
    parts: usize,
    stored: &[T],
    chunk: &mut [T],
) -> Result<()> {
    each_run(placement, extents, parts, |run| {
        let to = chunk.get_mut(range(run.to, run.steps.to, run.steps.count));
        let from = stored.get(range(run.from, run.steps.from, run.steps.count));
        let (to, from) = to.zip(from).ok_or_else(too_small)?;
        match (run.steps.to, run.steps.from, from) {
            (1, 1, _) => to.clone_from_slice(from),
            (1, 0, [value]) => to.fill(value.clone()),
            (step, 0, [value]) => to.iter_mut().step_by(step).for_each(|to| to.clone_from(value)),
            (step, from_step, _) => {
                let from = from.iter().step_by(from_step);
                to.iter_mut().step_by(step).zip(from).for_each(|(to, from)| to.clone_from(from));
            }
        }
        Ok(())
    })
}

/// Sets the cells of a chunk with these `extents` that a stored tile holds to `value`.
pub(crate) fn fill_cells<T: Clone>(
    placement: Option<&Placement>,
    extents: &[u64],
    value: &T,
    chunk: &mut [T],
) -> Result<()> {
    each_run(placement, extents, 1, |run| {
        let to =
            chunk.get_mut(range(run.to, run.steps.to, run.steps.count)).ok_or_else(too_small)?;
        to.iter_mut().step_by(run.steps.to).for_each(|to| to.clone_from(value));
        Ok(())
    })
}

/// Returns the number of cells in a box of `shape`.
pub(crate) fn cell_count(shape: &[u64]) -> Result<usize> {
    let cells = shape.iter().try_fold(1_u64, |cells, &len| cells.checked_mul(len));
    let cells = cells.and_then(|cells| usize::try_from(cells).ok());
    cells.ok_or_else(|| {
        Error::unsupported(format!("a chunk of shape {shape:?} has too many cells for memory"))
    })
}

pub(crate) fn too_small() -> Error {
    Error::internal("a tile and its chunk differ in size")
}

/// A number of elements at even distances in the chunk and in the stored tile.
#[derive(Debug, Clone, Copy)]
struct Steps {
    count: usize,
    /// Elements from one to the next in the chunk.
    to: usize,
    /// Elements from one to the next in the stored tile; 0 if they are all the same one.
    from: usize,
}

/// Elements to copy: the first one in the chunk (`to`) and in the stored tile (`from`), and the steps
/// from there.
struct CellRun {
    to: usize,
    from: usize,
    steps: Steps,
}

/// Returns the range from the first to the last of `count` elements, which are `step` apart. There must be
/// at least one.
fn range(start: usize, step: usize, count: usize) -> Range<usize> {
    start..start + (count - 1) * step + 1
}

/// Calls `visit` with every run of elements that a stored tile holds of a chunk.
fn each_run(
    placement: Option<&Placement>,
    extents: &[u64],
    parts: usize,
    mut visit: impl FnMut(CellRun) -> Result<()>,
) -> Result<()> {
    let Some(placement) = placement else {
        let count = element_count(extents, parts)?;
        let run = CellRun { to: 0, from: 0, steps: Steps { count, to: 1, from: 1 } };
        return if count == 0 { Ok(()) } else { visit(run) };
    };
    if !fits(placement, extents) {
        return Err(Error::internal("a layer that does not fit its chunk"));
    }
    let Placement { region, tile_shape, origin, order } = placement;
    // Both counts fit in a `usize`, so positions in the chunk and in the tile cannot overflow.
    element_count(extents, parts)?;
    element_count(tile_shape, parts)?;
    let to_strides = strides(extents, parts, &StorageOrder::RowMajor)?;
    let from_strides = strides(tile_shape, parts, order)?;
    // `to` and `from` are the positions of the region's first cell in the chunk and in the tile.
    let (mut to, mut from) = (0, 0);
    let mut axes = Vec::with_capacity(region.len() + 1);
    for (axis, cells) in region.iter().enumerate() {
        let steps = Steps {
            count: (cells.end - cells.start) as usize,
            to: to_strides[axis],
            from: if tile_shape[axis] == 1 { 0 } else { from_strides[axis] },
        };
        to += cells.start as usize * steps.to;
        from += origin[axis] as usize * steps.from;
        push_merged(&mut axes, steps);
    }
    // The elements of one cell are the innermost axis.
    push_merged(&mut axes, Steps { count: parts, to: 1, from: 1 });
    if axes.iter().any(|axis| axis.count == 0) {
        return Ok(());
    }
    // Move the fastest axis of the stored tile next to the fastest axis of the chunk, for `visit_axes`. For
    // axes (a, b, c) and a column-major tile, that is a: the axes are visited in the order b, a, c.
    if let Some((_, outer)) = axes.split_last_mut()
        && let moving = (0..outer.len()).filter(|&axis| outer[axis].from > 0)
        && let Some(near) = moving.min_by_key(|&axis| outer[axis].from)
    {
        outer[near..].rotate_left(1);
    }
    visit_axes(&axes, to, from, &mut visit)
}

/// Whether the cells of a placement lie inside the chunk and inside the stored tile.
fn fits(Placement { region, tile_shape, origin, .. }: &Placement, extents: &[u64]) -> bool {
    let rank = extents.len();
    let axis = |axis: usize| {
        let (Range { start, end }, first) = (&region[axis], origin[axis]);
        let repeats = tile_shape[axis] == 1 && first == 0;
        let inside =
            |len| repeats || first.checked_add(len).is_some_and(|end| end <= tile_shape[axis]);
        *end <= extents[axis] && end.checked_sub(*start).is_some_and(inside)
    };
    [region.len(), tile_shape.len(), origin.len()] == [rank; 3] && (0..rank).all(axis)
}

fn element_count(shape: &[u64], parts: usize) -> Result<usize> {
    let elements = cell_count(shape)?.checked_mul(parts);
    elements.ok_or_else(|| {
        Error::unsupported(format!("a chunk of shape {shape:?} has too many cells for memory"))
    })
}

/// Returns the elements between neighbouring cells along each axis of a box. Each cell has `parts`
/// elements.
fn strides(shape: &[u64], parts: usize, order: &StorageOrder) -> Result<Vec<usize>> {
    let axes = order.fastest_first(shape.len());
    let axes = axes.ok_or_else(|| {
        Error::internal("the order of a tile's axes has another rank than the tile")
    })?;
    let mut strides = vec![0; shape.len()];
    let mut stride = parts;
    for axis in axes {
        strides[axis] = stride;
        stride *= shape[axis] as usize;
    }
    Ok(strides)
}

/// Adds an inner axis. Merges it with the last axis if their elements are evenly spaced together: one step
/// of the last axis is as far as all cells of the inner one, on both sides. An axis of one cell has no steps.
fn push_merged(axes: &mut Vec<Steps>, inner: Steps) {
    if inner.count == 1 {
        return;
    }
    match axes.last_mut() {
        Some(last)
            if last.to == inner.to * inner.count && last.from == inner.from * inner.count =>
        {
            *last = Steps { count: last.count * inner.count, ..inner };
        }
        _ => axes.push(inner),
    }
}

/// The most cells per run where tile and chunk have different fastest axes. There, each cell of a run
/// lies on another cache line, and the next runs use the same lines. Short runs keep these lines in the
/// cache.
const MAX_STRIP: usize = 32;

/// Visits the runs of `axes`, outermost first, beginning at `to` and `from`.
fn visit_axes(
    axes: &[Steps],
    to: usize,
    from: usize,
    visit: &mut impl FnMut(CellRun) -> Result<()>,
) -> Result<()> {
    match axes {
        [] => visit(CellRun { to, from, steps: Steps { count: 1, to: 1, from: 1 } }),
        [steps] => visit(CellRun { to, from, steps: *steps }),
        // Different fastest axes: `across` is the tile's, `along` the chunk's. A strip takes up to MAX_STRIP
        // cells of `along` for each cell of `across` before it moves on.
        [across, along] if (1..along.from).contains(&across.from) => {
            for start in (0..along.count).step_by(MAX_STRIP) {
                let steps = Steps { count: MAX_STRIP.min(along.count - start), ..*along };
                let (to, from) = (to + start * along.to, from + start * along.from);
                for at in 0..across.count {
                    visit(CellRun {
                        to: to + at * across.to,
                        from: from + at * across.from,
                        steps,
                    })?;
                }
            }
            Ok(())
        }
        [axis, inner @ ..] => {
            for at in 0..axis.count {
                visit_axes(inner, to + at * axis.to, from + at * axis.from, visit)?;
            }
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::error::ErrorKind;
    use rand::rngs::StdRng;
    use rand::seq::SliceRandom;
    use rand::{Rng, SeedableRng};

    use super::*;
    use crate::grid::{ravel, unravel};

    /// Returns a random order of axes.
    fn order(rank: usize, rng: &mut StdRng) -> StorageOrder {
        let mut axes: Vec<usize> = (0..rank).collect();
        axes.shuffle(rng);
        match rng.random_range(0..4) {
            0 => StorageOrder::RowMajor,
            1 => StorageOrder::ColumnMajor,
            _ => StorageOrder::permuted(axes).unwrap(),
        }
    }

    /// Returns the position in a stored tile of the cell at these coordinates.
    fn place_in(shape: &[u64], at: &[u64], order: &StorageOrder) -> usize {
        let slowest_first = || order.fastest_first(shape.len()).unwrap().into_iter().rev();
        let at: Vec<u64> = slowest_first().map(|axis| at[axis]).collect();
        let shape: Vec<u64> = slowest_first().map(|axis| shape[axis]).collect();
        ravel(&at, &shape) as usize
    }

    /// Returns a random placement in a chunk of `extents`: often whole rows, often a single cell of an
    /// axis, and sometimes one element for all cells of an axis.
    fn placement(extents: &[u64], rng: &mut StdRng) -> Placement {
        let (mut region, mut tile_shape, mut origin) = (vec![], vec![], vec![]);
        for &len in extents {
            region.push(match rng.random_range(0..3) {
                0 => 0..len,
                1 => len - 1..len,
                _ => {
                    let start = rng.random_range(0..len);
                    start..rng.random_range(start..=len)
                }
            });
            if rng.random_bool(0.2) {
                tile_shape.push(1);
                origin.push(0);
                continue;
            }
            let before = if rng.random() { 0 } else { rng.random_range(0..3) };
            tile_shape.push(len + before + rng.random_range(0..2));
            origin.push(before + region[region.len() - 1].start);
        }
        Placement { region, tile_shape, origin, order: order(extents.len(), rng) }
    }

    /// Returns every cell of the placement, in the chunk's order: its positions in the chunk and in the
    /// stored tile.
    fn places(placement: &Placement, extents: &[u64]) -> Vec<(usize, usize)> {
        let Placement { region, tile_shape, origin, order } = placement;
        let places = (0..extents.iter().product()).filter_map(|position| {
            let mut at = unravel(position, extents);
            if !at.iter().zip(region).all(|(at, region)| region.contains(at)) {
                return None;
            }
            let moved = at.iter_mut().zip(region).zip(origin).zip(tile_shape);
            moved.for_each(|(((at, region), origin), stored)| {
                *at = if *stored == 1 { 0 } else { *at - region.start + origin };
            });
            Some((position as usize, place_in(tile_shape, &at, order)))
        });
        places.collect()
    }

    #[test]
    fn runs_are_the_cells_each_once() {
        let mut rng = StdRng::seed_from_u64(1);
        for _ in 0..3_000 {
            let rank = rng.random_range(1..=4);
            let mut extents: Vec<u64> = (0..rank).map(|_| rng.random_range(1..5)).collect();
            if rng.random_bool(0.1) {
                extents[rank - 1] = rng.random_range(MAX_STRIP as u64 - 1..3 * MAX_STRIP as u64);
            }
            let placement = placement(&extents, &mut rng);
            let parts = rng.random_range(1..4);
            let mut found = vec![];
            each_run(Some(&placement), &extents, parts, |run| {
                let CellRun { to, from, steps } = run;
                assert!(steps.count > 0);
                found.extend(
                    (0..steps.count).map(|at| (to + at * steps.to, from + at * steps.from)),
                );
                Ok(())
            })
            .unwrap();
            found.sort_unstable();
            let elements = |(to, from): (usize, usize)| {
                (0..parts).map(move |part| (to * parts + part, from * parts + part))
            };
            let expected: Vec<_> =
                places(&placement, &extents).into_iter().flat_map(elements).collect();
            assert_eq!(found, expected, "{placement:?} of {extents:?}");
        }
    }

    #[test]
    fn axes_that_are_like_one_are_one_run() {
        let runs = |region: &[Range<u64>], tile_shape: &[u64], is_row_major: bool| {
            let order =
                if is_row_major { StorageOrder::RowMajor } else { StorageOrder::ColumnMajor };
            let placement = Placement {
                region: region.to_vec(),
                tile_shape: tile_shape.to_vec(),
                origin: region.iter().map(|cells| cells.start).collect(),
                order,
            };
            let mut runs = 0;
            each_run(Some(&placement), &[3, 4, 5], 1, |_| {
                runs += 1;
                Ok(())
            })
            .unwrap();
            runs
        };
        assert_eq!(runs(&[0..3, 0..4, 0..5], &[3, 4, 5], true), 1);
        assert_eq!(runs(&[0..3, 0..4, 0..5], &[9, 4, 5], true), 1);
        assert_eq!(runs(&[1..3, 1..3, 0..5], &[3, 4, 5], true), 2);
        assert_eq!(runs(&[0..3, 0..4, 2..3], &[3, 4, 5], true), 1);
        assert_eq!(runs(&[0..3, 0..4, 0..5], &[3, 4, 6], true), 12);
        assert_eq!(runs(&[0..3, 0..4, 0..5], &[3, 4, 5], false), 12);
        assert_eq!(runs(&[0..3, 1..2, 2..3], &[3, 4, 5], false), 1);
        assert_eq!(runs(&[0..3, 1..1, 0..5], &[3, 4, 5], true), 0);
        // A row or plane that is repeated is copied in runs, and a repeated element fills one.
        assert_eq!(runs(&[0..3, 0..4, 0..5], &[1, 4, 5], true), 3);
        assert_eq!(runs(&[0..3, 0..4, 0..5], &[1, 1, 5], true), 12);
        assert_eq!(runs(&[0..3, 0..4, 0..5], &[3, 4, 1], true), 12);
        assert_eq!(runs(&[0..3, 0..4, 0..5], &[1, 1, 1], true), 1);
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        let placement = Placement {
            region: vec![0..2, 0..2],
            tile_shape: vec![2, 2],
            origin: vec![0, 0],
            order: StorageOrder::RowMajor,
        };
        let copy = |stored: usize, chunk: usize| {
            copy_cells(Some(&placement), &[2, 3], 1, &vec![1; stored], &mut vec![0; chunk])
        };
        assert!(copy(4, 6).is_ok());
        assert!(copy(3, 6).is_err() && copy(4, 4).is_err());
        assert!(fill_cells(Some(&placement), &[2, 3], &1, &mut [0; 4]).is_err());
        let order = StorageOrder::permuted(vec![2, 0, 1]).unwrap();
        let other_rank = Placement { order, ..placement.clone() };
        assert!(copy_cells(Some(&other_rank), &[2, 3], 1, &[1; 4], &mut [0; 6]).is_err());
        let huge = Placement { tile_shape: vec![1 << 40, 1 << 40], ..placement };
        assert!(copy_cells(Some(&huge), &[2, 3], 1, &[1; 4], &mut [0; 6]).is_err());
        assert!(copy_cells(None, &[1 << 62], 8, &[1; 4], &mut [0; 6]).is_err());
    }

    #[test]
    fn a_layer_that_lies_outside_its_chunk_or_tile_is_an_error() {
        let good = Placement {
            region: vec![0..2, 1..3],
            tile_shape: vec![2, 4],
            origin: vec![0, 2],
            order: StorageOrder::ColumnMajor,
        };
        let copy = |placement: &Placement| {
            copy_cells(Some(placement), &[2, 3], 1, &[7_u8; 8], &mut [0; 6])
        };
        copy(&good).unwrap();
        #[expect(clippy::reversed_empty_ranges, reason = "what must be refused")]
        let backwards = vec![0..2, 3..1];
        for wrong in [
            Placement { region: backwards, ..good.clone() },
            Placement { region: vec![0..2, 2..4], ..good.clone() },
            Placement { region: vec![0..2, 1..3, 0..1], ..good.clone() },
            Placement { tile_shape: vec![4, 2], ..good.clone() },
            Placement { tile_shape: vec![8], ..good.clone() },
            Placement { origin: vec![0, u64::MAX], ..good.clone() },
            Placement { origin: vec![], ..good.clone() },
        ] {
            assert_eq!(copy(&wrong).unwrap_err().kind(), ErrorKind::Internal, "{wrong:?}");
        }
    }
}
