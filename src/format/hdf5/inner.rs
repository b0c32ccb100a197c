//! The contents of an open file, which its machines share.

use super::blocks::Blocks;
use super::file_bytes::Widths;
use super::stored::StoredVariable;
use crate::format::hierarchy::Hierarchy;

/// The variables of a file, their places, and the blocks that were read.
#[derive(Debug)]
pub(super) struct Inner {
    pub(super) hierarchy: Hierarchy,
    /// In the order of the hierarchy's variables.
    pub(super) stored: Vec<StoredVariable>,
    pub(super) superblock_version: u8,
    pub(super) is_netcdf: bool,
    pub(super) widths: Widths,
    /// The blocks that were read so far, as far as they are kept.
    pub(super) blocks: Blocks,
}
