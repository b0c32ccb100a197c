//! Which cells of another dataset the cells of a virtual dataset are, axis by axis.
//!
//! ```text
//!   stack[4, :, :] = frame[:, :]         axis of stack   0: cell 4    1: axis 0 of frame    2: axis 1 of frame
//!   line[0:100:2]  = all[3, 0:50]        axis of line    0: axis 1 of all, and cell 3 of axis 0
//! ```

use std::ops::Range;

use crate::hdf5::Steps;
use gridfusion_core::grid::ravel;
use gridfusion_core::{Error, Result};

/// The axes of a virtual dataset, as those of another dataset.
#[derive(Debug)]
pub(super) struct Pairs {
    /// The selected cells, per axis of the virtual dataset.
    target: Vec<Steps>,
    /// The selected cells, per axis of the other dataset.
    source: Vec<Steps>,
    /// The axes of the other dataset that are one axis of its tiles, in order, per axis of the virtual dataset. If that
    /// axis has several cells, it is the last of them.
    folded: Vec<Vec<usize>>,
    /// The axes of the other dataset after all of these.
    trailing: Vec<usize>,
}

/// Cells of a chunk of the virtual dataset that are in one chunk of the other dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TilePiece {
    /// The first cell, per axis of the virtual dataset.
    pub(super) target: Vec<u64>,
    /// The chunk, per axis of the other dataset, and the first cell in it.
    pub(super) chunk: Vec<u64>,
    pub(super) first: Vec<u64>,
    /// Cells per axis of the virtual dataset.
    pub(super) lens: Vec<u64>,
}

/// Cells of a piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cut {
    /// The first cell in the chunk, per axis of the other dataset.
    pub(super) first: Vec<u64>,
    /// The cells of the piece before these, and their number, per axis of the virtual dataset.
    pub(super) skipped: Vec<u64>,
    pub(super) lens: Vec<u64>,
}

/// A tile of the other dataset, with the axes of the virtual dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoldedTile {
    pub(super) tile_shape: Vec<u64>,
    /// The place of a cell in it.
    pub(super) origin: Vec<u64>,
    /// If the tile has only every n-th cell of the other: the number n, and the first of them.
    pub(super) picked: Option<(u64, u64)>,
}

/// Cells along an axis that are in one chunk of the other dataset.
#[derive(Debug, Clone, Copy)]
struct Segment {
    target: u64,
    chunk: u64,
    first: u64,
    len: u64,
}

/// The most pieces of a chunk that come from one mapping.
const MAX_PIECES: usize = 1 << 16;

impl Pairs {
    /// Pairs the axes with several cells, which must be as many on both sides, and in the same order.
    pub(super) fn new(target: Vec<Steps>, source: Vec<Steps>) -> Result<Self> {
        let (mut folded, mut waiting, mut next) = (vec![], vec![], 0);
        for (axis, steps) in target.iter().enumerate() {
            // The axes with one cell before the next axis with several.
            while source.get(next).is_some_and(|steps| steps.cells() == 1) {
                waiting.push(next);
                next += 1;
            }
            if steps.cells() != 1 {
                if source.get(next).map(Steps::cells) != Some(steps.cells()) {
                    return Err(unlike(&target, &source));
                }
                waiting.push(next);
                next += 1;
                folded.push(std::mem::take(&mut waiting));
            } else if target.get(axis + 1).is_some_and(|next| next.cells() == 1) {
                // A later axis with one cell takes them.
                folded.push(vec![]);
            } else {
                folded.push(std::mem::take(&mut waiting));
            }
        }
        while source.get(next).is_some_and(|steps| steps.cells() == 1) {
            waiting.push(next);
            next += 1;
        }
        if next != source.len() {
            return Err(unlike(&target, &source));
        }
        Ok(Self { target, source, folded, trailing: waiting })
    }

    /// Whether cells of the other dataset lie outside its shape.
    pub(super) fn exceeds(&self, shape: &[u64]) -> bool {
        let mut axes = self.source.iter().zip(shape);
        axes.any(|(steps, len)| steps.cells() > 0 && steps.end() > *len)
    }

