//! [`NewArray`]: the description of an array that is about to be written.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use arrow::array::{Array, ArrayRef};
use arrow::buffer::NullBuffer;
use arrow::datatypes::DataType;
use arrow::util::display::array_value_to_string;
use object_store::path::PathPart;
use serde_json::Value;

use super::{BadCell, StoredType};
use crate::error::{Error, Result};
use crate::grid::{ChunkGrid, unravel};

/// Attributes by name, as a format stores them.
pub type Attributes = BTreeMap<String, Value>;

/// A dimension of a new array.
#[derive(Debug, Clone)]
pub struct NewDimension {
    /// The name of the dimension, and of the variable of its labels.
    pub name: String,
    /// A label per index, none of which is NULL.
    pub labels: ArrayRef,
    /// The attributes of the labels.
    pub attributes: Attributes,
}

/// A variable of a new array, over all of its dimensions.
#[derive(Debug, Clone)]
pub struct NewVariable {
    /// The name of the variable.
    pub name: String,
    /// The type of its cells.
    pub data_type: DataType,
    /// The value that stands for NULL in the format, as an array of this one value; `None` for a variable without NULLs.
    pub fill: Option<ArrayRef>,
    /// The attributes of the variable.
    pub attributes: Attributes,
}

impl NewDimension {
    /// Returns the attributes, with the units of times that are stored in this type.
    #[must_use]
    pub fn attributes_with_time(&self, stored: &StoredType) -> Attributes {
        with_time(self.attributes.clone(), stored)
    }
}

impl NewVariable {
    /// Returns the attributes, with the units of times that are stored in this type.
    #[must_use]
    pub fn attributes_with_time(&self, stored: &StoredType) -> Attributes {
        with_time(self.attributes.clone(), stored)
    }
}

/// The cells of one chunk of a variable.
#[derive(Debug, Clone)]
pub struct NewChunk {
    /// The number of the variable.
    pub variable: usize,
    /// The coordinates of the chunk in the grid of chunks.
    pub coordinates: Vec<u64>,
    /// The cells, row by row, without those outside of the array, or outside of the [region](NewArray::region) that is written.
    pub cells: ArrayRef,
    /// The cells that there is a row for; `None` if there is one for each of them. The others are NULL in a new array, and may stay as they
    /// are in one that is there.
    pub given: Option<NullBuffer>,
}

/// An array to be written: dimensions with labels, and variables over all of them, in chunks of one shape.
///
/// ```
/// use std::sync::Arc;
///
/// use arrow::array::{Float64Array, Int32Array};
/// use arrow::datatypes::DataType;
/// use gridfusion_core::write::{NewArray, NewDimension, NewVariable};
///
/// # fn main() -> gridfusion_core::Result<()> {
/// let lat = NewDimension {
///     name: "lat".into(),
///     labels: Arc::new(Float64Array::from(vec![59.0, 60.0, 61.0])),
///     attributes: Default::default(),
/// };
/// let height = NewVariable {
///     name: "height".into(),
///     data_type: DataType::Int32,
///     fill: Some(Arc::new(Int32Array::from(vec![-999]))),
///     attributes: Default::default(),
/// };
/// let array = NewArray::try_new(vec![lat], vec![height], &[2])?;
/// assert_eq!((array.grid().shape(), array.grid().chunks()), (&[3][..], 2));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct NewArray {
    dimensions: Vec<NewDimension>,
    variables: Vec<NewVariable>,
    grid: ChunkGrid,
    attributes: Attributes,
    /// The indices along each axis that are written.
    region: Vec<Range<u64>>,
}

