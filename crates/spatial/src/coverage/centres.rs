//! Runs of cells whose centre lies inside a region.
//!
//! Each row is a line through its centres. The edges of the region cut it into pieces that are outside
//! and inside in turn, and a piece contains its left end. Rows are cut in bands, so that few pieces are in
//! memory at a time.

use std::ops::Range;

use super::Run;
use super::rows::take_row;
use crate::grid::Grid;
use crate::region::Region;

/// A band ends when it has this many crossings.
const BAND: usize = if cfg!(test) { 16 } else { 1 << 20 };

/// Where edges cross the lines through the centres of rows.
#[derive(Debug, Clone)]
pub(super) struct Crossings {
    /// The centres of rows, ascending.
    centres: Vec<f64>,
    /// The edges of the region that cross any row, each from below, and those rows.
    edges: Vec<([[f64; 2]; 2], Range<usize>)>,
    /// How many edges cross each row.
    counts: Vec<usize>,
    /// The rows whose crossings are not yet made.
    rest: Range<usize>,
    /// The crossings of a band by row and x, and those of its rows that are not done.
    band: Vec<(u32, f64)>,
    left: Range<usize>,
}

impl Crossings {
    pub(super) fn new(grid: &Grid, region: &Region) -> Self {
        let centres: Vec<f64> = (0..grid.y.len()).map(|it| grid.y.centre(it)).collect();
        let mut edges = Vec::new();
        let mut changes = vec![0isize; centres.len() + 1];
        for pair in region.rings().flat_map(|(_, points)| points.windows(2)) {
            // From below, so that neighbours with the same edge cross at the same place.
            let (low, high) =
                if pair[0][1] <= pair[1][1] { (pair[0], pair[1]) } else { (pair[1], pair[0]) };
            let rows = [low[1], high[1]].map(|y| centres.partition_point(|it| *it < y));
            if rows[0] < rows[1] {
                edges.push(([low, high], rows[0]..rows[1]));
                changes[rows[0]] += 1;
                changes[rows[1]] -= 1;
            }
        }
        let mut count = 0;
        let counts = changes.iter().take(centres.len()).map(|it| {
            count += it;
            count as usize
        });
        let counts: Vec<usize> = counts.collect();
        let rest = 0..centres.len();
        Self { centres, edges, counts, rest, band: Vec::new(), left: 0..0 }
    }

    /// Appends the runs of the next row, in columns of the lattice, and returns the row.
    pub(super) fn next_row(
        &mut self,
        grid: &Grid,
        descending: bool,
        runs: &mut Vec<Run>,
    ) -> Option<usize> {
        while self.left.is_empty() {
            self.next_band(descending)?;
        }
        let (row, crossings) =
            take_row(&self.band, &mut self.left, descending, |it| u64::from(it.0))?;
        for pair in crossings.chunks_exact(2) {
            let columns = first_from(grid, pair[0].1)..first_from(grid, pair[1].1);
            if !columns.is_empty() {
                runs.push(Run { columns, fraction: 1.0 });
            }
        }
        Some(row as usize)
    }

    /// Makes the crossings of the next rows; `None` if no row is left.
    fn next_band(&mut self, descending: bool) -> Option<()> {
        let mut size = 0;
        let mut fits = |row: &usize| {
            size += self.counts[*row];
            size <= BAND
        };
        let rows = self.rest.clone();
        let count = if descending {
            rows.rev().take_while(&mut fits).count()
        } else {
            rows.take_while(&mut fits).count()
        };
        // One row at least.
        let count = count.max(1).min(self.rest.len());
        let band = if descending {
            self.rest.end - count..self.rest.end
        } else {
            self.rest.start..self.rest.start + count
        };
        if band.is_empty() {
            return None;
        }
        self.rest = if descending { self.rest.start..band.start } else { band.end..self.rest.end };
        self.band.clear();
        for ([low, high], rows) in &self.edges {
            for row in rows.start.max(band.start)..rows.end.min(band.end) {
                let part = (self.centres[row] - low[1]) / (high[1] - low[1]);
                self.band.push((row as u32, low[0] + part * (high[0] - low[0])));
            }
        }
        self.band.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        self.left = 0..self.band.len();
        Some(())
    }
}

/// Returns the first column of the lattice whose centre is `x` or right of it.
fn first_from(grid: &Grid, x: f64) -> usize {
    let edges = &grid.lattice.x[1..grid.lattice.x.len() - 1];
    let column = edges.partition_point(|it| *it <= x).saturating_sub(1);
    if column + 1 >= edges.len() || x <= edges[0] {
        return column;
    }
    let (turn, of_turn) = (column / grid.lattice.period, column % grid.lattice.period);
    let centre = if of_turn < grid.x.len() {
        grid.x.centre(of_turn) + (edges[turn * grid.lattice.period] - grid.x.edges()[0])
    } else {
        edges[column]
    };
    column + usize::from(centre < x)
}