    /// Returns the pieces of the cells in `within`, if chunks of the other dataset have this shape.
    pub(super) fn pieces(
        &self,
        within: &[Range<u64>],
        chunk_shape: &[u64],
    ) -> Result<Vec<TilePiece>> {
        // Most mappings have no cell there.
        let mut axes = self.target.iter().zip(within);
        if axes.any(|(steps, within)| steps.end() <= within.start || within.end <= steps.start) {
            return Ok(vec![]);
        }
        let empty = TilePiece {
            target: vec![],
            chunk: vec![0; chunk_shape.len()],
            first: vec![0; chunk_shape.len()],
            lens: vec![],
        };
        let mut pieces = vec![empty];
        for ((steps, axes), within) in self.target.iter().zip(&self.folded).zip(within) {
            // One cell may be of any number of axes, and several cells are of the last.
            let along = axes.last().filter(|_| steps.cells() != 1);
            let segments =
                match along.and_then(|&axis| self.source.get(axis).zip(chunk_shape.get(axis))) {
                    Some((source, chunk)) => segments(*steps, *source, within, *chunk),
                    None => segments(*steps, Steps::all(1), within, 1),
                };
            if segments.len().saturating_mul(pieces.len()) > MAX_PIECES {
                return Err(Error::unsupported(format!(
                    "a mapping of a virtual dataset in more than {MAX_PIECES} pieces per chunk"
                )));
            }
            let longer = |piece: &TilePiece| -> Vec<TilePiece> {
                let with = |segment: &Segment| {
                    let mut piece = piece.clone();
                    piece.target.push(segment.target);
                    piece.lens.push(segment.len);
                    if let Some(&axis) = along {
                        set(&mut piece.chunk, axis, segment.chunk);
                        set(&mut piece.first, axis, segment.first);
                    }
                    piece
                };
                segments.iter().map(with).collect()
            };
            pieces = pieces.iter().flat_map(longer).collect();
        }
        for (axis, (steps, len)) in self.source.iter().zip(chunk_shape).enumerate() {
            if steps.cells() == 1 {
                for piece in &mut pieces {
                    set(&mut piece.chunk, axis, steps.start / (*len).max(1));
                    set(&mut piece.first, axis, steps.start % (*len).max(1));
                }
            }
        }
        Ok(pieces)
    }

    /// Cuts a piece to a region of its chunk; `None` if they have no cell in common.
    pub(super) fn cut(&self, piece: &TilePiece, region: &[Range<u64>]) -> Option<Cut> {
        let first = piece.first.clone();
        let mut cut = Cut { first, skipped: vec![0; piece.lens.len()], lens: piece.lens.clone() };
        let mut lens = vec![1; region.len()];
        let along = |axis: usize| {
            let several = self.target.get(axis).is_some_and(|steps| steps.cells() != 1);
            self.folded.get(axis).and_then(|axes| axes.last()).copied().filter(|_| several)
        };
        for (axis, len) in piece.lens.iter().enumerate() {
            if let Some(along) = along(axis) {
                set(&mut lens, along, *len);
            }
        }
        for ((first, len), region) in cut.first.iter_mut().zip(&mut lens).zip(region) {
            let end = first.saturating_add(*len).min(region.end);
            *first = region.start.max(*first);
            *len = end.checked_sub(*first).filter(|&len| len > 0)?;
        }
        for axis in 0..piece.lens.len() {
            let Some(along) = along(axis) else { continue };
            let at = |all: &[u64]| all.get(along).copied().unwrap_or_default();
            set(&mut cut.skipped, axis, at(&cut.first) - at(&piece.first));
            set(&mut cut.lens, axis, at(&lens));
        }
        Some(cut)
    }

