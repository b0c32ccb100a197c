//! Describes and verifies the arrays of a group whose format has no pages or checks of its own.

mod describe;
#[cfg(test)]
mod tests;
mod variables;
mod verify;

pub(crate) use describe::describe_arrays;
pub(crate) use variables::data_variables;
pub(crate) use verify::verify_arrays;

use crate::array::GridArray;
use crate::error::Result;

/// The name of an array, and the array, or why it cannot be opened.
pub(crate) type Named = (String, Result<GridArray>);
