//! The memory that a file's writer asks readers to keep to.

/// How much memory the writer of a file suggests for reading it; a hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemoryBudget {
    /// A share of the memory at hand in basis points (10000 is all of it); 0 means unset.
    pub basis_points: u16,
    /// A fixed number of bytes; 0 means unset. Wins over the share.
    pub bytes: u32,
}
