//! The known blocks of a file as the crate's storage.

use std::sync::Arc;

use hdf5_reader::error::Error as Theirs;
use hdf5_reader::{Storage, StorageBuffer};

use super::super::blocks::FileBlocks;
use super::super::file_bytes::FileBytes;

/// Bytes of the known blocks, from a position on.
pub(super) struct KnownBytes {
    pub(super) blocks: Arc<FileBlocks>,
    /// The position of address 0.
    pub(super) base: u64,
}

impl KnownBytes {
    /// Returns the bytes of a file from its superblock on.
    pub(super) fn new(file: &FileBytes) -> Self {
        Self { blocks: Arc::clone(&file.blocks), base: file.widths.base }
    }
}

impl Storage for KnownBytes {
    fn len(&self) -> u64 {
        self.blocks.size().saturating_sub(self.base)
    }

    fn read_range(&self, offset: u64, len: usize) -> Result<StorageBuffer, Theirs> {
        let at = offset.checked_add(self.base).ok_or(Theirs::OffsetOutOfBounds(offset))?;
        let bytes = self.blocks.read(at, len as u64);
        let bytes = bytes.map_err(|error| Theirs::InvalidData(error.to_string()))?;
        StorageBuffer::from_shared_owner(Arc::new(bytes), 0, len)
    }
}
