//! Array formats: what stored bytes mean. No I/O, no Arrow, no DataFusion.
//!
//! A format never reads. It is a [`Machine`] that says which bytes it needs next; whoever drives it
//! fetches them from a mapping, an object store or a test, and hands them back:
//!
//! ```text
//!                    step([])                  step([bytes, bytes])
//!   driver ── machine ───────▶ Read([0..64, 900..1000]) ─────▶ ... ─────▶ Done(value)
//!                                  │          ▲
//!                                  ▼          │
//!                            ByteSource::read(ranges)
//! ```
//!
//! Reading a chunk has the same shape for every format: *locate* (a machine that ends in
//! [`StoredChunk`]s, the byte ranges of each) and then *decode* ([`Layer::decode`]).

mod codec;
mod element;
pub mod tet;

use std::ops::Range;

use bytes::Bytes;

pub use codec::Codec;
pub use element::ElementType;

use crate::error::Result;

/// What a [`Machine`] wants next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step<T> {
    /// Fetch these byte ranges of the object and call `step` again with one reply for each.
    Read(Vec<Range<u64>>),
    /// Finished; `step` must not be called again.
    Done(T),
}

/// A sans-IO computation over the bytes of one object.
pub trait Machine {
    /// What it computes.
    type Output;

    /// Takes the replies to the ranges asked for last (none at first), each exactly as long as its
    /// range, and says what to do next.
    ///
    /// # Errors
    /// `Corrupt` or `Unsupported` if the bytes are not what the format promises.
    fn step(&mut self, replies: Vec<Bytes>) -> Result<Step<Self::Output>>;
}

/// Where one chunk of one value is stored.
///
/// A chunk is an ordered list of layers: cells of a later layer lie over those of earlier ones.
/// A `.tet` chunk has exactly one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredChunk {
    /// Oldest first; never empty.
    pub layers: Vec<Layer>,
}

/// One stored piece of a chunk: a whole tile of little-endian elements in row-major order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// The payload's bytes in the object.
    pub payload: Range<u64>,
    /// Bytes of the decoded tile.
    pub raw_len: u64,
    /// How the payload is encoded.
    pub codec: Codec,
}
