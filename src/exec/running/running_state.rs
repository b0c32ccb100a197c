//! [`Running`]: the state of a function of a window in a column of chunks.

use std::ops::Range;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion::error::Result;

use super::call::Function;
use super::picks::PickedLines;
use super::totals::totals;

/// The cells of a column of chunks besides those along the axis of the window.
///
/// The rows of a chunk are `outer` blocks. Each block has one line per position along the axis, and each line `width` rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ColumnShape {
    pub(super) outer: usize,
    pub(super) width: usize,
}

/// The state of a function of a window. Lines are positions along the axis.
pub(super) trait Running: Send {
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

impl Function {
    /// Returns the state before line number `first`, for values of `data_type`. `None` if the function has no argument.
    pub(super) fn running(
        &self,
        data_type: &DataType,
        shape: ColumnShape,
        first: usize,
    ) -> Option<Box<dyn Running>> {
        match self {
            Self::OfAxis(_) => None,
            Self::Pick(picks) => Some(Box::new(PickedLines::new(shape, picks.clone()))),
            Self::Total(total, frames) => {
                Some(totals(total, data_type, frames.clone(), shape, first))
            }
        }
    }

    /// Returns the first line whose argument is needed for the value of `line`.
    pub(super) fn first_line(&self, line: usize) -> usize {
        match self {
            Self::OfAxis(_) => line,
            Self::Pick(picks) => picks.needed_from(line).min(line),
            Self::Total(_, frames) => frames.at(line).start.min(line),
        }
    }

    /// Returns the first line whose argument is kept when the lines before `line` have their values.
    pub(super) fn kept_from(&self, line: usize) -> usize {
        match self {
            Self::OfAxis(_) => usize::MAX,
            Self::Pick(picks) => picks.kept_from(line),
            Self::Total(_, frames) => frames.needed_from(line),
        }
    }

    /// Returns the end of the lines whose arguments are needed for the value of `line`.
    pub(super) fn reach(&self, line: usize) -> usize {
        match self {
            Self::OfAxis(_) => 0,
            Self::Pick(picks) => picks.reach(line),
            Self::Total(_, frames) => frames.at(line).end,
        }
    }

    /// Returns the bytes that a kept cell takes.
    pub(super) fn bytes_per_cell(&self) -> usize {
        match self {
            Self::OfAxis(_) => 0,
            Self::Pick(_) => 16,
            Self::Total(total, _) => total.bytes_per_cell(),
        }
    }
}
