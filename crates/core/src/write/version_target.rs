//! [`VersionTarget`]: an array that keeps its versions, to which another one is added.

use std::fmt::Debug;

use super::{ArrayWriter, NewArray};
use crate::error::Result;
use crate::format::Write;

/// An array that keeps its versions. Readers find the current one: the new one, once it is complete.
pub trait VersionTarget: Debug + Send + Sync {
    /// Returns writes that remove what a program has left that was stopped. They are applied first.
    fn repair(&mut self) -> Vec<Write>;

    /// Returns the writer of the new version.
    ///
    /// # Errors
    /// `Usage` or `Unsupported` for an array that the format cannot store.
    fn writer(self: Box<Self>, array: NewArray) -> Result<Box<dyn ArrayWriter>>;
}
