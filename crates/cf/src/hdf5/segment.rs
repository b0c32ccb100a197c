//! Parts of external files.

use std::sync::Arc;

/// A part of another file with cells of a dataset. The cells of the next part follow these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// The name of the file, relative to the folder of this one.
    pub file: Arc<str>,
    /// The position of the first byte.
    pub offset: u64,
    /// The number of bytes; `None` for all that follow.
    pub len: Option<u64>,
}