impl NewArray {
    /// Makes the description of an array.
    ///
    /// # Errors
    /// `Usage` if names repeat or cannot be names of objects, or a label is NULL. Also for a fill value of another type than its variable,
    /// and for a shape of chunks that does not fit. `Unsupported` for too many dimensions or cells.
    pub fn try_new(
        dimensions: Vec<NewDimension>,
        variables: Vec<NewVariable>,
        chunk_shape: &[u64],
    ) -> Result<Self> {
        let names = dimensions.iter().map(|it| &it.name);
        let names = names.chain(variables.iter().map(|it| &it.name));
        let mut seen = BTreeSet::new();
        for name in names {
            check_name(name)?;
            if !seen.insert(name) {
                return Err(Error::usage(format!("two columns are called \"{name}\"")));
            }
        }
        for NewDimension { name, labels, .. } in &dimensions {
            if let Some(at) = (0..labels.len()).find(|at| labels.is_null(*at)) {
                let message = format!("label {at} of the dimension \"{name}\" is NULL");
                return Err(Error::usage(message));
            }
        }
        for NewVariable { name, data_type, fill, .. } in &variables {
            let fits = |fill: &ArrayRef| {
                fill.len() == 1 && fill.null_count() == 0 && fill.data_type() == data_type
            };
            if !fill.as_ref().is_none_or(fits) {
                return Err(Error::usage(format!(
                    "the fill value of \"{name}\" is no {data_type}"
                )));
            }
        }
        let shape: Vec<u64> = dimensions.iter().map(|it| it.labels.len() as u64).collect();
        let grid = grid_of(&shape, chunk_shape)?;
        let region = shape.iter().map(|len| 0..*len).collect();
        Ok(Self { dimensions, variables, grid, attributes: Attributes::new(), region })
    }

    /// Sets the region that is written, as ranges of indices along each axis. The other cells are those of an array that is there already.
    ///
    /// # Errors
    /// `Usage` if it lies outside of the array.
    pub fn with_region(self, region: Vec<Range<u64>>) -> Result<Self> {
        let shape = self.grid.shape();
        let is_within =
            |(range, len): (&Range<u64>, &u64)| range.start <= range.end && range.end <= *len;
        if region.len() != shape.len() || !region.iter().zip(shape).all(is_within) {
            return Err(Error::usage(format!(
                "the region {region:?} of an array of shape {shape:?}"
            )));
        }
        Ok(Self { region, ..self })
    }

    /// Sets the attributes of the whole array.
    #[must_use]
    pub fn with_attributes(self, attributes: Attributes) -> Self {
        Self { attributes, ..self }
    }

    /// Sets the shape of chunks.
    ///
    /// # Errors
    /// `Usage` if it does not fit.
    pub fn with_chunk_shape(self, chunk_shape: &[u64]) -> Result<Self> {
        let grid = grid_of(self.grid.shape(), chunk_shape)?;
        Ok(Self { grid, ..self })
    }

    /// Returns the dimensions, the slowest first.
    pub fn dimensions(&self) -> &[NewDimension] {
        &self.dimensions
    }

    /// Returns the variables.
    pub fn variables(&self) -> &[NewVariable] {
        &self.variables
    }

    /// Returns the attributes of the whole array.
    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// Returns the grid of chunks.
    pub fn grid(&self) -> &ChunkGrid {
        &self.grid
    }

    /// Returns the ranges of indices that are written, along each axis; all of them for an array that is new.
    pub fn region(&self) -> &[Range<u64>] {
        &self.region
    }

    /// Returns the indices of a chunk that are written, along each axis.
    pub fn ranges_in(&self, coordinates: &[u64]) -> Vec<Range<u64>> {
        coordinates.iter().enumerate().map(|(axis, chunk)| self.range_in(axis, *chunk)).collect()
    }

    /// Returns the indices along an axis that are written of chunks with this coordinate.
    pub(super) fn range_in(&self, axis: usize, chunk: u64) -> Range<u64> {
        let (range, written) = (self.grid.axis_range(axis, chunk), &self.region[axis]);
        let start = range.start.max(written.start);
        start..range.end.min(written.end).max(start)
    }

