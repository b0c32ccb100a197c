//! Where the cells of one value of one chunk are stored, and what lies over what.
//!
//! ```text
//!   chunk  ┌────────────┐   layers, oldest first    ┌────────────┐      cells of no layer have the
//!          │            │ =                         │   ┌────────┼──┐   array's fill value
//!          │            │                           └───┼────────┘  │
//!          └────────────┘                               └───────────┘
//! ```

use std::ops::Range;

use bytes::Bytes;

use super::codec::{Codec, Decoded, Scratch};
use super::machine::Location;
use crate::error::Result;

/// One value of one chunk: cells of a later layer lie over those of earlier ones.
///
/// A `.tet` chunk has exactly one layer; a tile of a TileDB array has one per fragment that wrote
/// cells of it.
#[derive(Debug, Clone, Default)]
pub struct StoredChunk {
    /// Oldest first.
    pub layers: Vec<Layer>,
}

impl StoredChunk {
    /// Whether a single layer is the chunk, as it is.
    pub fn is_whole(&self) -> bool {
        matches!(self.layers.as_slice(), [layer] if layer.placement.is_none())
    }
}

/// One stored piece of a chunk.
#[derive(Debug, Clone)]
pub struct Layer {
    /// Which cells of the chunk it holds, and where they are in the stored tile; `None` if the tile is
    /// the chunk, in row-major order.
    pub placement: Option<Placement>,
    /// The cells; of values of variable length, where each begins in `content`, as `u64` bytes.
    pub values: Payload,
    /// The bytes of values of variable length.
    pub content: Option<Payload>,
    /// One byte per cell, 0 for NULL, if cells can be NULL.
    pub validity: Option<Payload>,
}

impl Layer {
    /// What must be read, in the order in which it is decoded.
    pub fn payloads(&self) -> impl Iterator<Item = &Payload> {
        std::iter::once(&self.values).chain(&self.content).chain(&self.validity)
    }

    /// [`Layer::payloads`], to be changed.
    pub fn payloads_mut(&mut self) -> impl Iterator<Item = &mut Payload> {
        std::iter::once(&mut self.values).chain(&mut self.content).chain(&mut self.validity)
    }
}

/// How the cells of a stored tile lie in a chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// The cells of the chunk that the layer holds: a range per axis, relative to the chunk.
    pub region: Vec<Range<u64>>,
    /// Elements per axis of the stored tile.
    pub tile_shape: Vec<u64>,
    /// The cell of the tile that is the region's first.
    pub origin: Vec<u64>,
    /// Whether the tile's first axis varies fastest.
    pub column_major: bool,
}

/// Stored bytes and how to make a tile of them.
#[derive(Debug, Clone)]
pub struct Payload {
    /// Where they are.
    pub at: Location,
    /// Bytes of the decoded tile.
    pub raw_len: u64,
    /// How they are encoded.
    pub codec: Codec,
}

impl Payload {
    /// Turns the stored bytes into the tile's; see [`Codec::decode`].
    ///
    /// # Errors
    /// `Corrupt` if they do not decode to exactly `raw_len` bytes.
    pub fn decode(&self, stored: Bytes, spare: Vec<u8>, scratch: &mut Scratch) -> Result<Decoded> {
        self.codec.decode(stored, self.raw_len, self.at.range.start, spare, scratch)
    }
}
