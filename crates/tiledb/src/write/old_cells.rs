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

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Scalar, UInt64Array};
use arrow::buffer::NullBuffer;
use arrow::compute::kernels::cmp::{eq, not_distinct};
use arrow::compute::kernels::zip::zip;
use arrow::compute::{cast, concat, is_not_null, nullif, take};
use arrow::datatypes::{DataType, Float64Type};
use futures::TryStreamExt;
use gridfusion_core::array::{GridArray, failed_to};
use gridfusion_core::grid::{AxisSelection, Selection};
use gridfusion_core::read::ArrayReader;
use gridfusion_core::write::{BadCell, ChangedCells, ExistingCells, for_each_row, lens};
use gridfusion_core::{Error, Result};
use tokio::runtime::Handle;

use super::cell_type::CellType;
use super::tile::Nulls;

/// The reason for a cell that is there with another value.
const OTHER_VALUE: &str = "the array has another value";
/// The reason for a cell that has the fill value, while NULL of another row is stored as this value.
const IS_FILL: &str = "it has the fill value, as which NULL of another row would be stored";

/// The cells of an array, and those of them that change.
#[derive(Debug)]
pub(super) struct OldCells {
    /// The array as queries show it.
    array: Arc<GridArray>,
    /// The same with NaN as values, which are no NULL where the array has validity.
    with_nan: Arc<GridArray>,
    changed: ChangedCells,
    /// The variables that the rows have a column for: the first ones.
    pub(super) columns: usize,
    /// Whether rows of chunks come in the order of their coordinates.
    pub(super) is_in_order: bool,
}

/// The cells of a tile that rows have, with a mark for each that one has.
pub(super) struct RowCells<'a> {
    pub(super) cells: &'a ArrayRef,
    pub(super) given: Option<&'a NullBuffer>,
    /// Whether the rows have a column for the variable; without one, all of its cells stay.
    pub(super) has_column: bool,
}

/// The sources of the cells of a box.
struct Sources {
    /// The number of each cell among those of the rows, followed by the old ones.
    at: Vec<u64>,
    /// The cells of rows that are compared with old ones: the number in the box, and among the old cells.
    both: Vec<(u64, u64)>,
}

impl OldCells {
    pub(super) fn new(
        [array, with_nan]: [Arc<GridArray>; 2],
        changed: ChangedCells,
        columns: usize,
        is_in_order: bool,
    ) -> Self {
        Self { array, with_nan, changed, columns, is_in_order }
    }

    /// Returns the cells of a part of a tile, with these ranges of indices: those of rows, and all others as they are. `name` is the
    /// variable's.
    ///
    /// # Errors
    /// The first cell of a row that cannot be stored, or that has another value and must not change. Otherwise errors of reading.
    pub(super) fn merged(
        &self,
        name: &str,
        cell: &CellType,
        nulls: &Nulls,
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
        let behind = cells.len() as u64;
        let Sources { at, both } = self.sources(ranges, numbers.as_deref(), behind);
        let old_ranges = self.old_ranges(ranges);
        let old = match lens(&old_ranges).contains(&0) {
            true => cells.slice(0, 0),
            false => {
                let keeps_nan = cells.data_type().is_floating() && matches!(nulls, Nulls::Validity);
                let array = if keeps_nan { &self.with_nan } else { &self.array };
                runtime.block_on(read(array, name, &old_ranges, cells.data_type()))?
            }
        };
        let mark = match nulls {
            Nulls::Value(mark) | Nulls::Fill(mark) => Some(mark),
            Nulls::Validity | Nulls::Refused => None,
        };
        if is_compared && let Some(at) = other_value(&cells, &old, mark, &both)? {
            return Ok(Err(BadCell { at, reason: OTHER_VALUE }));
        }
        let cells = match nulls {
            Nulls::Fill(fill) => match with_fill(&cells, fill, numbers.as_deref())? {
                Ok(cells) => cells,
                Err(bad) => return Ok(Err(bad)),
            },
            _ => cells,
        };
        let failed = failed_to("put cells together");
        let all = concat(&[cells.as_ref(), old.as_ref()]).map_err(&failed)?;
        take(&all, &UInt64Array::from(at), None).map_err(failed).map(Ok)
    }

    /// The part of a box that is in the array already.
    fn old_ranges(&self, ranges: &[Range<u64>]) -> Vec<Range<u64>> {
        let old = ranges.iter().zip(self.array.grid().shape());
        old.map(|(range, len)| range.start.min(*len)..range.end.min(*len)).collect()
    }

