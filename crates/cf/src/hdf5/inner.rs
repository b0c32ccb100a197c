//! The contents of an open file, which its machines share.

use std::sync::Arc;

use super::blocks::FileBlocks;
use super::file_bytes::Widths;
use super::stored_variable::{StoredVariable, location};
use crate::hierarchy::Hierarchy;
use gridfusion_core::format::Location;
use gridfusion_core::{Error, Result};

/// The variables of a file, their places, and the blocks that were read.
#[derive(Debug)]
pub(super) struct Inner {
    pub(super) hierarchy: Hierarchy,
    /// In the order of the hierarchy's variables. Paths of one dataset share it.
    pub(super) stored: Vec<Arc<StoredVariable>>,
    /// The bytes of memory that the groups and variables take.
    pub(super) kept: u64,
    pub(super) superblock_version: u8,
    pub(super) is_netcdf: bool,
    pub(super) widths: Widths,
    /// The blocks that were read so far, as far as they are kept.
    pub(super) blocks: FileBlocks,
}

impl Inner {
    /// Returns the location of a chunk at an HDF5 address, if it is in the file and not where the superblock is.
    pub(super) fn place(&self, address: u64, size: u64) -> Result<Location> {
        let file_len = self.blocks.size();
        let start = Some(address).filter(|&at| at > 0);
        let start = start.and_then(|at| at.checked_add(self.widths.base));
        let end = start.and_then(|start| start.checked_add(size));
        match (start, end.filter(|&end| end <= file_len)) {
            (Some(start), Some(_)) => Ok(location(start, size)),
            _ => Err(Error::corrupt(
                "chunk index",
                address,
                format!("a chunk of {size} bytes at {address} in a file of {file_len} bytes"),
            )),
        }
    }
}
