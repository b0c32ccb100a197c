//! Machines: computations that request bytes and listings instead of reading them.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::ByteRange;
use crate::error::Result;

/// A range of bytes in one object.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Location {
    /// The number of the array that the object belongs to, where several arrays are read as one. Formats
    /// always set 0.
    pub member: u32,
    /// The object's path in the folder of the array, with `/` between parts; empty if the array is a
    /// single object.
    pub object: Arc<str>,
    /// The bytes of the object.
    pub range: ByteRange,
}

/// The object of payloads that need no bytes, because their codec has them: reading it returns none.
pub const NOTHING: &str = "nothing:";

impl Location {
    /// Returns the location of `range` in an object of the array, with `member` 0.
    pub fn new(object: impl Into<Arc<str>>, range: impl Into<ByteRange>) -> Self {
        Self { member: 0, object: object.into(), range: range.into() }
    }

    /// Returns the offset of the first byte; 0 if it is unknown before the object is read.
    pub fn start(&self) -> u64 {
        self.range.start().unwrap_or_default()
    }
}

/// An object or folder in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// The last part of the path.
    pub name: String,
    /// The length of an object in bytes; `None` for a folder.
    pub size: Option<u64>,
}

impl Entry {
    /// Returns an object of `size` bytes; a folder without a size.
    pub fn new(name: impl Into<String>, size: Option<u64>) -> Self {
        Self { name: name.into(), size }
    }
}

/// The next request of a [`Machine`], or its result. A driver serves each request, so a further one would be a
/// breaking change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step<T> {
    /// Fetch these bytes and call `step` again with [`Replies::Bytes`].
    Read(Vec<Location>),
    /// Fetch these bytes of objects that may be absent, and call `step` again with
    /// [`Replies::IfPresent`].
    ReadIfPresent(Vec<Location>),
    /// List these folders, without the contents of their subfolders, and call `step` again with
    /// [`Replies::Listings`]. A missing folder has no entries. The empty path is the array's own folder.
    List(Vec<String>),
    /// Finished; `step` must not be called again.
    Done(T),
}

impl<T> Step<T> {
    /// Requests ranges of the array's only object.
    pub fn read(ranges: impl IntoIterator<Item = Range<u64>>) -> Self {
        let object: Arc<str> = "".into();
        let at = |range: Range<u64>| Location::new(Arc::clone(&object), range);
        Self::Read(ranges.into_iter().map(at).collect())
    }
}

/// The replies to the last request, in the order of the request.
#[derive(Debug, Clone, Default)]
pub enum Replies {
    /// Nothing was requested yet.
    #[default]
    Start,
    /// Exactly the bytes of each location; a suffix has fewer if its object is shorter.
    Bytes(Vec<Bytes>),
    /// Exactly the bytes of each location; `None` where the object is absent.
    IfPresent(Vec<Option<Bytes>>),
    /// The entries of each folder, in any order.
    Listings(Vec<Vec<Entry>>),
}

impl Replies {
    /// Returns the bytes of [`Replies::Bytes`]; empty for other replies.
    pub fn into_bytes(self) -> Vec<Bytes> {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Start | Self::IfPresent(_) | Self::Listings(_) => vec![],
        }
    }

    /// Returns the bytes of [`Replies::IfPresent`]; empty for other replies.
    pub fn into_present(self) -> Vec<Option<Bytes>> {
        match self {
            Self::IfPresent(bytes) => bytes,
            Self::Start | Self::Bytes(_) | Self::Listings(_) => vec![],
        }
    }

    /// Returns the entries of [`Replies::Listings`]; empty for other replies.
    pub fn into_listings(self) -> Vec<Vec<Entry>> {
        match self {
            Self::Listings(listings) => listings,
            Self::Start | Self::Bytes(_) | Self::IfPresent(_) => vec![],
        }
    }
}

/// A sans-IO computation over the objects of one array.
pub trait Machine {
    /// The result of the computation.
    type Output;

    /// Returns the name of what the machine reads, for errors of reads that fail.
    fn subject(&self) -> &'static str {
        "metadata"
    }

    /// Takes the replies to the last request, and returns the next request or the result.
    ///
    /// # Errors
    /// `Corrupt` or `Unsupported` if the bytes are not what the format promises.
    fn step(&mut self, replies: Replies) -> Result<Step<Self::Output>>;
}
