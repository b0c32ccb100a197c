//! A range of bytes in an object, whose length may not be known yet.

use std::ops::Range;

/// A range of bytes in an object.
///
/// ```
/// use gridfusion_core::io::ByteRange;
///
/// let object = 100; // bytes
/// assert_eq!(ByteRange::from(10..20).within(object), 10..20);
/// assert_eq!(ByteRange::Suffix(16).within(object), 84..100);
/// assert_eq!(ByteRange::Whole.within(object), 0..100);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ByteRange {
    /// The bytes from the start up to, but not including, the end.
    Bounded(Range<u64>),
    /// This number of bytes at the end of the object; all of its bytes if it has fewer.
    Suffix(u64),
    /// All bytes of the object, however many there are.
    Whole,
}

impl From<Range<u64>> for ByteRange {
    fn from(range: Range<u64>) -> Self {
        Self::Bounded(range)
    }
}

impl ByteRange {
    /// Returns the offset of the first byte; `None` if it depends on the object's length.
    pub fn start(&self) -> Option<u64> {
        match self {
            Self::Bounded(range) => Some(range.start),
            Self::Suffix(_) => None,
            Self::Whole => Some(0),
        }
    }

    /// Returns the number of bytes, or the greatest possible number for a suffix; `None` for a whole object.
    pub fn most(&self) -> Option<u64> {
        match self {
            Self::Bounded(range) => Some(range.end.saturating_sub(range.start)),
            Self::Suffix(len) => Some(*len),
            Self::Whole => None,
        }
    }

    /// Returns the range in an object of `size` bytes. A bounded range is not cut to the size, so that the
    /// caller can report bounds beyond it.
    pub fn within(&self, size: u64) -> Range<u64> {
        match self {
            Self::Bounded(range) => range.clone(),
            Self::Suffix(len) => size.saturating_sub(*len)..size,
            Self::Whole => 0..size,
        }
    }
}
