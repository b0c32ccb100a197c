//! [`OldCells`]: the cells of an array that is there, of which rows change some.
//!
//! ```text
//!   tile          old old old old        rows   a  b        new fragment   old a  b  old
//!   of the box    old old old old                                          old old old old
//! ```
//!
//! A dense fragment has all cells of a box. So those that no row changes are read, and written again.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Scalar, UInt64Array};
use arrow::buffer::NullBuffer;
use arrow::compute::kernels::cmp::{eq, not_distinct};
use arrow::compute::{cast, concat, nullif, take};
use arrow::datatypes::DataType;
use futures::TryStreamExt;
use gridfusion_core::array::{GridArray, failed_to};
use gridfusion_core::grid::{AxisSelection, Selection};
use gridfusion_core::read::ArrayReader;
use gridfusion_core::write::{BadCell, ChangedCells, ExistingCells, for_each_row, lens};
use gridfusion_core::{Error, Result};
use tokio::runtime::Handle;

use super::cell_type::CellType;

/// The reason for a cell that is there with another value.
const OTHER_VALUE: &str = "the array has another value";

/// The cells of an array, and those of them that change.
#[derive(Debug)]
pub(super) struct OldCells {
    array: Arc<GridArray>,
    changed: ChangedCells,
    /// The variables that the rows have a column for: the first ones.
    pub(super) columns: usize,
}

/// The cells of a tile that rows have, with a mark for each that one has.
pub(super) struct RowCells<'a> {
    pub(super) cells: &'a ArrayRef,
    pub(super) given: Option<&'a NullBuffer>,
    /// Whether the rows have a column for the variable; without one, all of its cells stay.
    pub(super) has_column: bool,
}

/// The source of a cell.
enum Source {
    Row(u64),
    Old(u64),
}

impl OldCells {
    pub(super) fn new(array: Arc<GridArray>, changed: ChangedCells, columns: usize) -> Self {
        Self { array, changed, columns }
    }

    /// Returns the cells of a part of a tile, with these ranges of indices: those of rows, and all others as they are. `name` is the
    /// variable's, and `fill` the value that stands for NULL although the column shows it.
    ///
    /// # Errors
    /// The first cell of a row that cannot be stored, or that has another value and must not change. Otherwise errors of reading.
    pub(super) fn merged(
        &self,
        name: &str,
        cell: &CellType,
        fill: Option<&ArrayRef>,
        ranges: &[Range<u64>],
        rows: &RowCells<'_>,
        runtime: &Handle,
    ) -> Result<std::result::Result<ArrayRef, BadCell>> {
        let numbers = match rows.has_column {
            true => self.changed.numbers(ranges, rows.given),
            false => Some(vec![]),
        };
        let is_compared = self.changed.existing() == ExistingCells::Same;
        let cells = match cell.shown_exactly(rows.cells)? {
            Ok(cells) => cells,
            Err(bad) => return Ok(Err(bad)),
        };
        if numbers.is_none() && !is_compared {
            return Ok(Ok(cells));
        }
        let (sources, both) = self.sources(ranges, numbers.as_deref());
        let old_ranges = self.old_ranges(ranges);
        let old = match lens(&old_ranges).contains(&0) {
            true => cells.slice(0, 0),
            false => runtime.block_on(self.read(name, &old_ranges, cells.data_type()))?,
        };
        if is_compared && let Some(at) = other_value(&cells, &old, &both)? {
            return Ok(Err(BadCell { at, reason: OTHER_VALUE }));
        }
        let failed = failed_to("put cells together");
        let old = match fill {
            None => old,
            Some(fill) => {
                let fill = cast(fill, old.data_type()).map_err(&failed)?;
                let is_fill = eq(&old, &Scalar::new(fill)).map_err(&failed)?;
                nullif(&old, &is_fill).map_err(&failed)?
            }
        };
        let behind = cells.len() as u64;
        let all = concat(&[cells.as_ref(), old.as_ref()]).map_err(&failed)?;
        let at = sources.into_iter().map(|source| match source {
            Source::Row(at) => at,
            Source::Old(at) => behind + at,
        });
        take(&all, &UInt64Array::from_iter_values(at), None).map_err(failed).map(Ok)
    }