    /// Finds the sources of cells: old ones lie `behind` as many cells as the rows have.
    fn sources(&self, ranges: &[Range<u64>], numbers: Option<&[u64]>, behind: u64) -> Sources {
        let old = self.old_ranges(ranges);
        let counts = lens(&old);
        let is_compared = self.changed.existing() == ExistingCells::Same;
        let mut sources = Sources { at: Vec::with_capacity(behind as usize), both: vec![] };
        let mut changed = numbers.map(|numbers| numbers.iter().copied().peekable());
        let mut number = 0;
        for_each_row(ranges, |outer| {
            // The number of the row's first old cell.
            let axes = outer.iter().zip(&old).zip(&counts);
            let is_old = axes.clone().all(|((at, range), _)| range.contains(at));
            let row = is_old.then(|| {
                axes.fold(0, |row, ((at, range), len)| row * len + (at - range.start))
                    * counts[counts.len() - 1]
            });
            let (along, of_old) = (&ranges[ranges.len() - 1], &old[old.len() - 1]);
            for at in along.clone() {
                let old = row.filter(|_| of_old.contains(&at)).map(|row| row + at - of_old.start);
                let is_changed = changed.as_mut().is_none_or(|it| it.next_if_eq(&number).is_some());
                sources.at.push(match (is_changed, old) {
                    (false, Some(old)) => behind + old,
                    _ => number,
                });
                sources
                    .both
                    .extend(old.filter(|_| is_changed && is_compared).map(|old| (number, old)));
                number += 1;
            }
        });
        sources
    }
}

/// Reads the cells of a part of a tile.
async fn read(
    array: &Arc<GridArray>,
    name: &str,
    ranges: &[Range<u64>],
    data_type: &DataType,
) -> Result<ArrayRef> {
    let shape = array.grid().shape();
    let mut selection = Selection::all(shape);
    for (axis, range) in ranges.iter().enumerate() {
        selection.restrict(axis, &AxisSelection::from_range(shape[axis], range.clone()));
    }
    let reader = ArrayReader::of_selection(Arc::clone(array), selection);
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

/// Returns the number of the first cell of a row that differs from the old one. NaN is NULL, and so is the value that marks it.
fn other_value(
    new: &ArrayRef,
    old: &ArrayRef,
    mark: Option<&ArrayRef>,
    both: &[(u64, u64)],
) -> Result<Option<usize>> {
    let failed = failed_to("compare cells");
    let (of_new, of_old): (Vec<u64>, Vec<u64>) = both.iter().copied().unzip();
    let taken = [(new, &of_new), (old, &of_old)].map(|(cells, at)| {
        let cells = take(cells, &UInt64Array::from(at.clone()), None).map_err(&failed)?;
        as_null(cells, mark)
    });
    let [new, old] = taken;
    let same = not_distinct(&new?, &old?).map_err(&failed)?;
    Ok((0..same.len()).find(|at| !same.value(*at)).map(|at| of_new[at] as usize))
}

/// Returns cells with NULL in the place of NaN, or of the value that marks it.
fn as_null(cells: ArrayRef, mark: Option<&ArrayRef>) -> Result<ArrayRef> {
    let failed = failed_to("compare cells");
    let marks = if cells.data_type().is_floating() {
        let doubles = cast(&cells, &DataType::Float64).map_err(&failed)?;
        BooleanArray::from_unary(doubles.as_primitive::<Float64Type>(), f64::is_nan)
    } else if let Some(mark) = mark {
        let mark = cast(mark, cells.data_type()).map_err(&failed)?;
        eq(&cells, &Scalar::new(mark)).map_err(&failed)?
    } else {
        return Ok(cells);
    };
    nullif(&cells, &marks).map_err(failed)
}

/// Returns the cells of rows with the fill value in the place of NULL, or the first one that is no NULL and has it.
fn with_fill(
    cells: &ArrayRef,
    fill: &ArrayRef,
    numbers: Option<&[u64]>,
) -> Result<std::result::Result<ArrayRef, BadCell>> {
    let failed = failed_to("store cells");
    let changed: Vec<u64> =
        numbers.map_or_else(|| (0..cells.len() as u64).collect(), <[u64]>::to_vec);
    let of_rows = take(cells, &UInt64Array::from(changed.clone()), None).map_err(&failed)?;
    if of_rows.null_count() == 0 {
        return Ok(Ok(ArrayRef::clone(cells)));
    }
    let fill = Scalar::new(cast(fill, cells.data_type()).map_err(&failed)?);
    let is_fill = eq(&of_rows, &fill).map_err(&failed)?;
    if let Some(at) = (0..is_fill.len()).find(|at| is_fill.is_valid(*at) && is_fill.value(*at)) {
        return Ok(Err(BadCell { at: changed[at] as usize, reason: IS_FILL }));
    }
    let known = is_not_null(cells).map_err(&failed)?;
    zip(&known, cells, &fill).map_err(failed).map(Ok)
}
