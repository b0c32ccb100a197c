//! The kind and the place of an index.

use super::Entry;

/// The kind of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::hdf5) enum IndexKind {
    /// The only chunk lies at the address, in this number of bytes if it has filters.
    Single {
        size: Option<u64>,
        skipped: u32,
    },
    /// All chunks lie one after another, without filters.
    Implicit,
    BTree1,
    BTree2,
    FixedArray,
    ExtensibleArray,
}

impl IndexKind {
    /// Returns the name of the kind.
    pub(in crate::hdf5) fn name(self) -> &'static str {
        match self {
            Self::Single { .. } => "single chunk",
            Self::Implicit => "implicit",
            Self::BTree1 => "version 1 B-tree",
            Self::BTree2 => "version 2 B-tree",
            Self::FixedArray => "fixed array",
            Self::ExtensibleArray => "extensible array",
        }
    }
}

/// The index of a dataset.
#[derive(Debug)]
pub(in crate::hdf5) struct ChunkIndex {
    pub(in crate::hdf5) kind: IndexKind,
    /// The address of the index, or of the chunks if there is none.
    pub(in crate::hdf5) address: u64,
    /// The elements per axis to which the dataset may grow; `u64::MAX` for any number.
    pub(in crate::hdf5) max_shape: Vec<u64>,
    pub(in crate::hdf5) chunk_shape: Vec<u64>,
    /// Bytes of a chunk without filters.
    pub(in crate::hdf5) chunk_len: u64,
    pub(in crate::hdf5) has_filters: bool,
}

impl ChunkIndex {
    /// Returns the stored bytes of a chunk.
    pub(in crate::hdf5) fn stored_len(&self, entry: &Entry) -> u64 {
        entry.size.filter(|_| self.has_filters).unwrap_or(self.chunk_len)
    }
}
