//! [`MosaicOptions`]: how arrays are combined into one table.

use crate::options::Overlap;

/// Options for combining arrays into one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MosaicOptions {
    /// The dimension along which files are concatenated; `None` for the one whose labels differ.
    pub concat_dimension: Option<String>,
    /// Whether variables that some files lack are NULL there, and those of fewer dimensions are repeated along the others.
    pub union_by_name: bool,
    /// Which file a label is from that several files have.
    pub overlap: Overlap,
    /// Whether to add a column `_file` with the name of the file.
    pub file_column: bool,
    /// Whether to add a column `<dimension>_idx` with the 0-based index for each dimension.
    pub index_columns: bool,
    /// The most bytes of a table chunk that consists of several stored chunks; a larger stored chunk raises the
    /// limit. If the variables share no borders within this size, some stored chunks are decoded more than
    /// once. Default: 64 MiB.
    pub chunk_bytes: u64,
}

impl Default for MosaicOptions {
    fn default() -> Self {
        Self {
            concat_dimension: None,
            union_by_name: false,
            overlap: Overlap::Refused,
            file_column: false,
            index_columns: false,
            chunk_bytes: 1 << 26,
        }
    }
}
