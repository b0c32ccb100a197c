//! [`OpenedArray`]: an array of either kind, and [`TableArrays`]: those that become one table.
//!
//! Combining sparse arrays is an error that suggests `UNION ALL`. A union loses nothing here, because sparse arrays have
//! no axes that several of them could share.

use super::array_format::PinnedOption;
use super::mosaic::FileArrays;
use crate::array::{GridArray, SparseArray};
use crate::error::{Error, Result, shown_location};

/// An opened array.
///
/// Each kind has tables of its own, so a further kind would be a breaking change.
#[derive(Debug)]
pub enum OpenedArray {
    /// A full grid, of which every cell is a row.
    Grid(GridArray),
    /// Single cells, of which every visible one is a row.
    Sparse(SparseArray),
}

impl OpenedArray {
    /// Converts the array to a full grid.
    ///
    /// # Errors
    /// `Unsupported` for an array that is not a full grid.
    pub fn into_grid(self) -> Result<GridArray> {
        match self {
            Self::Grid(array) => Ok(array),
            Self::Sparse(array) => Err(Error::unsupported(format!(
                "\"{}\" is a sparse array, which has no grid of cells",
                array.name()
            ))),
        }
    }

    /// Returns a sparse array.
    ///
    /// # Errors
    /// `Usage` for an array that is a full grid.
    pub fn into_sparse(self) -> Result<SparseArray> {
        match self {
            Self::Sparse(array) => Ok(array),
            Self::Grid(array) => {
                let message = format!("\"{}\" is a dense array, not a sparse one", array.name());
                Err(array.objects().named(Error::usage(message)))
            }
        }
    }

    /// Returns the same array under another name.
    pub fn with_name(self, name: &str) -> Self {
        match self {
            Self::Grid(array) => Self::Grid(array.with_name(name)),
            Self::Sparse(array) => Self::Sparse(array.with_name(name)),
        }
    }

    /// Returns the same array, whose only variable has the name of the array. Cells of sparse arrays keep their names.
    pub(crate) fn with_variable_name(self) -> Self {
        match self {
            Self::Grid(array) => Self::Grid(array.with_variable_name()),
            Self::Sparse(_) => self,
        }
    }

    /// Returns the array's name.
    pub fn name(&self) -> &str {
        match self {
            Self::Grid(array) => array.name(),
            Self::Sparse(array) => array.name(),
        }
    }

    /// Returns the names of the array's dimensions, each with its length if it is an axis of a grid.
    pub(crate) fn axes(&self) -> Vec<(String, Option<u64>)> {
        match self {
            Self::Grid(array) => {
                let dims = array.dims().iter();
                dims.map(|dim| (dim.name().to_owned(), Some(dim.len()))).collect()
            }
            Self::Sparse(array) => {
                let fields = array.schema().fields().iter().take(array.rank());
                fields.map(|field| (field.name().clone(), None)).collect()
            }
        }
    }

    /// Returns the array as a full grid; `None` for other kinds of arrays.
    pub fn as_grid(&self) -> Option<&GridArray> {
        match self {
            Self::Grid(array) => Some(array),
            Self::Sparse(_) => None,
        }
    }
}

/// An array that is a column beside the variables of a table, such as a coordinate: it is repeated along the dimensions that
/// it lacks.
#[derive(Debug)]
pub struct BesideArray {
    /// The array over the dimensions of the table.
    pub array: OpenedArray,
    /// The number of its cells, each once.
    pub cells: u64,
    /// Whether the table does without the column rather than fail: where some of many files lack it, it is left out with a
    /// warning.
    pub is_optional: bool,
}

impl From<GridArray> for OpenedArray {
    fn from(array: GridArray) -> Self {
        Self::Grid(array)
    }
}

impl From<SparseArray> for OpenedArray {
    fn from(array: SparseArray) -> Self {
        Self::Sparse(array)
    }
}

/// The arrays of one place that become one table.
///
/// Each kind has tables of its own, so a further kind would be a breaking change.
#[derive(Debug)]
pub enum TableArrays {
    /// Grids of the same axes, whose variables become columns.
    Grids(FileArrays),
    /// A sparse array, which is a table of its own.
    Sparse(SparseArray),
}

impl TableArrays {
    /// Returns the opened arrays of the place `name` as one table.
    ///
    /// # Errors
    /// `Usage` if a sparse array is among several.
    pub fn new(name: &str, mut arrays: Vec<OpenedArray>) -> Result<Self> {
        let is_sparse = |array: &OpenedArray| array.as_grid().is_none();
        if arrays.len() == 1
            && let Some(OpenedArray::Sparse(_)) = arrays.first()
        {
            return match arrays.remove(0) {
                OpenedArray::Sparse(array) => Ok(Self::Sparse(array)),
                OpenedArray::Grid(_) => Err(Error::internal("a grid that is a sparse array")),
            };
        }
        if let Some(array) = arrays.iter().find(|array| is_sparse(array)) {
            let array = array.name();
            let message = format!(
                "\"{array}\" is a sparse array, whose cells are not those of other arrays: make a table of it alone, with option 'dataset'"
            );
            return Err(Error::usage(message).in_file(name));
        }
        let arrays = arrays.into_iter().map(OpenedArray::into_grid).collect::<Result<_>>()?;
        Ok(Self::Grids(FileArrays::new(shown_location(name), arrays)))
    }

    /// Adds an option that names what was opened.
    #[must_use]
    pub fn pinning(self, option: PinnedOption) -> Self {
        match self {
            Self::Grids(file) => {
                let pinned = file.pinned_options().iter().cloned().chain([option]).collect();
                Self::Grids(file.with_pinned_options(pinned))
            }
            sparse @ Self::Sparse(_) => sparse,
        }
    }

    /// The options that name what was opened; see [`ArrayGroup::pinned_options`](super::ArrayGroup::pinned_options).
    pub fn pinned_options(&self) -> &[PinnedOption] {
        match self {
            Self::Grids(file) => file.pinned_options(),
            Self::Sparse(_) => &[],
        }
    }
}
