//! The interface of a format to the suite.

use std::ops::Range;
use std::path::{Path, PathBuf};

use arrow::datatypes::DataType;
use datafusion::prelude::SessionContext;

use super::logical::{Axis, Labels, Logical};

/// A format that passes the suite.
pub(crate) trait FormatUnderTest: Sync {
    /// Its name in SQL: `tet` for `STORED AS TET` and `read_tet`.
    fn name(&self) -> &'static str;

    /// The suffix of its files or folders.
    fn suffix(&self) -> &'static str;

    /// The labels and chunks that it can hold, and the statistics that it stores.
    fn capabilities(&self) -> Capabilities;

    /// Writes an array, all of whose labels the format can hold.
    fn write(&self, array: &Logical, path: &Path);

    /// A file with metadata of the array at `path`, and the range of the metadata in it. If the first
    /// byte of the range changes, the array cannot be opened.
    fn metadata(&self, path: &Path) -> (PathBuf, Range<usize>);

    /// Adds the format to a session that does not have it.
    fn install(&self, _ctx: &SessionContext) {}
}

/// The labels and chunks that a format can hold, and the statistics that it stores.
pub(crate) struct Capabilities {
    /// Whether a dimension can have these labels; otherwise the suite leaves out its labels.
    pub(crate) holds: fn(&Labels) -> bool,
    /// Changes the chunks to those that a table has, if the format cannot choose them freely.
    pub(crate) divides: fn(&mut [Axis]),
    /// The Arrow type of labels that are hours.
    pub(crate) hours: DataType,
    /// Whether the format stores the least and greatest value of chunks.
    pub(crate) notes_bounds: bool,
    /// Whether variables have attributes: `_FillValue`.
    pub(crate) has_attributes: bool,
    /// Whether metadata holds some chunks, which then have no place in an object.
    pub(crate) holds_chunks_in_metadata: bool,
}

/// The chunks of a format that can hold any.
pub(crate) fn as_given(_: &mut [Axis]) {}