    /// The part of a box that is in the array already.
    fn old_ranges(&self, ranges: &[Range<u64>]) -> Vec<Range<u64>> {
        let old = ranges.iter().zip(self.array.grid().shape());
        old.map(|(range, len)| range.start.min(*len)..range.end.min(*len)).collect()
    }

    /// Returns the source of each cell, and the cells of rows that are old ones, too: the number in the box, and among the old cells.
    fn sources(
        &self,
        ranges: &[Range<u64>],
        numbers: Option<&[u64]>,
    ) -> (Vec<Source>, Vec<(u64, u64)>) {
        let old = self.old_ranges(ranges);
        let counts = lens(&old);
        let (mut sources, mut both) = (vec![], vec![]);
        let mut changed = numbers.map(|numbers| numbers.iter().copied().peekable());
        let mut number = 0;
        for_each_row(ranges, |outer| {
            // The number of the row's first old cell.
            let axes = outer.iter().zip(&old).zip(&counts);
            let row = axes
                .clone()
                .all(|((at, range), _)| range.contains(at))
                .then(|| axes.fold(0, |row, ((at, range), len)| row * len + (at - range.start)));
            let (along, of_old) = (&ranges[ranges.len() - 1], &old[old.len() - 1]);
            for at in along.clone() {
                let is_old = row.filter(|_| of_old.contains(&at));
                let is_old = is_old.map(|row| row * counts[counts.len() - 1] + (at - of_old.start));
                let is_changed = changed.as_mut().is_none_or(|it| it.next_if_eq(&number).is_some());
                sources.push(match (is_changed, is_old) {
                    (false, Some(old)) => Source::Old(old),
                    _ => Source::Row(number),
                });
                both.extend(is_old.filter(|_| is_changed).map(|old| (number, old)));
                number += 1;
            }
        });
        (sources, both)
    }

    /// Reads the cells of a part of a tile.
    async fn read(
        &self,
        name: &str,
        ranges: &[Range<u64>],
        data_type: &DataType,
    ) -> Result<ArrayRef> {
        let mut selection = Selection::all(self.array.grid().shape());
        for (axis, range) in ranges.iter().enumerate() {
            let len = self.array.grid().shape()[axis];
            selection.restrict(axis, &AxisSelection::from_range(len, range.clone()));
        }
        let reader = ArrayReader::of_selection(Arc::clone(&self.array), selection);
        let batches: Vec<_> = reader.with_columns(&[name])?.batches().try_collect().await?;
        let columns: Vec<&dyn Array> = batches.iter().map(|it| it.column(0).as_ref()).collect();
        let failed = failed_to("put cells together");
        let cells = concat(&columns).map_err(&failed)?;
        let expected = lens(ranges).iter().product::<u64>();
        if cells.len() as u64 != expected {
            let message = format!("{} cells of a box of {expected}", cells.len());
            return Err(Error::internal(message));
        }
        cast(&cells, data_type).map_err(failed)
    }
}

/// Returns the number of the first cell of a row that differs from the old one.
fn other_value(new: &ArrayRef, old: &ArrayRef, both: &[(u64, u64)]) -> Result<Option<usize>> {
    let failed = failed_to("compare cells");
    let (of_new, of_old): (Vec<u64>, Vec<u64>) = both.iter().copied().unzip();
    let [new, old] = [(new, &of_new), (old, &of_old)]
        .map(|(cells, at)| take(cells, &UInt64Array::from(at.clone()), None));
    let same = not_distinct(&new.map_err(&failed)?, &old.map_err(&failed)?).map_err(failed)?;
    Ok((0..same.len()).find(|at| !same.value(*at)).map(|at| of_new[at] as usize))
}
