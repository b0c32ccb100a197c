//! Default implementations of [`ArrayGroup`](super::ArrayGroup): data variables, descriptions and verification.

mod describe;
mod facts;
mod variables;
mod verify;

pub(crate) use describe::describe_arrays;
pub(crate) use facts::{array_attributes, array_info};
pub(crate) use variables::data_variable_names;
pub use variables::data_variables;
pub(crate) use verify::verify_arrays;

use crate::array::GridArray;
use crate::error::Result;
use crate::source::opened_array::OpenedArray;

/// The name of an array, and the array or the error of opening it.
pub type NamedArray = (String, Result<OpenedArray>);
/// The name of a grid, and the grid or the error of opening it.
pub(super) type NamedGrid = (String, Result<GridArray>);
