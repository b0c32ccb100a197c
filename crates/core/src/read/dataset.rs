//! [`Dataset`]: the arrays of a place that was opened.

use std::fmt;
use std::sync::Arc;

use super::array_reader::ArrayReader;
use super::sparse_reader::SparseReader;
use crate::error::{Error, Result, shown_location};
use crate::options::ResolvedOptions;
use crate::source::{
    ArrayFormat, ArrayGroup, Formats, OpenedArray, Place, TableArrays, mosaic_options,
};

/// The arrays of a file, package, store or folder. Cheap to clone.
#[derive(Clone)]
pub struct Dataset {
    group: Arc<dyn ArrayGroup>,
    formats: Formats,
    format: Arc<dyn ArrayFormat>,
    place: Place,
    options: Arc<ResolvedOptions>,
}

/// Shows no password and no signature of a URL.
impl fmt::Debug for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let location = shown_location(self.location());
        f.debug_struct("Dataset")
            .field("location", &location)
            .field("format", &self.format.name())
            .finish_non_exhaustive()
    }
}

impl Dataset {
    pub(super) async fn open(
        formats: &Formats,
        format: Arc<dyn ArrayFormat>,
        place: Place,
        options: ResolvedOptions,
    ) -> Result<Self> {
        let group = formats.open(&format, &place, &options).await?;
        Ok(Self { group, formats: formats.clone(), format, place, options: Arc::new(options) })
    }

    /// The path or URL. It may hold a password or a signature.
    #[must_use]
    pub fn location(&self) -> &str {
        self.group.location()
    }

    /// The names of the arrays, coordinates among them.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.group.names()
    }

    /// Why arrays are missing among [`names`](Self::names), if some cannot be read.
    #[must_use]
    pub fn left_out(&self) -> &[Error] {
        self.group.left_out()
    }

    /// Returns a reader of one array, and reads its labels.
    ///
    /// # Errors
    /// `Usage` for a name that no array has; `Unsupported` for a sparse array: see [`sparse_array`](Self::sparse_array).
    /// Otherwise if the metadata or the labels cannot be read.
    pub async fn array(&self, name: &str) -> Result<ArrayReader> {
        self.group.array(name).await?.into_grid().map(ArrayReader::new)
    }

    /// Returns a reader of one sparse array.
    ///
    /// # Errors
    /// `Usage` for a name that no array has, and for a dense array, which [`array`](Self::array) reads; otherwise if the
    /// metadata cannot be read.
    pub async fn sparse_array(&self, name: &str) -> Result<SparseReader> {
        self.group.array(name).await?.into_sparse().map(SparseReader::new)
    }

    /// Returns a reader of the columns that the place has as a SQL table: all data variables side by side, or those that the
    /// option `dataset` names. They must have the same dimensions.
    ///
    /// # Errors
    /// As [`array`](Self::array), and `Usage` for variables of different dimensions.
    pub async fn variables(&self) -> Result<ArrayReader> {
        let has_index_columns = self.options.read(&self.format.read_defaults()).index_columns;
        let options = mosaic_options(&self.options, has_index_columns);
        let array = match self.formats.table(&self.format, &self.place, &self.options).await? {
            TableArrays::Grids(arrays) => arrays.into_array(&options)?,
            TableArrays::Sparse(array) => OpenedArray::from(array).into_grid()?,
        };
        Ok(ArrayReader::new(array))
    }

    /// The arrays as formats give them, to verify or describe them.
    #[must_use]
    pub fn group(&self) -> &Arc<dyn ArrayGroup> {
        &self.group
    }
}
