//! [`SideArray`]: an array of the store that has a part of the rows' dimensions, such as bounds of times.
//!
//! ```text
//!   rows    time  lat   t2m   time_bnds              array   time_bnds (time, bnds)
//!              0   50   1.5   [0, 1]  ┐                            0  1
//!              0   60   2.5   [0, 1]  ┘ the same value
//!              1   50   3.5   [1, 2]                               1  2
//! ```
//!
//! Rows repeat its values, which must be the same for the same labels. A last dimension that rows do not have is a list in each of them.

use std::cmp::Ordering;
use std::ops::Range;

use arrow::array::{Array, ArrayRef, AsArray, UInt64Array, make_comparator, new_null_array};
use arrow::compute::{SortOptions, cast, interleave, take};
use arrow::datatypes::{DataType, FieldRef};
use arrow::util::display::array_value_to_string;
use gridfusion_core::array::failed_to;
use gridfusion_core::grid::unravel;
use gridfusion_core::write::{NewArray, NewChunk, NewVariable, for_each_row, lens};
use gridfusion_core::{Error, Result};

use super::object_cells::{NewCells, along};
use super::variable::{TargetVariable, plain};

/// An array that has a part of the rows' dimensions, and may have another one behind them.
#[derive(Debug)]
pub(super) struct SideArray {
    pub(super) variable: TargetVariable,
    /// The rows' axes that it has, in their order.
    axes: Vec<usize>,
    /// The values of a list, if it has another dimension.
    list: Option<u64>,
}

/// The values of a side array within the region that is written, as far as rows have told them.
#[derive(Debug)]
pub(super) struct SideCells {
    /// The indices along each of its axes.
    region: Vec<Range<u64>>,
    /// Values that rows have told; first a NULL.
    pieces: Vec<ArrayRef>,
    /// Per cell, its piece and the number there. The first piece stands for a cell that no row has told.
    told: Vec<(u32, u32)>,
}

impl SideArray {
    /// Makes a side array of a variable with these names of dimensions, among those of the rows.
    pub(super) fn new(variable: TargetVariable, names: &[String], rows: &[String]) -> Self {
        let axes: Vec<usize> =
            names.iter().filter_map(|name| rows.iter().position(|it| it == name)).collect();
        let list = variable.shape().get(axes.len()).copied();
        Self { variable, axes, list }
    }

    pub(super) fn name(&self) -> &str {
        self.variable.name()
    }

    /// Fails for a column whose values are of another kind.
    pub(super) fn check_column(&self, column: &NewVariable) -> Result<()> {
        let units = column.attributes.get("units");
        match (self.list, element(&column.data_type)) {
            (None, None) => self.variable.check_column(&column.data_type, units),
            (Some(_), Some(field)) => self.variable.check_column(field.data_type(), units),
            (Some(len), None) => Err(Error::usage(format!(
                "the column \"{0}\" is of type {1}, and the array has {len} values for each row; select a list of them, as in make_array(…) AS \"{0}\"",
                self.name(),
                column.data_type
            ))),
            (None, Some(_)) => Err(Error::usage(format!(
                "the column \"{}\" has lists, and the array has no dimension for their values",
                self.name()
            ))),
        }
    }

    /// Returns the values that rows have told of so far: none.
    pub(super) fn cells(&self, array: &NewArray) -> Result<SideCells> {
        let region: Vec<_> = self.axes.iter().map(|axis| array.region()[*axis].clone()).collect();
        let column = array.variables().iter().find(|it| it.name == self.name());
        let column = column.ok_or_else(|| Error::internal("an array without a column"))?;
        let len = lens(&region).iter().product::<u64>() as usize;
        let none = plain(&new_null_array(&column.data_type, 1))?;
        Ok(SideCells { region, pieces: vec![none], told: vec![(0, 0); len] })
    }

