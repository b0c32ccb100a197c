//! [`WindowState`]: the state of a function of a window in a column of chunks.

use std::ops::Range;

use arrow::array::ArrayRef;
use datafusion::error::Result;

/// The cells of a column of chunks besides those along the axis of the window.
///
/// The rows of a chunk are `outer` blocks. Each block has one line per position along the axis, and each line `width` rows. `lines`
/// tells how lines are numbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ColumnShape {
    pub(super) outer: usize,
    pub(super) width: usize,
}

/// The state of a function of a window.
pub(super) trait WindowState: Send {
    /// Adds the arguments of a chunk with these lines, which follow those before.
    ///
    /// # Errors
    /// `Internal` if values have another type than planned.
    fn push(&mut self, values: &ArrayRef, lines: Range<usize>) -> Result<()>;

    /// Returns the values of the function in all rows of the chunk with these lines. All lines of their frames must have
    /// been added.
    ///
    /// # Errors
    /// Internal errors only.
    fn values(&mut self, lines: Range<usize>) -> Result<ArrayRef>;

    /// Frees the memory of lines that neither `next` nor a later line needs.
    fn forget(&mut self, next: usize);

    /// Returns the bytes of memory that the state takes.
    fn size(&self) -> usize;
}
