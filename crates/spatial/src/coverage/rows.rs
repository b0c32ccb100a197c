//! Runs of covered cells in each row.

use std::ops::Range;

use super::Run;
use super::walk::Visit;
use crate::axis::Axis;
use crate::grid::Lattice;

/// Fractions that the rounding of one row may hide; the least that must be exact is a thousand millionth.
const MOST_ROUNDING: f64 = 1e-10;

/// The visits of a region to the cells at its edge, by row.
#[derive(Debug, Clone, Default)]
pub(super) struct Visits {
    /// Sorted by row and column.
    visits: Vec<Visit>,
    /// The visits of the rows that are not done.
    left: Range<usize>,
}

impl Visits {
    pub(super) fn new(mut visits: Vec<Visit>) -> Self {
        visits.sort_unstable_by_key(|it| it.cell);
        let left = 0..visits.len();
        Self { visits, left }
    }

    /// Appends the runs of the next row, in columns of the lattice, and returns the row.
    pub(super) fn next_row(
        &mut self,
        lattice: &Lattice,
        descending: bool,
        runs: &mut Vec<Run>,
    ) -> Option<usize> {
        let (row, visits) = take_row(&self.visits, &mut self.left, descending, |it| it.cell >> 32)?;
        let row = row as usize;
        push_runs(visits, lattice, lattice.y[row + 1] - lattice.y[row], runs);
        Some(row - 1)
    }
}

/// Takes the items of the first row that is left, or of the last one, from items sorted by row.
pub(super) fn take_row<'a, T>(
    items: &'a [T],
    left: &mut Range<usize>,
    descending: bool,
    row_of: impl Fn(&T) -> u64,
) -> Option<(u64, &'a [T])> {
    let rest = &items[left.clone()];
    let row = row_of(if descending { rest.last()? } else { rest.first()? });
    Some((
        row,
        if descending {
            let start = rest.partition_point(|it| row_of(it) < row);
            left.end = left.start + start;
            &rest[start..]
        } else {
            let end = rest.partition_point(|it| row_of(it) <= row);
            left.start += end;
            &rest[..end]
        },
    ))
}

/// Sums up the visits of one row from left to right.
fn push_runs(visits: &[Visit], lattice: &Lattice, height: f64, runs: &mut Vec<Run>) {
    // A sum of n numbers is wrong by at most n roundings of the sum of their sizes.
    let sizes: f64 = visits.iter().map(|it| it.cover.abs()).sum();
    let rounding = (f64::EPSILON * visits.len() as f64 * sizes / height).min(MOST_ROUNDING);
    let mut push = |columns: Range<usize>, fraction: f64| {
        if !columns.is_empty() && fraction > rounding {
            let fraction = if fraction > 1.0 - rounding { 1.0 } else { fraction };
            // Column 0 is left of the grid.
            runs.push(Run { columns: columns.start - 1..columns.end - 1, fraction });
        }
    };
    let mut risen = 0.0;
    let mut next = 1;
    for of_cell in visits.chunk_by(|a, b| a.cell == b.cell) {
        let column = of_cell[0].cell as u32 as usize;
        if column > 0 {
            push(next..column, inside(risen, height));
        }
        risen += of_cell.iter().map(|it| it.cover).sum::<f64>();
        if column > 0 {
            let width = lattice.x[column + 1] - lattice.x[column];
            let area = of_cell.iter().map(|it| it.area).sum::<f64>();
            push(column..column + 1, (risen - area / width) / height);
        }
        next = column + 1;
    }
    push(next..lattice.x.len() - 2, inside(risen, height));
}

/// Returns whether the cells between two visits are inside, as 1 or 0.
fn inside(risen: f64, height: f64) -> f64 {
    if risen > height / 2.0 { 1.0 } else { 0.0 }
}

/// Turns ascending runs of the lattice into those of the grid's columns, in their order.
pub(super) fn to_columns(runs: &mut Vec<Run>, period: usize, axis: &Axis) {
    let (Some(first), Some(last)) = (runs.first(), runs.last()) else { return };
    let turn = first.columns.start / period;
    if turn == (last.columns.end - 1) / period {
        for run in runs.iter_mut() {
            run.columns = run.columns.start - turn * period..run.columns.end - turn * period;
        }
    } else {
        *runs = merged(split(runs, period));
    }
    // The last column of a turn is the rest of the circle, unless the grid goes around it.
    runs.retain_mut(|run| {
        run.columns.end = run.columns.end.min(axis.len());
        !run.columns.is_empty()
    });
    if axis.is_descending() {
        runs.reverse();
        for run in runs {
            run.columns = axis.len() - run.columns.end..axis.len() - run.columns.start;
        }
    }
}

/// Cuts runs where the circle closes, and sorts them by column.
fn split(runs: &[Run], period: usize) -> Vec<Run> {
    let mut parts = Vec::with_capacity(runs.len() + 1);
    for run in runs {
        let mut start = run.columns.start;
        while start < run.columns.end {
            let turn = start / period * period;
            let end = run.columns.end.min(turn + period);
            parts.push(Run { columns: start - turn..end - turn, fraction: run.fraction });
            start = end;
        }
    }
    parts.sort_by_key(|it| (it.columns.start, std::cmp::Reverse(it.columns.end)));
    parts
}

/// Adds up the fractions of cells that the region covers from both sides of where the circle closes.
fn merged(parts: Vec<Run>) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::with_capacity(parts.len());
    for mut part in parts {
        if let Some(last) = runs.last_mut() {
            if last.columns == part.columns {
                last.fraction = (last.fraction + part.fraction).min(1.0);
                continue;
            }
            // Only rounding makes other runs overlap, and longer ones are full.
            part.columns.start = part.columns.start.max(last.columns.end);
        }
        if part.columns.start < part.columns.end {
            runs.push(part);
        }
    }
    runs
}