    /// Adds the values of a chunk's rows, whose indices are `ranges`.
    ///
    /// # Errors
    /// `Usage` if rows with the same labels have several values.
    pub(super) fn add(
        &self,
        cells: &mut SideCells,
        array: &NewArray,
        ranges: &[Range<u64>],
        chunk: &NewChunk,
    ) -> Result<()> {
        let failed = failed_to("compare values of rows");
        let new = plain(&chunk.cells)?;
        let places = self.places(cells, ranges);
        // A row without a value tells nothing: INSERT makes NULL of columns that it leaves out.
        let is_told = |at: &usize| {
            new.is_valid(*at) && chunk.given.as_ref().is_none_or(|given| given.is_valid(*at))
        };
        let rows: Vec<usize> = (0..places.len()).filter(is_told).collect();
        let (piece, mut first) = (cells.pieces.len() as u32, vec![]);
        for &row in &rows {
            let told = &mut cells.told[places[row]];
            if told.0 == 0 {
                *told = (piece, first.len() as u32);
                first.push(row as u64);
            }
        }
        if !first.is_empty() {
            cells.pieces.push(take(&new, &UInt64Array::from(first), None).map_err(&failed)?);
        }
        let known = cells.values(rows.iter().map(|row| places[*row]))?;
        let compared = make_comparator(&known, &new, SortOptions::default());
        let compared = compared.map_err(failed)?;
        let differs = |at: &usize| compared(*at, rows[*at]) != Ordering::Equal;
        let Some(at) = (0..rows.len()).find(differs) else { return Ok(()) };
        let text = |values: &ArrayRef, at| array_value_to_string(values, at).unwrap_or_default();
        Err(Error::usage(format!(
            "rows{} have {} and {} for \"{}\", of which the array has one value there",
            self.labels_of(array, &cells.region, places[rows[at]] as u64),
            text(&known, at),
            text(&new, rows[at]),
            self.name()
        )))
    }

    /// Returns for each cell of a box of rows the number of its value.
    fn places(&self, cells: &SideCells, ranges: &[Range<u64>]) -> Vec<usize> {
        let mut strides = vec![0; ranges.len()];
        let mut stride = 1;
        for (axis, range) in self.axes.iter().zip(&cells.region).rev() {
            strides[*axis] = stride;
            stride *= range.end - range.start;
        }
        let first = self.axes.iter().zip(&cells.region);
        let first: u64 = first.map(|(axis, range)| range.start * strides[*axis]).sum();
        let (along, step) = (along(ranges), strides.last().copied().unwrap_or_default());
        let mut places = vec![];
        for_each_row(ranges, |outer| {
            let row: u64 = outer.iter().zip(&strides).map(|(at, stride)| at * stride).sum();
            places.extend(along.clone().map(|at| (row + at * step - first) as usize));
        });
        places
    }

    /// Returns the cells to write: those of new labels, and those that rows have a value for. `None` if there are none. `longer` is the
    /// dimension that becomes longer, with its new indices.
    ///
    /// # Errors
    /// `Usage` for lists of another length.
    pub(super) fn new_cells(
        &self,
        cells: &SideCells,
        array: &NewArray,
        longer: Option<&(usize, Range<u64>)>,
    ) -> Result<Option<NewCells>> {
        let added = longer
            .and_then(|(axis, added)| Some((self.axes.iter().position(|own| own == axis)?, added)));
        let shape = lens(&cells.region);
        let is_written = |number: &u64| {
            let is_added = |(axis, added): &(usize, &Range<u64>)| {
                added.contains(&(cells.region[*axis].start + unravel(*number, &shape)[*axis]))
            };
            cells.told[*number as usize].0 > 0 || added.as_ref().is_some_and(is_added)
        };
        let numbers: Vec<u64> = (0..cells.told.len() as u64).filter(is_written).collect();
        if numbers.is_empty() {
            return Ok(None);
        }
        let taken = cells.values(numbers.iter().map(|number| *number as usize))?;
        let mut ranges = cells.region.clone();
        let (values, numbers) = match self.list {
            None => (taken, numbers),
            Some(len) => {
                let name = |at: usize| self.labels_of(array, &cells.region, numbers[at]);
                let values = self.values_of_lists(&taken, len, name)?;
                ranges.push(0..len);
                (values, numbers.iter().flat_map(|it| it * len..(it + 1) * len).collect())
            }
        };
        let cell = |at: usize| self.labels_of(array, &ranges, numbers[at]);
        let stored = self.variable.stored(&values, |at| format!("the value{}", cell(at)))?;
        Ok(Some(NewCells::new(ranges, stored, Some(numbers))))
    }

