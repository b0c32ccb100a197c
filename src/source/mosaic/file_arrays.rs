//! The arrays of one file.

use crate::array::{Dimension, GridArray};

/// The variables of one file that become columns.
#[derive(Debug)]
pub struct FileArrays {
    /// What the `_file` column and errors call the file: its path or URL.
    pub name: String,
    /// At least one.
    pub arrays: Vec<GridArray>,
}

impl FileArrays {
    /// The dimensions, which all variables share.
    pub(super) fn dims(&self) -> &[Dimension] {
        self.arrays[0].dims()
    }
}
