//! What a writer noted about the values of a chunk.

use std::fmt::Debug;

/// A value in its stored form: the first bytes, as many as the element has.
pub type Bound = [u8; 8];

/// The bytes of a stored element, which has no more than a bound.
pub(crate) fn bound(element: &[u8]) -> Bound {
    let mut bound = Bound::default();
    let len = element.len().min(bound.len());
    bound[..len].copy_from_slice(&element[..len]);
    bound
}

/// What is known of one value over all cells of one chunk.
#[derive(Debug, Clone, PartialEq)]
pub struct Zone {
    /// Cells that are NULL, NaN or fill.
    pub null_count: u64,
    /// The least and the greatest of the others; absent if there are none, or they were not noted.
    pub bounds: Option<(Bound, Bound)>,
    /// The sum of the others, if it was noted.
    pub sum: Option<Sum>,
}

/// A sum of all cells that are not NULL, exact for integers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sum {
    /// Of signed integers.
    Signed(i64),
    /// Of unsigned integers.
    Unsigned(u64),
    /// Of floats, in doubles; finite.
    Float(f64),
}

impl Sum {
    /// The nearest double.
    pub fn to_f64(self) -> f64 {
        match self {
            Self::Signed(sum) => sum as f64,
            Self::Unsigned(sum) => sum as f64,
            Self::Float(sum) => sum,
        }
    }
}

/// The zones of one value of an array.
pub trait Zones: Debug + Send + Sync {
    /// What is known of the chunk with this row-major number.
    fn zone(&self, chunk: u64) -> Option<Zone>;
}
