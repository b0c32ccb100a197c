//! Where a fractal heap has its blocks and long objects.

/// How a block or object is stored, if the heap has filters.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FilteredBlock {
    /// Its bytes as stored.
    pub(super) len: u64,
    /// A bit per filter that was not applied.
    pub(super) skipped: u32,
}

/// The place of an object that is longer than a block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Huge {
    pub(super) address: u64,
    pub(super) len: u64,
    pub(super) stored: FilteredBlock,
}
