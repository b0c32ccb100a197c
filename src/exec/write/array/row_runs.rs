//! [`RowRuns`]: the cells of rows, as runs of rows whose labels have one number or numbers that follow one another.
//!
//! ```text
//!   time  0 0 0 0 0 0 1        runs of a dimension      0 ×6, 1
//!   lat   4 4 4 5 5 5 4                                 4 ×3, 5 ×3, 4
//!   lon   0 1 2 0 1 2 0                                 0 up ×3, 0 up ×3, 0
//!
//!   first cell   (0, 4, 0)  (0, 5, 0)  (1, 4, 0)        runs of rows
//!   rows                 3          3          1
//! ```
//!
//! Rows come in the order of an array, so its runs are mostly as long as its last dimension. They wait for the shape beside the values, and
//! take far less memory than a number per row and dimension.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, UInt32Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt32Type};
use datafusion::common::internal_err;
use datafusion::error::Result;

use super::labels::LabelRun;

/// Returns the schema of the runs of rows over `rank` dimensions: the numbers of the labels of the first row, and the number of rows.
pub(super) fn runs_schema(rank: usize) -> SchemaRef {
    let number = |name: String| Field::new(name, DataType::UInt32, false);
    let numbers = (0..rank).map(|axis| number(format!("#{axis}")));
    Arc::new(Schema::new(numbers.chain([number("rows".into())]).collect::<Vec<_>>()))
}

/// Returns the runs of rows whose labels have these runs, dimension by dimension.
pub(super) fn runs_of_rows(
    schema: &SchemaRef,
    labels: &[Arc<[LabelRun]>],
    rows: usize,
) -> Result<RecordBatch> {
    let last = labels.len() - 1;
    let mut columns = vec![vec![]; labels.len() + 1];
    let mut cursors: Vec<Cursor> = labels.iter().map(|runs| Cursor { runs, at: 0 }).collect();
    let mut row = 0;
    while row < rows {
        let mut end = rows;
        for (axis, cursor) in cursors.iter_mut().enumerate() {
            let Some((number, rows)) = cursor.advance(row, axis == last) else {
                return internal_err!("a row without a number of its label");
            };
            columns[axis].push(number);
            end = end.min(rows);
        }
        columns[last + 1].push((end - row) as u32);
        row = end;
    }
    let columns = columns.into_iter().map(|it| Arc::new(UInt32Array::from(it)) as ArrayRef);
    Ok(RecordBatch::try_new(Arc::clone(schema), columns.collect())?)
}

/// A position among the runs of a dimension.
struct Cursor<'a> {
    runs: &'a [LabelRun],
    at: usize,
}

impl Cursor<'_> {
    /// Goes to a row. Returns the number of its label, and the row before which a run of rows ends.
    fn advance(&mut self, row: usize, is_last: bool) -> Option<(u32, usize)> {
        let run = loop {
            let run = self.runs.get(self.at)?;
            if row < run.rows.end {
                break run;
            }
            self.at += 1;
        };
        let step = if run.ascends { (row - run.rows.start) as u32 } else { 0 };
        // Cells lie side by side if the last dimension ascends, and all others stay.
        let goes_on = run.ascends == is_last;
        Some((run.number + step, if goes_on { run.rows.end } else { row + 1 }))
    }
}

/// Rows whose cells lie side by side along the last dimension.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PlacedRun {
    /// The rows of the batch.
    pub(super) rows: Range<usize>,
    /// The index of the first cell along each dimension.
    pub(super) first: Vec<u64>,
}

/// The indices of the labels of each dimension.
pub(super) struct Places {
    /// Per dimension, the index of each number of a label.
    places: Vec<Vec<u64>>,
    /// Per number of the last dimension, the next number whose label does not follow that of the number before it.
    breaks: Vec<u32>,
}

impl Places {
    pub(super) fn new(places: Vec<Vec<u64>>) -> Self {
        let along = places.last().map_or(&[][..], Vec::as_slice);
        let mut breaks = vec![along.len() as u32; along.len()];
        for number in (1..along.len()).rev() {
            let follows = along[number] == along[number - 1] + 1;
            breaks[number - 1] = if follows { breaks[number] } else { number as u32 };
        }
        Self { places, breaks }
    }