    /// Returns the values of lists of `len` values each; those of a NULL are NULL.
    fn values_of_lists(
        &self,
        lists: &ArrayRef,
        len: u64,
        name: impl Fn(usize) -> String,
    ) -> Result<ArrayRef> {
        let failed = failed_to("take lists apart");
        let Some(field) = element(lists.data_type()) else {
            return Ok(new_null_array(lists.data_type(), lists.len() * len as usize));
        };
        let lists = cast(lists, &DataType::LargeList(FieldRef::clone(field))).map_err(&failed)?;
        let lists = lists.as_list::<i64>();
        let mut at = Vec::with_capacity(lists.len() * len as usize);
        for row in 0..lists.len() {
            let found = lists.value_length(row) as u64;
            if lists.is_null(row) {
                at.extend((0..len).map(|_| None));
            } else if found == len {
                let first = lists.value_offsets()[row] as u64;
                at.extend((first..first + len).map(Some));
            } else {
                return Err(Error::usage(format!(
                    "the list \"{}\"{} has {found} values, and the array {len}",
                    self.name(),
                    name(row)
                )));
            }
        }
        take(lists.values(), &UInt64Array::from(at), None).map_err(failed)
    }

    /// Tells of which labels the value with a number in a box is, and its position in a list: ` of time=3`. Nothing for a single value.
    pub(super) fn labels_of(&self, array: &NewArray, ranges: &[Range<u64>], number: u64) -> String {
        let indices = unravel(number, &lens(ranges));
        let index = |axis: usize| ranges[axis].start + indices[axis];
        let label = |(own, axis): (usize, &usize)| {
            let dimension = &array.dimensions()[*axis];
            let label = array_value_to_string(&dimension.labels, index(own) as usize);
            format!("{}={}", dimension.name, label.unwrap_or_default())
        };
        let labels: Vec<String> = self.axes.iter().enumerate().map(label).collect();
        match (labels.is_empty(), ranges.len() > self.axes.len()) {
            (true, _) => String::new(),
            (false, false) => format!(" of {}", labels.join(", ")),
            (false, true) => {
                format!(
                    " of {}, number {} of its list,",
                    labels.join(", "),
                    index(self.axes.len()) + 1
                )
            }
        }
    }

    /// Returns the shape that the array is to have.
    pub(super) fn shape(&self, array: &NewArray) -> Vec<u64> {
        let shape = array.grid().shape();
        self.axes.iter().map(|axis| shape[*axis]).chain(self.list).collect()
    }
}

impl SideCells {
    /// The bytes of memory that it takes.
    pub(super) fn memory(&self) -> u64 {
        /// The bytes of a cell when all of them are written: where it was told, its number, and its value.
        const OF_CELL: usize = 32;
        let pieces: usize = self.pieces.iter().map(|it| it.get_array_memory_size()).sum();
        (pieces + OF_CELL * self.told.len()) as u64
    }

    /// Returns the values of cells with these numbers.
    fn values(&self, numbers: impl Iterator<Item = usize>) -> Result<ArrayRef> {
        let pieces: Vec<&dyn Array> = self.pieces.iter().map(|it| it.as_ref()).collect();
        let at = numbers.map(|number| self.told[number]);
        let at: Vec<(usize, usize)> =
            at.map(|(piece, cell)| (piece as usize, cell as usize)).collect();
        interleave(&pieces, &at).map_err(failed_to("choose values"))
    }
}

/// Returns the field of a list's values; `None` for other types.
fn element(data_type: &DataType) -> Option<&FieldRef> {
    match data_type {
        DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
            Some(field)
        }
        _ => None,
    }
}
