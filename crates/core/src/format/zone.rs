//! Chunk statistics: bounds, sum and number of NULLs of a chunk, as its writer stored them.

use std::fmt::Debug;

/// The stored bytes of one element, padded with zeros at the end.
pub type ZoneBound = [u8; 8];

/// Copies the bytes of a stored element into a bound; leaves out bytes after the eighth.
pub fn bound(element: &[u8]) -> ZoneBound {
    let mut bound = ZoneBound::default();
    let len = element.len().min(bound.len());
    bound[..len].copy_from_slice(&element[..len]);
    bound
}

/// The statistics of one variable over all cells of one chunk.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Zone {
    /// The number of cells that are NULL, NaN or the fill value.
    pub null_count: u64,
    /// The least and the greatest of the other elements; `None` if there are no others, or no stored bounds.
    pub bounds: Option<(ZoneBound, ZoneBound)>,
    /// The sum of the other elements; `None` if the writer stored none that can be relied on.
    pub sum: Option<Sum>,
}

impl Zone {
    /// Returns statistics without a sum.
    pub fn new(null_count: u64, bounds: Option<(ZoneBound, ZoneBound)>) -> Self {
        Self { null_count, bounds, sum: None }
    }

    /// Sets the sum.
    #[must_use]
    pub fn with_sum(self, sum: Option<Sum>) -> Self {
        Self { sum, ..self }
    }
}

/// A sum of all cells that are not NULL, exact for integers.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Sum {
    /// The sum of signed integers.
    Signed(i64),
    /// The sum of unsigned integers.
    Unsigned(u64),
    /// The sum of floats as a double; finite.
    Float(f64),
}

impl Sum {
    /// Returns the nearest double.
    pub fn to_f64(self) -> f64 {
        match self {
            Self::Signed(sum) => sum as f64,
            Self::Unsigned(sum) => sum as f64,
            Self::Float(sum) => sum,
        }
    }
}

/// The chunk statistics of one variable of an array.
pub trait Zones: Debug + Send + Sync {
    /// Returns the statistics of the chunk with this row-major number, if there are any.
    fn zone(&self, chunk: u64) -> Option<Zone>;
}
