//! The order of the cells of a fragment: each cell and the next one are compared, also across tiles.
//!
//! ```text
//!   tile 0       tile 1       tile 2
//!   A  B  C  │   D  E  F  │   G           A < B, B < C, D < E, E < F     within a tile
//!         └──────┘     └──────┘           C < D, F < G                   when both tiles are decoded
//! ```
//!
//! Tiles are decoded in any order. The cell at the end of a tile waits until the tile on the other side is
//! decoded too. So memory does not grow with the fragment.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

use super::names::{CELL_ORDER, DUPLICATES};
use crate::sparse::GlobalOrder;
use gridfusion_core::array::CellKeys;
use gridfusion_core::grid::AxisSelection;
use gridfusion_core::tile::Tile;
use gridfusion_core::verify::Finding;
use gridfusion_core::{Error, Result};

/// A finding, with the name of its check.
type NamedFinding = (&'static str, Finding);

/// The checks of neighbouring cells of one fragment.
#[derive(Debug)]
pub(super) struct Neighbours {
    order: GlobalOrder,
    /// Whether several cells may have the same coordinates.
    may_repeat: bool,
    /// Cells at an end of a tile whose neighbour is not decoded yet, by the number of the later tile.
    waiting: Mutex<HashMap<u64, NeighbourCells>>,
}

/// Some cells in their stored order.
#[derive(Debug)]
struct NeighbourCells {
    /// The coordinates, one tile per dimension.
    coordinates: Vec<Tile>,
    keys: CellKeys,
    /// Whether the cells have an order that can be checked.
    is_ordered: bool,
}

impl Neighbours {
    pub(super) fn new(order: GlobalOrder, may_repeat: bool) -> Self {
        Self { order, may_repeat, waiting: Mutex::default() }
    }

    /// Checks the cells of tile number `place`, which has these `coordinates`: one tile per dimension.
    /// `is_ordered` is whether their order can be checked. Returns the first finding of each check within the
    /// tile, and one per neighbouring tile.
    pub(super) fn check(
        &self,
        place: u64,
        coordinates: Vec<Tile>,
        is_ordered: bool,
    ) -> Result<Vec<NamedFinding>> {
        let cells = NeighbourCells::new(&self.order, coordinates, is_ordered)?;
        let Some(last) = cells.len().checked_sub(1) else { return Ok(vec![]) };
        let mut found = self.within(place, &cells);
        found.extend(self.across(place, cells.single(&self.order, 0)?, true));
        let next = place.saturating_add(1);
        found.extend(self.across(next, cells.single(&self.order, last)?, false));
        Ok(found)
    }

    /// Compares the neighbours in a tile.
    fn within(&self, place: u64, cells: &NeighbourCells) -> Vec<NamedFinding> {
        let mut found: Vec<NamedFinding> = vec![];
        for at in 1..cells.len() {
            let Some(check) = self.fault(cells, at - 1, cells, at) else { continue };
            if found.iter().all(|(name, _)| *name != check) {
                let earlier = at - 1;
                let message = match check {
                    CELL_ORDER => format!("cell {at} precedes cell {earlier} in the global order"),
                    _ => format!("cells {earlier} and {at} have the same coordinates"),
                };
                found.push((check, Finding::failure(message).of_chunk(&[place])));
            }
        }
        found
    }

    /// Compares the first cell of tile number `place` with the last one of the tile before, if both are known
    /// now. `is_first` is whether `cell` is the first one.
    fn across(&self, place: u64, cell: NeighbourCells, is_first: bool) -> Option<NamedFinding> {
        let other = {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(other) = waiting.remove(&place) else {
                waiting.insert(place, cell);
                return None;
            };
            other
        };
        let (earlier, later) = if is_first { (other, cell) } else { (cell, other) };
        let check = self.fault(&earlier, 0, &later, 0)?;
        let before = place.saturating_sub(1);
        let message = match check {
            CELL_ORDER => {
                format!("its first cell precedes the last one of tile {before} in the global order")
            }
            _ => format!("its first cell has the coordinates of the last one of tile {before}"),
        };
        Some((check, Finding::failure(message).of_chunk(&[place])))
    }

    /// Returns the check that cell `at` fails together with cell `next_at` of `next`, which follows it.
    fn fault(
        &self,
        cells: &NeighbourCells,
        at: usize,
        next: &NeighbourCells,
        next_at: usize,
    ) -> Option<&'static str> {
        match cells.keys.compare(at, &next.keys, next_at) {
            Ordering::Less => None,
            Ordering::Greater => (cells.is_ordered && next.is_ordered).then_some(CELL_ORDER),
            // Keys of both zeros are equal, but TileDB stores them as two cells.
            Ordering::Equal => {
                let is_same =
                    |(mine, other): (&Tile, &Tile)| number(mine, at) == number(other, next_at);
                let mut axes = cells.coordinates.iter().zip(&next.coordinates);
                (!self.may_repeat && axes.all(is_same)).then_some(DUPLICATES)
            }
        }
    }
}

impl NeighbourCells {
    fn new(order: &GlobalOrder, coordinates: Vec<Tile>, is_ordered: bool) -> Result<Self> {
        let keys = order.keys(&coordinates)?;
        Ok(Self { coordinates, keys, is_ordered })
    }

    fn len(&self) -> usize {
        self.coordinates.first().map_or(0, Tile::cells)
    }

    /// Returns a copy of one cell, which does not keep the tile in memory.
    fn single(&self, order: &GlobalOrder, at: usize) -> Result<Self> {
        let copies = self.coordinates.iter().map(|tile| copy_of(tile, at));
        Self::new(order, copies.collect::<Result<_>>()?, self.is_ordered)
    }
}

/// Returns the bytes of a coordinate of fixed size; none of a text.
fn number(tile: &Tile, at: usize) -> &[u8] {
    let width = tile.bytes().len() / tile.cells().max(1);
    let start = at.saturating_mul(width);
    tile.bytes().get(start..start.saturating_add(width)).unwrap_or_default()
}

/// Copies one coordinate.
fn copy_of(tile: &Tile, at: usize) -> Result<Tile> {
    let coordinate = number(tile, at);
    if !coordinate.is_empty() {
        return Ok(Tile::fixed(Bytes::copy_from_slice(coordinate), coordinate.len()));
    }
    let at = at as u64;
    let selection = AxisSelection::from_range(tile.cells() as u64, at..at.saturating_add(1));
    let (spans, content) = tile.spans(&[selection])?;
    let span = spans.first().map(|span| span.start as usize..span.end as usize);
    let text = span.and_then(|span| content.get(span));
    let text = text.ok_or_else(|| Error::internal("a text that lies outside its tile"))?;
    let span = std::iter::once(0..text.len() as u64);
    Tile::variable(span.collect(), Bytes::copy_from_slice(text))
}
