//! The cells that a region covers, and how much of each.
//!
//! ```text
//!   Region ──▶ walk: visits (row, column, cover, area) of the cells that an edge crosses
//!              ──▶ rows: sorted, a running sum along each row fills the inside ──▶ CoveredCell
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `walk` | walks rings over the lattice |
//! | `rows` | runs of covered cells of a row, from visits |
//! | `centres` | runs of cells whose centre lies inside |

mod centres;
mod rows;
mod walk;

use std::ops::Range;

use gridfusion_core::{Error, Result};

use crate::grid::Grid;
use crate::region::Region;

/// The rule by which a region covers a cell. Tools differ here.
///
/// ```text
///   ┌────┬────┬────┐   Coverage   0.2  1.0  0.4    exactextract
///   │  ╭─┼────┼─╮  │   Centre     -    1.0  -      rasterio, regionmask, xvec's rasterize
///   └──┴─┴────┴─┴──┘   Touched    1.0  1.0  1.0    `all_touched`
/// ```
///
/// ```
/// use gridfusion_spatial::{Axis, AxisKind, CoverageRule, Grid, Region};
///
/// let y = Axis::new(AxisKind::Plane, &[0.5], Some(&[[0.0, 1.0]]))?;
/// let x = Axis::new(AxisKind::Plane, &[0.5, 1.5, 2.5], None)?;
/// let grid = Grid::new(y, x)?;
/// let region = Region::from_wkt("POLYGON ((0.75 0, 2.25 0, 2.25 1, 0.75 1, 0.75 0))")?;
/// for (rule, expected) in [
///     (CoverageRule::Coverage, vec![0.25, 1.0, 0.25]),
///     (CoverageRule::Centre, vec![1.0]),
///     (CoverageRule::Touched, vec![1.0, 1.0, 1.0]),
/// ] {
///     let fractions: Vec<f64> = grid.coverage(&region, rule)?.map(|it| it.fraction).collect();
///     assert_eq!(fractions, expected);
/// }
/// # Ok::<_, gridfusion_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CoverageRule {
    /// Each cell counts by the part of it that is inside, measured in the coordinates of the grid.
    Coverage,
    /// A cell counts wholly if its label is inside. The left and lower edges of a region belong to it, so
    /// that neighbours share no cell. A label on the edge of its cell stands for the cell's middle.
    Centre,
    /// A cell counts wholly if it shares any area with the region, beyond rounding. A common edge is none.
    Touched,
}

/// One cell that a region covers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CoveredCell {
    /// The row, in the order of the labels.
    pub row: usize,
    /// The column, in the order of the labels.
    pub column: usize,
    /// The part of the cell that is covered, above 0 and at most 1.
    pub fraction: f64,
}

/// Cells of one row with the same fraction.
#[derive(Debug, Clone, PartialEq)]
struct Run {
    columns: Range<usize>,
    fraction: f64,
}

/// The cells that a region covers, row by row.
///
/// It holds the cells at the region's edge only. Cells inside are made when they are asked for.
#[derive(Debug, Clone)]
pub struct Coverage {
    grid: Grid,
    rule: CoverageRule,
    crossed: Crossed,
    /// The runs of the row `row`, in the order of columns.
    runs: Vec<Run>,
    row: usize,
    /// The next run, and the next of its cells.
    next: (usize, usize),
}

/// Where the edges of the region are, by row and column.
#[derive(Debug, Clone)]
enum Crossed {
    Visits(rows::Visits),
    Centres(centres::Crossings),
}

impl Grid {
    /// Returns the cells that the region covers, by a rule: each cell once, rows and columns ascending.
    ///
    /// Fractions are exact up to rounding. The time grows with the points of the region and the cells
    /// that it covers. The memory grows with its points and the cells at its edge. On a geographic grid,
    /// longitudes from -360 to 720 are understood, whatever those of the grid are.
    pub fn coverage(&self, region: &Region, rule: CoverageRule) -> Result<Coverage> {
        if self.is_geographic() {
            check_degrees(region)?;
            region.check_turns()?;
        }
        let crossed = match rule {
            _ if self.y.is_empty() || self.x.is_empty() => Crossed::Visits(rows::Visits::default()),
            CoverageRule::Coverage | CoverageRule::Touched => {
                Crossed::Visits(rows::Visits::new(walk::visits(&self.lattice, region)))
            }
            CoverageRule::Centre => Crossed::Centres(centres::Crossings::new(self, region)),
        };
        Ok(Coverage { grid: self.clone(), rule, crossed, runs: Vec::new(), row: 0, next: (0, 0) })
    }
}

/// Checks that the coordinates can be longitudes and latitudes.
pub(crate) fn check_degrees(region: &Region) -> Result<()> {
    let [west, east] = crate::axis::LONGITUDES;
    // As much as single precision may be wrong.
    let outside = |[x, y]: &[f64; 2]| y.abs() > 90.0 + 1e-5 || !(west..=east).contains(x);
    match region.find(outside) {
        None => Ok(()),
        Some((ring, [x, y])) => Err(Error::usage(format!(
            "({x}, {y}) of {ring} is no longitude from {west} to {east} and latitude from -90 to 90: \
             the grid is one of degrees; is the region in other units, or are its coordinates swapped?"
        ))),
    }
}

impl Coverage {
    /// Makes the runs of the next row that has any.
    fn next_row(&mut self) -> bool {
        let lattice = &self.grid.lattice;
        let descending = self.grid.y.is_descending();
        loop {
            self.runs.clear();
            let row = match &mut self.crossed {
                Crossed::Visits(it) => it.next_row(lattice, descending, &mut self.runs),
                Crossed::Centres(it) => it.next_row(&self.grid, descending, &mut self.runs),
            };
            let Some(row) = row else { return false };
            self.row = self.grid.y.position(row);
            rows::to_columns(&mut self.runs, lattice.period, &self.grid.x);
            if let Some(first) = self.runs.first() {
                self.next = (0, first.columns.start);
                return true;
            }
        }
    }
}

impl Iterator for Coverage {
    type Item = CoveredCell;

    fn next(&mut self) -> Option<CoveredCell> {
        loop {
            let (run, column) = self.next;
            let Some(it) = self.runs.get(run) else {
                if self.next_row() {
                    continue;
                }
                return None;
            };
            if column < it.columns.end {
                self.next.1 += 1;
                let fraction = if self.rule == CoverageRule::Coverage { it.fraction } else { 1.0 };
                return Some(CoveredCell { row: self.row, column, fraction });
            }
            let start = self.runs.get(run + 1).map_or(0, |it| it.columns.start);
            self.next = (run + 1, start);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
