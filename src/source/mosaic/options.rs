//! How arrays become one table.

/// How arrays become one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MosaicOptions {
    /// The dimension along which files are concatenated; `None`: the one whose labels differ.
    pub concat_dimension: Option<String>,
    /// Adds a column `_file` with the name of the file.
    pub file_column: bool,
    /// Adds a column `<dimension>_idx` with the 0-based index for each dimension.
    pub index_columns: bool,
    /// Bytes of a chunk of the table that is put together of several stored ones, at most, if none of
    /// these is larger. Where chunks of variables have no common borders within so many bytes, some
    /// are decoded more than once. Default: 64 MiB.
    pub chunk_bytes: u64,
}

impl Default for MosaicOptions {
    fn default() -> Self {
        Self {
            concat_dimension: None,
            file_column: false,
            index_columns: false,
            chunk_bytes: 1 << 26,
        }
    }
}
