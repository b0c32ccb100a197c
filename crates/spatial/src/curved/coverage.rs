//! The cells that a region covers, row by row.
//!
//! Blocks that the region touches wait for their turn, each with its part of the region. The block
//! with the first row is halved next, so that rows are done one after another:
//!
//! ```text
//!   waiting, by first row ──▶ block ──▶ halves, with the region clipped to each ──▶ waiting
//!                                └────▶ leaf: cells, which are complete up to the first row that waits
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use super::cell::Cell;
use super::mesh::Mesh;
use super::window::Window;
use crate::coverage::{CoverageRule, CoveredCell};
use crate::region::Region;

/// The cells of a curvilinear grid that a region covers, rows and columns ascending.
///
/// It holds the part of the region in rows that are not done, and the covered cells of a few rows.
/// Each call of `next` does the work for a few cells, so that a caller can stop between them.
///
/// ```
/// use gridfusion_spatial::{CoverageRule, CurvilinearCells, CurvilinearCoverage, Region};
///
/// let cells = CurvilinearCells::from_centres(&[0.5, 0.5, 1.5, 1.5], &[0.5, 1.5, 0.5, 1.5], 2)?;
/// let region = Region::from_wkt("POLYGON ((0 0, 2 0, 2 2, 0 0))")?;
/// let coverage: CurvilinearCoverage = cells.coverage(&region, CoverageRule::Coverage)?;
/// let fractions: Vec<f64> = coverage.map(|it| it.fraction).collect();
/// assert_eq!(fractions, [0.5, 1.0, 0.5]);
/// # Ok::<_, gridfusion_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct CurvilinearCoverage {
    mesh: Arc<Mesh>,
    rule: CoverageRule,
    /// Blocks by their first row and their index, with the part of the region in the box of each.
    waiting: BTreeMap<(u32, u32), Window>,
    /// Cells of rows that may not be complete.
    found: Vec<CoveredCell>,
    first_found: usize,
    /// Cells of complete rows, in reverse.
    ready: Vec<CoveredCell>,
    /// The part of the region in one cell. It is kept for its memory.
    scratch: Window,
}

impl CurvilinearCoverage {
    pub(super) fn new(mesh: Arc<Mesh>, region: &Region, rule: CoverageRule) -> Self {
        let mut waiting = BTreeMap::new();
        if let Some(all) = mesh.blocks.first().filter(|it| !it.bounds.is_none()) {
            let window = Window::new(region, &all.bounds);
            if !window.is_empty() {
                waiting.insert((0, 0), window);
            }
        }
        Self {
            mesh,
            rule,
            waiting,
            found: Vec::new(),
            first_found: usize::MAX,
            ready: Vec::new(),
            scratch: Window::default(),
        }
    }

    #[cfg(test)]
    pub(super) fn largest_window(&self) -> usize {
        self.waiting.values().map(Window::len).max().unwrap_or(0)
    }

    /// Makes the cells of some rows ready; `false` if there are no more.
    fn make_ready(&mut self) -> bool {
        loop {
            let next = self.waiting.first_key_value().map(|((row, _), _)| *row as usize);
            if next.is_none_or(|it| self.first_found < it) {
                self.complete(next.unwrap_or(usize::MAX));
                return !self.ready.is_empty();
            }
            if let Some(((_, block), window)) = self.waiting.pop_first() {
                self.open(block, &window);
            }
        }
    }

    /// Moves the cells above a row from `found` to `ready`.
    fn complete(&mut self, row: usize) {
        // The last cell first, which is the next to be taken from the end.
        self.found.sort_unstable_by_key(|it| std::cmp::Reverse((it.row, it.column)));
        let incomplete = self.found.partition_point(|it| it.row >= row);
        self.ready.extend(self.found.drain(incomplete..));
        self.first_found = self.found.last().map_or(usize::MAX, |it| it.row);
    }

    /// Lets the halves of a block wait, or finds the covered cells of a leaf.
    fn open(&mut self, index: u32, window: &Window) {
        let mesh = Arc::clone(&self.mesh);
        let block = &mesh.blocks[index as usize];
        let Some(halves) = block.halves(index) else {
            for row in block.rows.clone() {
                for column in block.columns.clone() {
                    let Ok(cell) = mesh.cell(row as usize, column as usize) else { continue };
                    let turns = block.turns_of(cell.bounds().middle());
                    let label = mesh.label(row as usize, column as usize);
                    let fraction = self.fraction(&cell, turns, label, window);
                    self.push(row, column, fraction);
                }
            }
            return;
        };
        for index in halves {
            let half = &mesh.blocks[index as usize];
            if half.bounds.is_none() {
                continue;
            }
            let turns = block.turns_of_half(half);
            let mut part = Window::default();
            window.clip(&half.bounds.turned(turns), [turns, 0.0], &mut part);
            if !part.is_empty() {
                self.waiting.insert((half.rows.start, index), part);
            }
        }
    }

    fn push(&mut self, row: u32, column: u32, fraction: f64) {
        if fraction > 0.0 {
            let (row, column) = (row as usize, column as usize);
            self.first_found = self.first_found.min(row);
            self.found.push(CoveredCell { row, column, fraction });
        }
    }

    /// Returns the part of a cell that counts. The window is that of its leaf, whose turn the cell takes.
    fn fraction(
        &mut self,
        cell: &Cell,
        turns: f64,
        label: Option<[f64; 2]>,
        window: &Window,
    ) -> f64 {
        if window.is_full() {
            return 1.0;
        }
        if self.rule == CoverageRule::Centre {
            let [lon, lat] = cell.centre(label);
            return f64::from(u8::from(window.contains([lon + turns, lat])));
        }
        let bounds = cell.bounds().turned(turns);
        window.clip(&bounds, [bounds.west, bounds.south], &mut self.scratch);
        let part = &self.scratch;
        if part.is_empty() {
            return 0.0;
        }
        if part.is_full() {
            return 1.0;
        }
        let areas = cell.pieces().map(|(sign, piece)| sign * part.area_within(&piece));
        let fraction = areas.sum::<f64>() / cell.area();
        let rounding = cell.rounding() + 4.0 * f64::EPSILON * part.len() as f64;
        if fraction <= rounding {
            return 0.0;
        }
        if self.rule == CoverageRule::Touched || fraction > 1.0 - rounding { 1.0 } else { fraction }
    }
}

impl Iterator for CurvilinearCoverage {
    type Item = CoveredCell;

    fn next(&mut self) -> Option<CoveredCell> {
        if self.ready.is_empty() && !self.make_ready() {
            return None;
        }
        self.ready.pop()
    }
}
