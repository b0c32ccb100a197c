//! Runs of cells whose centre lies inside a region.
//!
//! Each row is a line through its centres. The edges of the region cut it into pieces that are outside
//! and inside in turn, and a piece contains its left end.

use super::Run;
use crate::axis::Axis;
use crate::grid::Grid;
use crate::region::Region;

/// Where edges cross the lines through the centres of rows.
#[derive(Debug, Clone)]
pub(super) struct Crossings {
    /// Ascending positions of rows, and x within each.
    crossings: Vec<(u32, f64)>,
    start: usize,
    end: usize,
}

impl Crossings {
    pub(super) fn new(grid: &Grid, region: &Region) -> Self {
        let centres: Vec<f64> = (0..grid.y.len()).map(|it| grid.y.centre(it)).collect();
        let mut crossings = Vec::new();
        for pair in region.rings().flat_map(|(_, points)| points.windows(2)) {
            // From below, so that neighbours with the same edge cross at the same place.
            let (low, high) =
                if pair[0][1] <= pair[1][1] { (pair[0], pair[1]) } else { (pair[1], pair[0]) };
            let first = centres.partition_point(|it| *it < low[1]);
            for (row, y) in (first..).zip(&centres[first..]).take_while(|it| *it.1 < high[1]) {
                let x = low[0] + (y - low[1]) / (high[1] - low[1]) * (high[0] - low[0]);
                crossings.push((row as u32, x));
            }
        }
        crossings.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let end = crossings.len();
        Self { crossings, start: 0, end }
    }

    /// Appends the runs of the next row, in columns of the lattice, and returns the row.
    pub(super) fn next_row(
        &mut self,
        grid: &Grid,
        descending: bool,
        runs: &mut Vec<Run>,
    ) -> Option<usize> {
        let rest = &self.crossings[self.start..self.end];
        let row = if descending { rest.last()? } else { rest.first()? }.0;
        let of_row = if descending {
            let start = rest.partition_point(|it| it.0 < row);
            self.end = self.start + start;
            &rest[start..]
        } else {
            let end = rest.partition_point(|it| it.0 <= row);
            self.start += end;
            &rest[..end]
        };
        for pair in of_row.chunks_exact(2) {
            let columns = first_from(grid, pair[0].1)..first_from(grid, pair[1].1);
            if !columns.is_empty() {
                runs.push(Run { columns, fraction: 1.0 });
            }
        }
        Some(row as usize)
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
        centre_in(&grid.x, of_turn, edges[turn * grid.lattice.period])
    } else {
        edges[column]
    };
    column + usize::from(centre < x)
}

/// Returns the centre of a column, in the turn that begins at the edge `start`.
fn centre_in(axis: &Axis, column: usize, start: f64) -> f64 {
    axis.centre(column) + (start - axis.edges()[0])
}
