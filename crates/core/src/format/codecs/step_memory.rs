//! Memory that steps reuse.

use crate::format::compress::Contexts;

/// Memory and contexts that steps keep from tile to tile.
#[derive(Default)]
pub(super) struct StepMemory {
    pub(super) contexts: Contexts,
    /// Blocks between a compressor and a shuffle.
    pub(super) block: Vec<u8>,
    /// Planes of bytes between planes of bits and elements.
    pub(super) planes: Vec<u8>,
}
