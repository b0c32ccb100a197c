//! Computations that never read: they say which bytes and listings they need, and get them.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::ByteRange;
use crate::error::Result;

/// Some bytes of one object.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Location {
    /// The number of its array, where several are read as one; a format always says 0.
    pub member: u32,
    /// The object's path in the folder of the array, with `/` between parts; empty for a format that
    /// is a single object.
    pub object: Arc<str>,
    /// Which of its bytes.
    pub range: ByteRange,
}

impl Location {
    /// These bytes of an object of the array.
    pub fn new(object: impl Into<Arc<str>>, range: impl Into<ByteRange>) -> Self {
        Self { member: 0, object: object.into(), range: range.into() }
    }

    /// Where the bytes begin; 0 if that is not known before the object is read.
    pub fn start(&self) -> u64 {
        self.range.start().unwrap_or_default()
    }
}

/// Something in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The last part of its path.
    pub name: String,
    /// Bytes of an object; `None` for a folder.
    pub size: Option<u64>,
}

/// What a [`Machine`] wants next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step<T> {
    /// Fetch these bytes and call `step` again with [`Replies::Bytes`].
    Read(Vec<Location>),
    /// Fetch these bytes, of objects that may be absent, and call `step` again with
    /// [`Replies::IfPresent`].
    ReadIfPresent(Vec<Location>),
    /// List these folders, not what is below them, and call `step` again with [`Replies::Listings`]. A
    /// folder that is not there has no entries; the empty path is the array's own folder.
    List(Vec<String>),
    /// Finished; `step` must not be called again.
    Done(T),
}

impl<T> Step<T> {
    /// Asks for ranges of the only object.
    pub(super) fn read(ranges: impl IntoIterator<Item = Range<u64>>) -> Self {
        let object: Arc<str> = "".into();
        let at = |range: Range<u64>| Location::new(Arc::clone(&object), range);
        Self::Read(ranges.into_iter().map(at).collect())
    }
}

/// What was asked for, in the order asked.
#[derive(Debug, Clone, Default)]
pub enum Replies {
    /// Nothing was asked for yet.
    #[default]
    Start,
    /// Exactly the bytes of each location; fewer only of a suffix of an object that has no more.
    Bytes(Vec<Bytes>),
    /// Exactly the bytes of each location; `None` where the object is absent.
    IfPresent(Vec<Option<Bytes>>),
    /// The entries of each folder, in any order.
    Listings(Vec<Vec<Entry>>),
}

impl Replies {
    /// The bytes, if bytes were asked for; else none.
    pub fn into_bytes(self) -> Vec<Bytes> {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Start | Self::IfPresent(_) | Self::Listings(_) => vec![],
        }
    }

    /// The bytes of objects that may be absent, if such were asked for; else none.
    pub fn into_present(self) -> Vec<Option<Bytes>> {
        match self {
            Self::IfPresent(bytes) => bytes,
            Self::Start | Self::Bytes(_) | Self::Listings(_) => vec![],
        }
    }

    /// The listings, if listings were asked for; else none.
    pub fn into_listings(self) -> Vec<Vec<Entry>> {
        match self {
            Self::Listings(listings) => listings,
            Self::Start | Self::Bytes(_) | Self::IfPresent(_) => vec![],
        }
    }
}

/// A sans-IO computation over the objects of one array.
pub trait Machine {
    /// What it computes.
    type Output;

    /// Takes the replies to what was asked for last and says what to do next.
    ///
    /// # Errors
    /// `Corrupt` or `Unsupported` if the bytes are not what the format promises.
    fn step(&mut self, replies: Replies) -> Result<Step<Self::Output>>;
}
