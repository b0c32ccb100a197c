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
use super::{ByteOrder, StorageOrder};
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
    /// Whether one of its objects may be absent. Then the layer is left out, and its cells are those of
    /// the layers before it, or the array's fill value.
    pub may_be_absent: bool,
}

impl Layer {
    /// A layer that is the chunk, in row-major order, of cells that are never NULL.
    pub fn whole(values: Payload) -> Self {
        Self { placement: None, values, content: None, validity: None, may_be_absent: false }
    }

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
    /// How the tile's cells follow one another.
    pub order: StorageOrder,
}

/// Stored bytes and how to make a tile of them: decoded first, and then in the order of tiles.
#[derive(Debug, Clone)]
pub struct Payload {
    /// Where they are.
    pub at: Location,
    /// Bytes of the decoded tile.
    pub raw_len: u64,
    /// How they are encoded.
    pub codec: Codec,
    /// How the bytes of its words follow one another, once decoded.
    pub byte_order: ByteOrder,
}

impl Payload {
    /// Bytes that are in the order of tiles.
    pub fn new(at: Location, raw_len: u64, codec: Codec) -> Self {
        Self { at, raw_len, codec, byte_order: ByteOrder::Little }
    }

    /// The number of stored bytes; of an object whose length is not known before it is read, as many as
    /// the tile has, for a guess.
    pub fn stored_len(&self) -> u64 {
        self.at.range.most().unwrap_or(self.raw_len)
    }

    /// Whether the stored bytes are the tile's, as they are.
    pub fn is_view(&self) -> bool {
        self.codec.is_raw() && self.byte_order.is_little()
    }

    /// Turns the stored bytes into the tile's; see [`Codec::decode`].
    ///
    /// # Errors
    /// `Corrupt` if they do not decode to exactly `raw_len` bytes.
    pub fn decode(&self, stored: Bytes, spare: Vec<u8>, scratch: &mut Scratch) -> Result<Decoded> {
        // Bytes that are stored as they are need no memory before they are turned round.
        let (for_codec, for_words) = match self.codec.is_raw() {
            true => (vec![], spare),
            false => (spare, vec![]),
        };
        let decoded =
            self.codec.decode(stored, self.raw_len, self.at.start(), for_codec, scratch)?;
        let bytes = self.byte_order.to_little(decoded.bytes, for_words)?;
        Ok(Decoded { bytes, ..decoded })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::ByteRange;

    #[test]
    fn big_endian_words_are_turned_round_after_decoding() {
        let tile: Vec<u8> = (0..4_000_u32).flat_map(u32::to_le_bytes).collect();
        let stored: Vec<u8> = (0..4_000_u32).flat_map(u32::to_be_bytes).collect();
        let packed = zstd::encode_all(&stored[..], 1).unwrap();
        for (codec, stored) in [(Codec::Raw, stored), (Codec::Zstd, packed)] {
            let at = Location::new("tile", ByteRange::Whole);
            let payload =
                Payload { byte_order: ByteOrder::big(4), ..Payload::new(at, 16_000, codec) };
            assert!(!payload.is_view());
            assert_eq!(payload.stored_len(), 16_000);
            // Shared, as the bytes of a mapping are; and owned.
            let (stored, shared) = (Bytes::from(stored.clone()), Bytes::from(stored));
            let keep = shared.clone();
            for stored in [stored, shared] {
                let decoded = payload.decode(stored, vec![7; 9], &mut Scratch::default()).unwrap();
                assert_eq!(decoded.bytes, tile);
            }
            assert_ne!(keep, tile);
        }
    }
}