    /// Returns where the rows of a batch are, in order. `rows` is their number.
    ///
    /// # Errors
    /// Internal errors only.
    pub(super) fn of_runs(&self, runs: &RecordBatch, rows: usize) -> Result<Vec<PlacedRun>> {
        let column = |at: usize| runs.column(at).as_primitive::<UInt32Type>().values();
        let (rank, last) = (self.places.len(), self.places.len() - 1);
        let mut placed = Vec::with_capacity(runs.num_rows());
        let mut row = 0;
        for run in 0..runs.num_rows() {
            let mut number = column(last)[run];
            let end = row + column(rank)[run] as usize;
            while row < end {
                let Some(after) = self.breaks.get(number as usize) else {
                    return internal_err!("label {number} of {}", self.breaks.len());
                };
                let len = (end - row).min((after - number) as usize);
                let first = (0..rank).map(|axis| match axis == last {
                    true => self.places[axis][number as usize],
                    false => self.places[axis][column(axis)[run] as usize],
                });
                placed.push(PlacedRun { rows: row..row + len, first: first.collect() });
                row += len;
                number += len as u32;
            }
        }
        match row == rows {
            true => Ok(placed),
            false => internal_err!("places of {row} of {rows} rows"),
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::super::labels::runs_of_numbers;
    use super::*;

    /// Every row is in one run, whose cells have its numbers, and lie side by side.
    #[test]
    fn runs_have_the_cells_of_rows() {
        let mut rng = StdRng::seed_from_u64(5);
        for turn in 0..2000 {
            let rank = 1 + turn % 4;
            let lens: Vec<u32> = (0..rank).map(|_| rng.random_range(1..5)).collect();
            let rows = rng.random_range(0..40);
            // Mostly the next cell, as in arrays.
            let mut cell = vec![0; rank];
            let cells: Vec<Vec<u32>> = (0..rows)
                .map(|_| {
                    for axis in (0..rank).rev() {
                        cell[axis] = (cell[axis] + 1) % lens[axis];
                        if cell[axis] > 0 {
                            break;
                        }
                    }
                    if rng.random_bool(0.1) {
                        let axis = rng.random_range(0..rank);
                        cell[axis] = rng.random_range(0..lens[axis]);
                    }
                    cell.clone()
                })
                .collect();
            let labels: Vec<Arc<[LabelRun]>> = (0..rank)
                .map(|axis| runs_of_numbers(&cells.iter().map(|it| it[axis]).collect::<Vec<_>>()))
                .collect();
            let runs = runs_of_rows(&runs_schema(rank), &labels, rows).unwrap();
            let places: Vec<Vec<u64>> = lens
                .iter()
                .map(|len| {
                    let mut places: Vec<u64> = (0..u64::from(*len)).collect();
                    let at = rng.random_range(0..places.len());
                    places.rotate_left(at);
                    places
                })
                .collect();
            let placed = Places::new(places.clone()).of_runs(&runs, rows).unwrap();
            let found = placed.iter().flat_map(|run| {
                let cell = |row: usize| {
                    let mut cell = run.first.clone();
                    *cell.last_mut().unwrap() += (row - run.rows.start) as u64;
                    cell
                };
                run.rows.clone().map(cell)
            });
            let expected = cells.iter().map(|cell| {
                cell.iter()
                    .zip(&places)
                    .map(|(number, at)| at[*number as usize])
                    .collect::<Vec<_>>()
            });
            assert!(found.eq(expected), "{cells:?} {places:?}");
        }
    }

    #[test]
    fn rows_in_order_have_a_run_per_line() {
        let lines = 6_u32;
        let labels: [Vec<u32>; 3] = [
            (0..24 * lines).map(|row| row / 72).collect(),
            (0..24 * lines).map(|row| row / 24 % 3).collect(),
            (0..24 * lines).map(|row| row % 24).collect(),
        ];
        let labels = labels.map(|numbers| runs_of_numbers(&numbers));
        let runs = runs_of_rows(&runs_schema(3), &labels, 24 * lines as usize).unwrap();
        assert_eq!(runs.num_rows(), lines as usize);
    }
}