    /// Returns the coordinates of the chunks that have cells of the region, as ranges along each axis.
    pub fn chunks_of_region(&self) -> Vec<Range<u64>> {
        let chunks = |(axis, range): (usize, &Range<u64>)| match range.is_empty() {
            true => 0..0,
            false => {
                self.grid.chunk_of(axis, range.start)..self.grid.chunk_of(axis, range.end - 1) + 1
            }
        };
        self.region.iter().enumerate().map(chunks).collect()
    }

    /// Returns the indices of the cells that a chunk has, along each axis.
    ///
    /// # Errors
    /// `Usage` if there is no such chunk or variable, or the chunk has another number or type of cells.
    pub fn ranges_of(&self, chunk: &NewChunk) -> Result<Vec<Range<u64>>> {
        let is_there = self.grid.chunk_number(&chunk.coordinates).is_some();
        let Some(variable) = self.variables.get(chunk.variable).filter(|_| is_there) else {
            return Err(Error::usage(format!(
                "chunk {:?} of variable {} is outside of the array",
                chunk.coordinates, chunk.variable
            )));
        };
        let ranges = self.ranges_in(&chunk.coordinates);
        let expected: u64 = ranges.iter().map(|range| range.end - range.start).product();
        let (name, cells) = (&variable.name, &chunk.cells);
        if cells.data_type() != &variable.data_type || cells.len() as u64 != expected {
            return Err(Error::usage(format!(
                "chunk {:?} of \"{name}\" has {} cells of {}, expected {expected} of {}",
                chunk.coordinates,
                cells.len(),
                cells.data_type(),
                variable.data_type
            )));
        }
        Ok(ranges)
    }

    /// Returns the labels of a cell as text, such as `time=2024-01-01T00:00:00, lat=59.5`. The cell is the one with this number, row by
    /// row, of a box with these ranges of indices.
    pub fn labels_of(&self, ranges: &[Range<u64>], cell: usize) -> String {
        let lens: Vec<u64> = ranges.iter().map(|range| range.end - range.start).collect();
        let label = |((dimension, range), at): ((&NewDimension, &Range<u64>), u64)| {
            let at = range.start + at;
            let label = array_value_to_string(&dimension.labels, at as usize);
            format!("{}={}", dimension.name, label.unwrap_or_else(|_| format!("#{at}")))
        };
        let axes = self.dimensions.iter().zip(ranges).zip(unravel(cell as u64, &lens));
        axes.map(label).collect::<Vec<_>>().join(", ")
    }

    /// Returns the error for a cell of a variable that cannot be stored. The cell is one of a box with these ranges.
    pub fn bad_cell(&self, variable: &str, ranges: &[Range<u64>], bad: BadCell) -> Error {
        let labels = self.labels_of(ranges, bad.at);
        let reason = bad.reason;
        Error::usage(format!("the cell {labels} of \"{variable}\" cannot be written: {reason}"))
    }
}

fn with_time(mut attributes: Attributes, stored: &StoredType) -> Attributes {
    if let Some(units) = stored.time_units() {
        attributes.insert("units".to_owned(), Value::from(units));
        attributes.insert("calendar".to_owned(), Value::from("proleptic_gregorian"));
    }
    attributes
}

fn grid_of(shape: &[u64], chunk_shape: &[u64]) -> Result<ChunkGrid> {
    if chunk_shape.len() != shape.len() || chunk_shape.contains(&0) {
        return Err(Error::usage(format!(
            "chunks of shape {chunk_shape:?} for {} dimensions",
            shape.len()
        )));
    }
    ChunkGrid::new(shape, chunk_shape)
}

/// Fails for a name that cannot be the name of an object below a folder.
fn check_name(name: &str) -> Result<()> {
    let is_path = name.is_empty() || name.contains(['/', '\\', '\0']) || name.starts_with('.');
    // Stores escape such names, and other readers look for them as they are.
    let is_escaped = PathPart::from(name).as_ref() != name;
    if is_path || is_escaped || name.starts_with("__") {
        return Err(Error::usage(format!(
            "\"{name}\" cannot be the name of a dimension or a variable; name the column: AS …"
        )));
    }
    Ok(())
}
