//! [`AppendTarget`]: an array that is there, to which rows are appended.

use std::fmt::Debug;

use arrow::array::ArrayRef;

use super::{ArrayWriter, NewDimension, NewVariable};
use crate::error::Result;
use crate::format::Write;

/// The fate of cells that are in an array already, and that rows have values for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExistingCells {
    /// They stay, and the rows are refused.
    #[default]
    Refuse,
    /// They stay, and rows with other values are refused.
    Same,
    /// They get the values of the rows.
    Overwrite,
    /// They get the values of the rows. All other cells with the rows' labels become NULL.
    Clear,
}

/// A dimension of an array that is there.
#[derive(Debug, Clone)]
pub struct TargetDimension {
    /// The name of the dimension, and of the column of its labels.
    pub name: String,
    /// The labels, as queries show them.
    pub labels: ArrayRef,
    /// Whether the labels descend.
    pub descends: bool,
    /// Whether the labels ascend or descend.
    pub is_sorted: bool,
}

/// An array that is there, to which rows are appended.
pub trait AppendTarget: Debug + Send + Sync {
    /// Returns the dimensions, the slowest first.
    fn dimensions(&self) -> &[TargetDimension];

    /// Returns what tells the array from those before and after it, if rows could otherwise be computed from another one unnoticed.
    fn versions(&self) -> Vec<String> {
        vec![]
    }

    /// Ends what a program began that was stopped: returns writes that are applied first, before the array is opened again. Also returns
    /// whether they change cells that a query may have read by now.
    ///
    /// # Errors
    /// `Usage` if the array cannot be mended.
    fn repair(&mut self) -> Result<(Vec<Write>, bool)> {
        Ok((vec![], false))
    }

    /// Lets labels get other units of time, if times of rows fall between those of the array. Otherwise, and in arrays whose units cannot
    /// change, such rows are refused.
    fn refine_times(&mut self) {}

    /// Returns the writer of rows with these dimensions, in the order of the target's, and variables: the columns of the rows. Also returns
    /// the index of each of their labels along its dimension.
    ///
    /// # Errors
    /// `Usage` if the labels have no place, or the target cannot have these variables.
    #[expect(clippy::type_complexity, reason = "a writer, and indices per dimension")]
    fn writer(
        self: Box<Self>,
        dimensions: Vec<NewDimension>,
        variables: Vec<NewVariable>,
        existing: ExistingCells,
    ) -> Result<(Box<dyn ArrayWriter>, Vec<Vec<u64>>)>;
}
