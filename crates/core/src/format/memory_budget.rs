//! The amount of memory that a file's writer suggests to readers.

/// The amount of memory that a file's writer suggests for reading it. It is only a hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct MemoryBudget {
    /// A share of the available memory in basis points (10000 is all of it); 0 means unset.
    pub basis_points: u16,
    /// A fixed number of bytes, which overrides the share; 0 means unset.
    pub bytes: u32,
}

impl MemoryBudget {
    /// Returns a share in basis points, and a number of bytes that overrides it; 0 means unset.
    pub fn new(basis_points: u16, bytes: u32) -> Self {
        Self { basis_points, bytes }
    }
}