    /// Returns the shape of a tile of the other dataset with the axes of the virtual dataset, and the place of a cell
    /// in it.
    pub(super) fn folded(&self, shape: &[u64], cell: &[u64]) -> FoldedTile {
        let of = |all: &[u64], axes: &[usize]| -> Vec<u64> {
            axes.iter().filter_map(|&axis| all.get(axis).copied()).collect()
        };
        let behind = of(shape, &self.trailing);
        let every = behind.iter().product();
        let lens = self.folded.iter().map(|axes| of(shape, axes).iter().product());
        let places = self.folded.iter().map(|axes| ravel(&of(cell, axes), &of(shape, axes)));
        let picked = (every, ravel(&of(cell, &self.trailing), &behind));
        let picked = Some(picked).filter(|_| every != 1);
        FoldedTile { tile_shape: lens.collect(), origin: places.collect(), picked }
    }
}

fn set(all: &mut [u64], at: usize, value: u64) {
    if let Some(place) = all.get_mut(at) {
        *place = value;
    }
}

fn unlike(target: &[Steps], source: &[Steps]) -> Error {
    let lens = |all: &[Steps]| all.iter().map(Steps::cells).collect::<Vec<_>>();
    let (target, source) = (lens(target), lens(source));
    Error::unsupported(format!(
        "a virtual dataset that maps cells of shape {source:?} to cells of shape {target:?}"
    ))
}

