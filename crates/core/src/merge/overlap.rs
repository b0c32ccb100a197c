//! Finds tiles that may hold cells of the same coordinates, and groups them.
//!
//! ```text
//!   fragment 0   ┌──a──┐  ┌─b─┐
//!   fragment 1      ┌──c──┐       ┌─d─┐        groups  {a, b, c}   merged together
//!                └──┴──┴──┴───┘   └───┘                {d}         alone
//! ```
//!
//! A sweep along the first axis compares each tile with those that have begun and not yet ended there.
//! Rectangles become rows of bytes that sort like the coordinates, so that one comparison fits all types.
//!
//! A write has each coordinate once, so tiles of one write are never compared. A consolidated fragment with times may
//! hold versions of one cell in one tile, so each of its tiles is merged. After 2²⁴ comparisons, all tiles are one group.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, UInt64Array};
use arrow::compute::{concat, take};
use arrow::row::{RowConverter, Rows, SortField};

use crate::array::{SparseArray, TileBounds, TileNumber, failed_to};
use crate::error::Result;

/// The comparisons of rectangles after which all tiles count as overlapping. Tiles that are long on the first
/// axis would otherwise take time by the square of their number.
const MAX_COMPARISONS: usize = 1 << 24;

/// The tiles of a scan, by whether they share coordinates with others.
#[derive(Debug, Default)]
pub struct Overlaps {
    /// Groups of tiles that must be merged, as positions in the list of tiles; each group ascends.
    pub groups: Vec<Vec<usize>>,
    /// Per tile, whether it is in a group.
    pub merged: Vec<bool>,
}

/// The least and the greatest coordinate of each tile on one axis.
struct Axis {
    least: Rows,
    greatest: Rows,
}

/// Groups those of `tiles` that may hold the same coordinates. Tiles whose rectangles were not read are alone:
/// they belong to fragments that overlap no other ([`overlapping_fragments`]). `rectangles` has those of each fragment.
///
/// # Errors
/// `Unsupported` for coordinates that Arrow cannot compare.
pub fn overlaps(
    array: &SparseArray,
    rectangles: &[Option<Arc<TileBounds>>],
    tiles: &[TileNumber],
) -> Result<Overlaps> {
    let is_known = |tile: &TileNumber| rectangles.get(tile.fragment).is_some_and(Option::is_some);
    let positions: Vec<usize> = (0..tiles.len()).filter(|&at| is_known(&tiles[at])).collect();
    let compared: Vec<TileNumber> = positions.iter().map(|&at| tiles[at]).collect();
    let fragments = array.source().fragments();
    let has_times = |tile: &TileNumber| fragments[tile.fragment].has_times;
    let is_one = compared.windows(2).all(|pair| pair[0].fragment == pair[1].fragment);
    if array.source().allows_duplicates() || (is_one && !compared.iter().any(has_times)) {
        return Ok(Overlaps { groups: vec![], merged: vec![false; tiles.len()] });
    }
    // A fragment with times may hold several versions of one cell, even in one tile.
    let mut groups = Groups::new(compared.iter().map(has_times).collect());
    match axes(array, rectangles, &compared)? {
        Some(axes) => sweep(&axes, &compared, &has_times, &mut groups),
        None => groups.join_all(),
    }
    let mut overlaps = Overlaps { groups: groups.finish(), merged: vec![false; tiles.len()] };
    for position in overlaps.groups.iter_mut().flatten() {
        *position = positions[*position];
        overlaps.merged[*position] = true;
    }
    Ok(overlaps)
}

/// Returns which of `fragments` may hold a cell more than once, or the coordinates of another fragment. Only
/// the rectangles of their tiles are needed.
///
/// # Errors
/// As [`overlaps`], and of [`SparseSource::fragment_bounds`](crate::array::SparseSource::fragment_bounds).
pub fn overlapping_fragments(array: &SparseArray, fragments: &[usize]) -> Result<Vec<usize>> {
    let bounds = array.source().fragment_bounds(fragments)?;
    let mut rectangles = vec![None; array.source().fragments().len()];
    // Each fragment counts as one tile.
    for (at, &fragment) in fragments.iter().enumerate() {
        let one = |all: &[ArrayRef]| all.iter().map(|ends| ends.slice(at, 1)).collect();
        let bounds = TileBounds::new(one(&bounds.least), one(&bounds.greatest));
        rectangles[fragment] = Some(Arc::new(bounds));
    }
    let tiles = fragments.iter().map(|&fragment| TileNumber { fragment, tile: 0 });
    let overlaps = overlaps(array, &rectangles, &tiles.collect::<Vec<_>>())?;
    let merged = fragments.iter().zip(overlaps.merged).filter(|(_, merged)| *merged);
    Ok(merged.map(|(fragment, _)| *fragment).collect())
}

