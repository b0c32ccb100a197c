//! [`Dataset`]: the arrays of a place that was opened.

use std::sync::Arc;

use super::array_reader::ArrayReader;
use crate::array::GridArray;
use crate::error::{Error, Result};
use crate::io::last_part;
use crate::source::{ArrayGroup, MosaicOptions, TableArrays};

/// The arrays of a file, package, store or folder. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Dataset(Arc<dyn ArrayGroup>);

impl Dataset {
    pub(super) fn new(group: Arc<dyn ArrayGroup>) -> Self {
        Self(group)
    }

    /// The path or URL. It may hold a password or a signature.
    #[must_use]
    pub fn location(&self) -> &str {
        self.0.location()
    }

    /// The names of the arrays, coordinates among them.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.0.names()
    }

    /// Why arrays are missing among [`names`](Self::names), if some cannot be read.
    #[must_use]
    pub fn left_out(&self) -> &[Error] {
        self.0.left_out()
    }

    /// Returns a reader of one array, and reads its labels.
    ///
    /// # Errors
    /// `Usage` for a name that no array has; `Unsupported` for a sparse array; otherwise if the metadata or the labels
    /// cannot be read.
    pub async fn array(&self, name: &str) -> Result<ArrayReader> {
        self.0.array(name).await?.into_grid().map(ArrayReader::new)
    }

    /// Returns a reader of all data variables side by side, which must have the same dimensions.
    ///
    /// # Errors
    /// As [`array`](Self::array), and `Usage` for variables of different dimensions.
    pub async fn variables(&self) -> Result<ArrayReader> {
        let arrays = match self.0.columns(None).await? {
            TableArrays::Grids(arrays) => arrays,
            TableArrays::Sparse(array) => {
                let message =
                    format!("\"{}\" is a sparse array, which has no grid of cells", array.name());
                return Err(Error::unsupported(message).in_file(self.location()));
            }
        };
        let name = last_part(&arrays.name).to_owned();
        let array = GridArray::combine(name, vec![arrays], &MosaicOptions::default())?;
        Ok(ArrayReader::new(array))
    }

    /// The arrays as formats give them, to verify or describe them.
    #[must_use]
    pub fn group(&self) -> &Arc<dyn ArrayGroup> {
        &self.0
    }
}
