//! [`Function`]: how a function of a window gets its values, and the lines that it needs.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;

use super::frames::Frames;
use super::picks::{PickedLines, Picks};
use super::totals::{Total, totals};
use super::window_state::{ColumnShape, WindowState};

/// Returns the bytes of a value of a type: those of a view for texts, whose letters are in the tile.
pub(super) fn width(data_type: &DataType) -> usize {
    data_type.primitive_width().unwrap_or(16)
}

/// How a function gets its values.
#[derive(Debug, Clone)]
pub(super) enum Function {
    /// One value per position along the axis, such as `row_number`.
    OfAxis(ArrayRef),
    /// The value of another position, such as `lag`.
    Pick(Arc<Picks>),
    /// An aggregate of the frame.
    Total(Total, Arc<Frames>),
}

impl Function {
    /// Returns the state before line number `first`, for values of `data_type`. `None` if the function has no argument.
    pub(super) fn running(
        &self,
        data_type: &DataType,
        shape: ColumnShape,
        first: usize,
    ) -> Option<Box<dyn WindowState>> {
        match self {
            Self::OfAxis(_) => None,
            Self::Pick(picks) => Some(Box::new(PickedLines::new(shape, Arc::clone(picks)))),
            Self::Total(total, frames) => {
                Some(totals(total, data_type, Arc::clone(frames), shape, first))
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

    /// Returns the most lines of aggregates that the state keeps beside lines of arguments: suffixes of the longest frame.
    pub(super) fn suffixes(&self) -> usize {
        match self {
            Self::OfAxis(_) | Self::Pick(_) => 0,
            Self::Total(_, frames) => frames.longest(),
        }
    }

    /// Returns the bytes that an argument takes in the state, or an aggregate of arguments. Values have `data_type`.
    pub(super) fn bytes_per_cell(&self, data_type: &DataType) -> usize {
        match self {
            Self::OfAxis(_) => 0,
            Self::Pick(_) => width(data_type),
            Self::Total(total, _) => total.bytes_per_cell(),
        }
    }
}