/// Returns the least or greatest coordinates of some tiles on one axis; `None` if they were not read.
///
/// # Errors
/// `Unsupported` if memory does not suffice.
pub fn coordinates(
    rectangles: &[Option<Arc<TileBounds>>],
    tiles: &[TileNumber],
    axis: usize,
    least: bool,
) -> Result<Option<ArrayRef>> {
    let mut parts = vec![];
    // Tiles of one fragment follow one another.
    for run in tiles.chunk_by(|a, b| a.fragment == b.fragment) {
        let Some(bounds) = rectangles.get(run[0].fragment).and_then(Option::as_ref) else {
            return Ok(None);
        };
        let all = if least { &bounds.least[axis] } else { &bounds.greatest[axis] };
        let numbers: UInt64Array = run.iter().map(|tile| Some(tile.tile)).collect();
        parts.push(take(all, &numbers, None).map_err(failed_to("take coordinates"))?);
    }
    let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
    let all = (!parts.is_empty()).then(|| concat(&parts)).transpose();
    all.map_err(failed_to("join coordinates"))
}

/// Returns the rectangles of the tiles, axis by axis; `None` if some are not known.
fn axes(
    array: &SparseArray,
    rectangles: &[Option<Arc<TileBounds>>],
    tiles: &[TileNumber],
) -> Result<Option<Vec<Axis>>> {
    let mut axes = Vec::with_capacity(array.rank());
    for axis in 0..array.rank() {
        let least = coordinates(rectangles, tiles, axis, true)?;
        let greatest = coordinates(rectangles, tiles, axis, false)?;
        let (Some(least), Some(greatest)) = (least, greatest) else { return Ok(None) };
        if least.null_count() + greatest.null_count() > 0 {
            return Ok(None);
        }
        let converter = RowConverter::new(vec![SortField::new(least.data_type().clone())]);
        let converter = converter.map_err(failed_to("compare rectangles"))?;
        let rows =
            |ends| converter.convert_columns(&[ends]).map_err(failed_to("compare rectangles"));
        axes.push(Axis { least: rows(least)?, greatest: rows(greatest)? });
    }
    Ok(Some(axes))
}

/// Joins the tiles whose rectangles overlap.
fn sweep(
    axes: &[Axis],
    tiles: &[TileNumber],
    has_times: &impl Fn(&TileNumber) -> bool,
    groups: &mut Groups,
) {
    let Some((first, others)) = axes.split_first() else { return };
    let mut order: Vec<usize> = (0..tiles.len()).collect();
    order.sort_unstable_by_key(|&at| first.least.row(at));
    let mut active: Vec<usize> = vec![];
    let mut comparisons = 0;
    for at in order {
        active.retain(|&other| first.greatest.row(other) >= first.least.row(at));
        comparisons += active.len();
        if comparisons > MAX_COMPARISONS {
            return groups.join_all();
        }
        for &other in &active {
            let is_same = tiles[at].fragment == tiles[other].fragment;
            if is_same && !has_times(&tiles[at]) {
                continue; // a write has each coordinate once
            }
            let touch = |axis: &Axis| {
                axis.least.row(at) <= axis.greatest.row(other)
                    && axis.least.row(other) <= axis.greatest.row(at)
            };
            if others.iter().all(touch) {
                groups.join(at, other);
            }
        }
        active.push(at);
    }
}

/// Groups of tiles as a forest, in which each tile knows its parent and each root stands for a group.
struct Groups {
    parents: Vec<usize>,
    merged: Vec<bool>,
}

impl Groups {
    /// Makes a group of each tile; `merged` are those that must be merged even alone.
    fn new(merged: Vec<bool>) -> Self {
        Self { parents: (0..merged.len()).collect(), merged }
    }

    fn root(&mut self, mut at: usize) -> usize {
        while self.parents[at] != at {
            // Each visit halves the way to the root.
            self.parents[at] = self.parents[self.parents[at]];
            at = self.parents[at];
        }
        at
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        (self.merged[a], self.merged[b]) = (true, true);
        self.parents[a.max(b)] = a.min(b);
    }

    fn join_all(&mut self) {
        (1..self.parents.len()).for_each(|at| self.join(0, at));
    }

    /// Returns the groups that must be merged.
    fn finish(mut self) -> Vec<Vec<usize>> {
        let mut of_root = vec![vec![]; self.parents.len()];
        for at in 0..self.parents.len() {
            let root = self.root(at);
            of_root[root].push(at);
        }
        let groups = of_root.into_iter().enumerate();
        let groups = groups.filter(|(root, group)| self.merged[*root] && !group.is_empty());
        groups.map(|(_, group)| group).collect()
    }
}
