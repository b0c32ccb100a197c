//! Walks the rings of a region from cell to cell.
//!
//! In each cell, a walk leaves two numbers: how far it rose there (`cover`), and the area between the
//! cell's left edge and the walk (`area`). All cells to the right see the same rise:
//!
//! ```text
//!        left edge          right edge
//!           │  area   ╱         │               fraction of this cell = rise so far − area,
//!           │▒▒▒▒▒▒▒▒╱          │ ↑ cover       as parts of its height and size
//!           │▒▒▒▒▒▒▒╱           │
//! ```
//!
//! Walks that fall count negatively, so that holes and parts need no care. Cells own their left and lower
//! edges. A walk along an edge therefore leaves exact zeros.

use crate::grid::Lattice;
use crate::region::Region;

/// One stay of a walk in a cell, outside and inside the region being left and right of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Visit {
    /// The row of the lattice in the upper half, and the column in the lower, from 1. Column 0 is all
    /// that lies left of the grid.
    pub(super) cell: u64,
    pub(super) cover: f64,
    pub(super) area: f64,
}

/// So many visits are kept before those to the same cells are added up.
const MOST_VISITS: usize = if cfg!(test) { 64 } else { 1 << 22 };

/// Returns the visits of all rings to the rows of the lattice, in no order.
pub(super) fn visits(lattice: &Lattice, region: &Region) -> Vec<Visit> {
    let mut visits = Visits { visits: Vec::new(), most: MOST_VISITS };
    for (ring, points) in region.rings() {
        let Some(first) = points.first() else { continue };
        // A ring that turns left falls at its left side, where the running sum must rise.
        let mut walk = Walk::new(lattice, *first, -ring.sign, &mut visits);
        points[1..].iter().for_each(|it| walk.go_to(*it));
        walk.leave();
    }
    visits.visits
}

struct Visits {
    visits: Vec<Visit>,
    /// The number at which visits to the same cell become one, so that there are at most twice as many as
    /// cells.
    most: usize,
}

impl Visits {
    fn push(&mut self, visit: Visit) {
        if self.visits.len() >= self.most {
            self.visits.sort_unstable_by_key(|it| it.cell);
            self.visits.dedup_by(|next, sum| {
                let same = next.cell == sum.cell;
                if same {
                    sum.cover += next.cover;
                    sum.area += next.area;
                }
                same
            });
            self.most = MOST_VISITS.max(2 * self.visits.len());
        }
        self.visits.push(visit);
    }
}

struct Walk<'a> {
    lattice: &'a Lattice,
    visits: &'a mut Visits,
    sign: f64,
    /// The cell, and its edges.
    column: usize,
    row: usize,
    x: [f64; 2],
    y: [f64; 2],
    at: [f64; 2],
    /// The height at which the walk came into the cell, and twice the area since then.
    entered: f64,
    area: f64,
}

impl<'a> Walk<'a> {
    fn new(lattice: &'a Lattice, at: [f64; 2], sign: f64, visits: &'a mut Visits) -> Self {
        let (column, row) = (find(&lattice.x, 0, at[0]), find(&lattice.y, 0, at[1]));
        let x = [lattice.x[column], lattice.x[column + 1]];
        let y = [lattice.y[row], lattice.y[row + 1]];
        Self { lattice, visits, sign, column, row, x, y, at, entered: at[1], area: 0.0 }
    }

    fn go_to(&mut self, [x, y]: [f64; 2]) {
        if !(self.x[0] <= x && x < self.x[1] && self.y[0] <= y && y < self.y[1]) {
            self.cross([x, y]);
        }
        self.move_to([x, y]);
    }

    /// Crosses the edges of cells on the straight way to `end`, up to the cell of `end`.
    fn cross(&mut self, end: [f64; 2]) {
        let start = self.at;
        let column = find(&self.lattice.x, self.column, end[0]);
        let row = find(&self.lattice.y, self.row, end[1]);
        let [last_column, last_row] = [self.lattice.x.len() - 2, self.lattice.y.len() - 2];
        if (row == self.row && (row == 0 || row == last_row))
            || (column == self.column && column == last_column)
        {
            // A way above, below or right of the grid has no effect on cells.
            return self.jump(end, column, row);
        }
        let delta = [end[0] - start[0], end[1] - start[1]];
        loop {
            let side = (column != self.column).then(|| self.x[usize::from(column > self.column)]);
            let level = (row != self.row).then(|| self.y[usize::from(row > self.row)]);
            let height = side.map(|x| start[1] + (x - start[0]) / delta[0] * delta[1]);
            let side_first = match (height, level) {
                (None, None) => return,
                (Some(_), None) => true,
                (None, Some(_)) => false,
                (Some(height), Some(level)) => {
                    if row > self.row {
                        height < level
                    } else {
                        height > level
                    }
                }
            };
            match (side, height, level) {
                (Some(x), Some(height), _) if side_first => {
                    let height = between(height, self.at[1], end[1]).clamp(self.y[0], self.y[1]);
                    self.move_to([x, height]);
                    self.leave();
                    self.column =
                        if column > self.column { self.column + 1 } else { self.column - 1 };
                    self.x = [self.lattice.x[self.column], self.lattice.x[self.column + 1]];
                }
                (_, _, Some(y)) => {
                    let x = start[0] + (y - start[1]) / delta[1] * delta[0];
                    let x = between(x, self.at[0], end[0]).clamp(self.x[0], self.x[1]);
                    self.move_to([x, y]);
                    self.leave();
                    self.row = if row > self.row { self.row + 1 } else { self.row - 1 };
                    self.y = [self.lattice.y[self.row], self.lattice.y[self.row + 1]];
                }
                _ => return,
            }
        }
    }

    /// Goes on in another cell, without a trace of the way.
    fn jump(&mut self, to: [f64; 2], column: usize, row: usize) {
        self.leave();
        (self.column, self.row) = (column, row);
        self.x = [self.lattice.x[column], self.lattice.x[column + 1]];
        self.y = [self.lattice.y[row], self.lattice.y[row + 1]];
        (self.at, self.entered) = (to, to[1]);
    }

    /// Moves within the cell.
    fn move_to(&mut self, to: [f64; 2]) {
        self.area += (to[1] - self.at[1]) * ((to[0] - self.x[0]) + (self.at[0] - self.x[0]));
        self.at = to;
    }

    /// Ends the stay in the cell.
    fn leave(&mut self) {
        let (columns, rows) = (self.lattice.x.len() - 1, self.lattice.y.len() - 1);
        let seen = (1..rows - 1).contains(&self.row) && self.column < columns - 1;
        if seen {
            // Left of the grid the area is infinite, and has no use.
            let area = if self.column == 0 { 0.0 } else { self.area / 2.0 };
            let cell = (self.row as u64) << 32 | self.column as u64;
            let cover = self.sign * (self.at[1] - self.entered);
            self.visits.push(Visit { cell, cover, area: self.sign * area });
        }
        self.entered = self.at[1];
        self.area = 0.0;
    }
}

/// Returns `value`, or the nearest of the two ends if it is beyond them by rounding.
fn between(value: f64, a: f64, b: f64) -> f64 {
    value.max(a.min(b)).min(a.max(b))
}

/// Returns the cell whose half-open interval contains `value`, beginning at the cell `near`.
fn find(edges: &[f64], near: usize, value: f64) -> usize {
    for near in near.saturating_sub(1)..(near + 2).min(edges.len() - 1) {
        if edges[near] <= value && value < edges[near + 1] {
            return near;
        }
    }
    edges.partition_point(|it| *it <= value).clamp(1, edges.len() - 1) - 1
}
