//! [`MergedTile`]: an open tile, and which of its cells newer ones replace.

use std::cmp::Ordering;

use arrow::array::BooleanBufferBuilder;
use datafusion::error::Result;

use super::open_tile::OpenTile;
use super::tile_reader::{TileReader, nan_coordinate, out_of_order};
use crate::array::CellKeys;
use crate::merge::SortedRun;

/// An open tile of a merge.
#[derive(Debug)]
pub(super) struct MergedTile {
    pub(super) open: OpenTile,
    /// The keys of the selected cells, in their order.
    pub(super) keys: CellKeys,
    /// Whether several selected cells have the same key.
    pub(super) repeats: bool,
    /// The part of the keys that tells the cells apart.
    distinct_part: Option<usize>,
    /// The selected cells, in the order of `keys`; `None` for all in their stored order.
    cells: Option<Vec<u32>>,
    /// The cells that newer ones replace.
    replaced: Vec<usize>,
}

impl MergedTile {
    /// Orders the selected cells of a tile. `keys` has a key for each cell of the tile, also for others.
    ///
    /// # Errors
    /// `Corrupt` if cells are not in the global order, and `Unsupported` if a coordinate is NaN. Cells of tiles
    /// with texts may be in another order.
    pub(super) fn new(
        reader: &TileReader,
        mut open: OpenTile,
        keys: CellKeys,
        has_texts: bool,
    ) -> Result<Self> {
        let selected = open.selected.as_ref();
        let mut cells: Option<Vec<u32>> =
            selected.map(|selected| selected.set_indices().map(|cell| cell as u32).collect());
        let mut own =
            cells.as_ref().map(|cells| keys.take(&cells.iter().map(|&cell| cell as usize)));
        let mut order = own.as_ref().unwrap_or(&keys).order();
        if order == Ordering::Greater {
            match has_texts {
                true => {
                    let mut sorted = cells.unwrap_or_else(|| (0..open.rows as u32).collect());
                    // Cells of the same coordinates keep their order.
                    sorted.sort_by(|a, b| keys.compare(*a as usize, &keys, *b as usize));
                    let taken = keys.take(&sorted.iter().map(|&cell| cell as usize));
                    order = taken.order();
                    (own, cells) = (Some(taken), Some(sorted));
                }
                false if open.holds_nan(&reader.array)? => {
                    return Err(nan_coordinate(reader, open.task));
                }
                false => return Err(out_of_order(reader, open.task)),
            }
        }
        let keys = own.unwrap_or(keys);
        let distinct_part = keys.distinct_part();
        let repeats = order == Ordering::Equal;
        Ok(Self { open, keys, repeats, distinct_part, cells, replaced: vec![] })
    }

    /// Returns the number of selected cells.
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns the position of the first selected cell, from `start` on, behind the only key of `limit`. Cells of
    /// that key are not behind it if `is_inclusive`.
    pub(super) fn end_of(&self, start: usize, limit: &CellKeys, is_inclusive: bool) -> usize {
        let most = if is_inclusive { Ordering::Equal } else { Ordering::Less };
        let (mut low, mut high) = (start, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.keys.compare(middle, limit, 0) <= most {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }

    /// Returns selected cells as a run of a window. `time` is that of cells without their own.
    pub(super) fn run(&self, start: usize, end: usize, time: u64) -> SortedRun<'_> {
        SortedRun {
            keys: &self.keys,
            start,
            end,
            tile: self.open.task.tile,
            distinct_part: self.distinct_part,
            time,
            times: self.open.times.as_ref().map(|times| times.times.as_slice()),
            cells: self.cells.as_deref(),
        }
    }

    /// Marks the selected cell at a position as replaced.
    pub(super) fn replace(&mut self, position: usize) {
        let cell = self.cells.as_ref().map_or(position, |cells| cells[position] as usize);
        self.replaced.push(cell);
    }

    /// Removes the replaced cells. Returns the tile, and the number of cells that it removes.
    pub(super) fn finish(self) -> (OpenTile, usize) {
        let Self { mut open, replaced, .. } = self;
        if replaced.is_empty() {
            return (open, 0);
        }
        let mut stay = BooleanBufferBuilder::new(open.rows);
        stay.append_n(open.rows, true);
        replaced.iter().for_each(|&cell| stay.set_bit(cell, false));
        let removed = open.restrict(&stay.finish());
        (open, removed)
    }
}
