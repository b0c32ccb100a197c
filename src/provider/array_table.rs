//! [`ArrayTable`]: the table of an opened array, whatever its kind.

use std::ops::Range;
use std::sync::Arc;

use datafusion::catalog::TableProvider;

use super::sparse_table::SparseTable;
use super::table::GridTable;
use crate::array::GridArray;
use crate::error::{Error, Result};
use crate::source::{AlignedArray, MosaicOptions, OpenedArray, TableArrays, TableOrigin};

/// A table of arrays: of a full grid, or of the cells of a sparse array.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ArrayTable {
    /// A row per cell of a grid.
    Grid(GridTable),
    /// A row per cell that was written.
    Sparse(SparseTable),
}

/// One of the tables whose arrays are put side by side, with the axes and indices of an [`AlignedArray`].
pub(crate) struct AlignedTable {
    pub(crate) table: ArrayTable,
    pub(crate) axes: Vec<usize>,
    pub(crate) ranges: Vec<Range<u64>>,
}

impl ArrayTable {
    /// Makes a table of the arrays of one place.
    pub(super) fn from_place(arrays: TableArrays, options: &MosaicOptions) -> Result<Self> {
        Ok(match arrays {
            TableArrays::Grids(file) => Self::Grid(GridTable::from_file(file, options)?),
            TableArrays::Sparse(array) if options.file_column => {
                let message =
                    "a sparse array is one table of its own, without option 'file_column'";
                return Err(array.objects().named(Error::usage(message)));
            }
            TableArrays::Sparse(array) => Self::Sparse(SparseTable::new(Arc::new(array))),
        })
    }

    /// Puts the arrays of tables side by side.
    ///
    /// # Errors
    /// As [`GridArray::side_by_side`], and `Usage` for a sparse array.
    pub(crate) fn side_by_side(tables: &[AlignedTable]) -> Result<Self> {
        let grids = tables.iter().map(|it| {
            it.table.as_grid().map(GridTable::array).ok_or_else(|| {
                Error::usage("a sparse array has no axes on which another one could be joined")
            })
        });
        let grids = grids.collect::<Result<Vec<_>>>()?;
        let arrays = tables
            .iter()
            .zip(&grids)
            .map(|(AlignedTable { axes, ranges, .. }, array)| AlignedArray { array, axes, ranges });
        let arrays: Vec<AlignedArray<'_>> = arrays.collect();
        Ok(Self::from(GridArray::side_by_side(&arrays)?))
    }

    /// Makes a table of an opened array, without an origin.
    pub fn new(array: OpenedArray) -> Self {
        match array {
            OpenedArray::Grid(array) => Self::Grid(GridTable::new(Arc::new(array))),
            OpenedArray::Sparse(array) => Self::Sparse(SparseTable::new(Arc::new(array))),
        }
    }

    /// Sets the origin of the table.
    #[must_use]
    pub(super) fn with_origin(self, origin: TableOrigin) -> Self {
        match self {
            Self::Grid(table) => Self::Grid(table.with_origin(origin)),
            Self::Sparse(table) => Self::Sparse(table.with_origin(origin)),
        }
    }

    /// The locations, format and options that open the table again in another process. `None` if the caller
    /// opened the array.
    pub fn origin(&self) -> Option<&TableOrigin> {
        match self {
            Self::Grid(table) => table.origin(),
            Self::Sparse(table) => table.origin(),
        }
    }

    /// The table of a grid; `None` for a sparse array.
    pub fn as_grid(&self) -> Option<&GridTable> {
        match self {
            Self::Grid(table) => Some(table),
            Self::Sparse(_) => None,
        }
    }

    /// The table of a sparse array; `None` for a grid.
    pub fn as_sparse(&self) -> Option<&SparseTable> {
        match self {
            Self::Grid(_) => None,
            Self::Sparse(table) => Some(table),
        }
    }

    /// Returns the table as DataFusion registers it: as a [`GridTable`] or a [`SparseTable`].
    pub fn into_provider(self) -> Arc<dyn TableProvider> {
        match self {
            Self::Grid(table) => Arc::new(table),
            Self::Sparse(table) => Arc::new(table),
        }
    }
}

impl From<GridArray> for ArrayTable {
    fn from(array: GridArray) -> Self {
        Self::new(array.into())
    }
}
