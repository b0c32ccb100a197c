//! [`FileArrays`]: the opened arrays of one file.

use crate::array::{Dimension, GridArray};

/// The variables of one file that become columns.
#[derive(Debug)]
pub struct FileArrays {
    /// The path or URL of the file, for the column `_file` and for errors.
    pub name: String,
    /// The variables; at least one.
    pub arrays: Vec<GridArray>,
}

impl FileArrays {
    /// The dimensions of the first variable, which all variables share.
    pub(super) fn dims(&self) -> &[Dimension] {
        self.arrays[0].dims()
    }
}