/// Returns the cells in `within`, as runs in chunks of `chunk` cells.
fn segments(target: Steps, source: Steps, within: &Range<u64>, chunk: u64) -> Vec<Segment> {
    let chunk = chunk.max(1);
    let count = target.cells().min(source.cells());
    let skipped = within.start.saturating_sub(target.start);
    let block = if target.count > 1 { skipped / target.stride.max(1) } else { 0 };
    let rest = skipped - block * target.stride;
    let mut number = block.saturating_mul(target.block) + rest.min(target.block);
    let mut segments = vec![];
    while number < count && segments.len() <= MAX_PIECES {
        let place = |steps: Steps| {
            let (block, rest) = (number / steps.block, number % steps.block);
            (steps.start + block * steps.stride + rest, steps.block - rest)
        };
        let ((at, left), (from, source_left)) = (place(target), place(source));
        if at >= within.end {
            break;
        }
        let (first, room) = (from % chunk, chunk - from % chunk);
        let len = left.min(source_left).min(within.end - at).min(room);
        segments.push(Segment { target: at, chunk: from / chunk, first, len });
        number += len;
    }
    segments
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(start: u64, stride: u64, count: u64, block: u64) -> Steps {
        Steps { start, stride, count, block, lacks: 0 }
    }

    /// Lays out cell by cell.
    fn cells(steps: &[Steps]) -> Vec<Vec<u64>> {
        let mut all = vec![vec![]];
        for steps in steps {
            let along = (0..steps.count).flat_map(|at| {
                (0..steps.block).map(move |it| steps.start + at * steps.stride + it)
            });
            let along: Vec<u64> = along.collect();
            all = all
                .iter()
                .flat_map(|cell: &Vec<u64>| {
                    along.iter().map(move |at| [&cell[..], &[*at]].concat())
                })
                .collect();
        }
        all
    }

    /// Returns the cells of all pieces: that of the virtual dataset with that of the other one.
    fn found(
        pairs: &Pairs,
        rank: usize,
        shape: &[u64],
        chunk_shape: &[u64],
    ) -> Vec<(Vec<u64>, Vec<u64>)> {
        let mut found = vec![];
        // Two parts of the first axis.
        for first in [0..3, 3..99] {
            let within: Vec<_> = std::iter::once(first).chain(vec![0..99; rank - 1]).collect();
            for piece in pairs.pieces(&within, chunk_shape).unwrap() {
                let tile: Vec<u64> = piece
                    .chunk
                    .iter()
                    .zip(chunk_shape)
                    .zip(shape)
                    .map(|((at, len), all)| (*len).min(all - at * len))
                    .collect();
                let folded = pairs.folded(&tile, &piece.first);
                let (lens, place) = (folded.tile_shape, folded.origin);
                let (every, rest) = folded.picked.unwrap_or((1, 0));
                for cell in 0..piece.lens.iter().product() {
                    let offset = gridfusion_core::grid::unravel(cell, &piece.lens);
                    let add = |a: &[u64]| -> Vec<u64> {
                        a.iter().zip(&offset).map(|(a, b)| a + b).collect()
                    };
                    let in_tile = gridfusion_core::grid::unravel(
                        ravel(&add(&place), &lens) * every + rest,
                        &tile,
                    );
                    let at: Vec<u64> = in_tile
                        .iter()
                        .zip(&piece.chunk)
                        .zip(chunk_shape)
                        .map(|((it, chunk), len)| it + chunk * len)
                        .collect();
                    found.push((add(&piece.target), at));
                }
            }
        }
        found
    }

    #[test]
    fn each_cell_is_that_of_the_selection() {
        for (target, source, shape, chunk_shape) in [
            (
                vec![steps(4, 1, 1, 1), Steps::all(4), Steps::all(5)],
                vec![Steps::all(4), Steps::all(5)],
                vec![4, 5],
                vec![3, 2],
            ),
            (
                vec![steps(0, 2, 6, 1)],
                vec![steps(3, 1, 1, 1), steps(1, 1, 1, 6)],
                vec![5, 9],
                vec![2, 4],
            ),
            (vec![steps(1, 4, 3, 2)], vec![steps(0, 5, 2, 3)], vec![9], vec![4]),
            (
                vec![steps(2, 1, 1, 1), steps(7, 1, 1, 1), Steps::all(3)],
                vec![steps(4, 1, 1, 1), Steps::all(3)],
                vec![6, 3],
                vec![4, 3],
            ),
            (
                vec![Steps::all(3), steps(1, 1, 1, 1)],
                vec![Steps::all(3), steps(2, 1, 1, 1)],
                vec![3, 4],
                vec![2, 3],
            ),
            (
                vec![Steps::all(4), Steps::all(5)],
                vec![Steps::all(4), Steps::all(5), steps(4, 1, 1, 1), steps(1, 1, 1, 1)],
                vec![4, 5, 6, 2],
                vec![3, 2, 4, 2],
            ),
        ] {
            let pairs = Pairs::new(target.clone(), source.clone()).unwrap();
            assert!(!pairs.exceeds(&shape));
            let expected: Vec<_> = cells(&target).into_iter().zip(cells(&source)).collect();
            let mut found = found(&pairs, target.len(), &shape, &chunk_shape);
            found.sort();
            assert_eq!(found, expected, "{target:?} {source:?}");
        }
    }

    #[test]
    fn other_shapes_are_refused() {
        let (a, b) = (Steps::all(4), Steps::all(5));
        for (target, source) in
            [(vec![a, b], vec![Steps::all(20)]), (vec![a], vec![a, b]), (vec![a], vec![b])]
        {
            assert!(Pairs::new(target, source).is_err());
        }
        let pairs = Pairs::new(vec![a], vec![a, steps(2, 1, 1, 1)]).unwrap();
        let folded = pairs.folded(&[4, 5], &[1, 2]);
        assert_eq!(
            (folded.tile_shape, folded.origin, folded.picked),
            (vec![4], vec![1], Some((5, 2)))
        );
        assert_eq!(pairs.folded(&[4, 1], &[0, 0]).picked, None);
    }

    #[test]
    fn pieces_are_cut_to_regions_of_chunks() {
        let (rows, columns) = (steps(10, 1, 1, 4), steps(3, 1, 1, 1));
        let pairs = Pairs::new(vec![rows], vec![Steps::all(4), columns]).unwrap();
        let piece = &pairs.pieces(std::slice::from_ref(&(0..99)), &[8, 8]).unwrap()[0];
        let cut = |rows: Range<u64>, columns| pairs.cut(piece, &[rows, columns]);
        let whole = Cut { first: vec![0, 3], skipped: vec![0], lens: vec![4] };
        assert_eq!(cut(0..8, 0..8), Some(whole));
        let middle = Cut { first: vec![1, 3], skipped: vec![1], lens: vec![2] };
        assert_eq!(cut(1..3, 3..4), Some(middle));
        assert!(cut(4..8, 0..8).is_none() && cut(0..8, 4..8).is_none());
    }
}
