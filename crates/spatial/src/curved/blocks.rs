//! An index of cells: the grid is halved into blocks, and each has a box around its cells.
//!
//! ```text
//!   ┌───────────┐     ┌─────┬─────┐     ┌──┬──┬─────┐     Cells near each other on the globe are near
//!   │     0     │ ──▶ │  1  │     │ ──▶ │ 2│ 3│     │     each other in rows and columns, so that halves
//!   │           │     │     │     │     ├──┴──┤     │     have smaller boxes.
//!   └───────────┘     └─────┴─────┘     └─────┴─────┘
//! ```
//!
//! Longitudes repeat. Each block has its own turn, which is that of its first cell, and the boxes of
//! its halves and cells are turned to it. A block across the date line therefore has a narrow box.

use std::ops::Range;

use super::bounds::{Bounds, turns_to};

/// Blocks of no more cells than these are not halved.
const LEAF: usize = 32;

/// Some neighbouring rows and columns.
#[derive(Debug, Clone)]
pub(super) struct Block {
    pub(super) rows: Range<u32>,
    pub(super) columns: Range<u32>,
    /// The box around all cells, in the turn of the block.
    pub(super) bounds: Bounds,
    /// The middle of the first cell, which decides the turn.
    origin: f64,
    /// The index of the second half. The first half follows its block. A leaf has none.
    second: Option<u32>,
}

impl Block {
    /// Returns the turns, in degrees, that bring a cell with this middle to the block.
    pub(super) fn turns_of(&self, middle: f64) -> f64 {
        turns_to(self.origin, middle)
    }

    /// Returns the turns that bring one of the halves to the block.
    pub(super) fn turns_of_half(&self, half: &Self) -> f64 {
        self.turns_of(half.origin)
    }

    /// Returns the indices of the halves of the block `index`; `None` for a leaf.
    pub(super) fn halves(&self, index: u32) -> Option<[u32; 2]> {
        Some([index + 1, self.second?])
    }

    /// Takes a box, which is turned, into that of the block.
    fn add(&mut self, bounds: &Bounds, origin: f64) {
        if bounds.is_none() {
            return;
        }
        if self.bounds.is_none() {
            self.origin = origin;
        }
        self.bounds = self.bounds.joined(&bounds.turned(self.turns_of(origin)));
    }
}

/// Returns the blocks of a grid, the first of which is the whole grid; none without cells.
pub(super) fn blocks(
    rows: u32,
    columns: u32,
    mut bounds: impl FnMut(usize, usize) -> Bounds,
) -> Vec<Block> {
    let mut blocks = Vec::new();
    if rows > 0 && columns > 0 {
        push(&mut blocks, 0..rows, 0..columns, &mut bounds);
    }
    blocks
}

/// Adds a block and all within it, and returns its index. It is halved up to 32 times.
fn push(
    blocks: &mut Vec<Block>,
    rows: Range<u32>,
    columns: Range<u32>,
    bounds: &mut impl FnMut(usize, usize) -> Bounds,
) -> usize {
    let index = blocks.len();
    let mut block = Block {
        rows: rows.clone(),
        columns: columns.clone(),
        bounds: Bounds::NONE,
        origin: 0.0,
        second: None,
    };
    blocks.push(block.clone());
    if rows.len() * columns.len() <= LEAF {
        for row in rows {
            for column in columns.clone() {
                let cell = bounds(row as usize, column as usize);
                block.add(&cell, cell.middle());
            }
        }
    } else {
        let halves = if rows.len() >= columns.len() {
            halves(rows).map(|it| (it, columns.clone()))
        } else {
            halves(columns).map(|it| (rows.clone(), it))
        };
        for (number, (rows, columns)) in halves.into_iter().enumerate() {
            let half = push(blocks, rows, columns, bounds);
            block.add(&blocks[half].bounds, blocks[half].origin);
            if number == 1 {
                block.second = Some(half as u32);
            }
        }
    }
    blocks[index] = block;
    index
}

fn halves(range: Range<u32>) -> [Range<u32>; 2] {
    let middle = range.start + (range.end - range.start) / 2;
    [range.start..middle, middle..range.end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_across_the_date_line_are_narrow() {
        // Cells of a degree from 170 to 190, with longitudes beyond 180 as negative ones.
        let cell = |row: usize, column: usize| {
            let west = 170.0 + column as f64;
            let west = if west >= 180.0 { west - 360.0 } else { west };
            let south = row as f64;
            Bounds { west, east: west + 1.0, south, north: south + 1.0 }
        };
        let found = blocks(10, 20, cell);
        assert_eq!(found[0].bounds, Bounds { west: 170.0, east: 190.0, south: 0.0, north: 10.0 });
        let leaves: Vec<&Block> = found.iter().filter(|it| it.second.is_none()).collect();
        assert_eq!(leaves.iter().map(|it| it.rows.len() * it.columns.len()).sum::<usize>(), 200);
        for (index, block) in found.iter().enumerate() {
            assert_eq!(block.bounds.east - block.bounds.west, block.columns.len() as f64);
            for half in block.halves(index as u32).into_iter().flatten() {
                let half = &found[half as usize];
                let turned = half.bounds.turned(block.turns_of_half(half));
                assert_eq!(block.bounds.joined(&turned), block.bounds);
            }
        }
        assert!(blocks(0, 5, cell).is_empty());
    }
}
