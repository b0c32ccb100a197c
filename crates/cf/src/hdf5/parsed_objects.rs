//! The objects of a file after all of them were parsed.

use std::collections::HashMap;

use super::file_bytes::Widths;
use super::parse::Object;
use gridfusion_core::Result;

/// The objects of a file, by address; an error for each that cannot be parsed.
pub(super) type ParsedObjects = HashMap<u64, Result<Object>>;

/// Facts of the file as a whole.
#[derive(Debug, Clone, Copy)]
pub(super) struct Whole {
    pub(super) root: u64,
    pub(super) superblock_version: u8,
    pub(super) widths: Widths,
}
