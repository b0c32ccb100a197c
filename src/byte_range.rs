//! Which bytes of an object are meant, said before or after its length is known.

use std::ops::Range;

/// Some bytes of an object.
///
/// ```
/// use gridfusion::io::ByteRange;
///
/// let object = 100; // bytes
/// assert_eq!(ByteRange::from(10..20).within(object), 10..20);
/// assert_eq!(ByteRange::Suffix(16).within(object), 84..100);
/// assert_eq!(ByteRange::Whole.within(object), 0..100);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ByteRange {
    /// From the first of these to before the last.
    Bounded(Range<u64>),
    /// The last so many bytes of the object, or all of them if it has fewer.
    Suffix(u64),
    /// All of them, however many there are.
    Whole,
}

impl From<Range<u64>> for ByteRange {
    fn from(range: Range<u64>) -> Self {
        Self::Bounded(range)
    }
}

impl ByteRange {
    /// Where the bytes begin; `None` if that depends on the object's length.
    pub fn start(&self) -> Option<u64> {
        match self {
            Self::Bounded(range) => Some(range.start),
            Self::Suffix(_) => None,
            Self::Whole => Some(0),
        }
    }

    /// The number of bytes, or of a suffix the most that there can be; `None` for a whole object.
    pub fn most(&self) -> Option<u64> {
        match self {
            Self::Bounded(range) => Some(range.end.saturating_sub(range.start)),
            Self::Suffix(len) => Some(*len),
            Self::Whole => None,
        }
    }

    /// The bytes of an object of `size` bytes. Bounds are not checked against the size: whoever
    /// wrote them down was wrong, and should be told.
    pub fn within(&self, size: u64) -> Range<u64> {
        match self {
            Self::Bounded(range) => range.clone(),
            Self::Suffix(len) => size.saturating_sub(*len)..size,
            Self::Whole => 0..size,
        }
    }
}
