//! How a chunk of one variable is stored: in layers, of which newer ones override older ones.
//!
//! ```text
//!   chunk  ┌────────────┐   layers, oldest first    ┌────────────┐      cells of no layer have the
//!          │            │ =                         │   ┌────────┼──┐   array's fill value
//!          │            │                           └───┼────────┘  │
//!          └────────────┘                               └───────────┘
//! ```

use std::ops::Range;

use bytes::Bytes;

use super::codec::{Codec, DecodedPayload, Scratch};
use super::machine::Location;
use super::{ByteOrder, StorageOrder};
use crate::error::Result;

/// The stored layers of one chunk of one variable. Cells of a later layer override those of earlier ones.
///
/// A `.tet` chunk has exactly one layer. A tile of a TileDB array has one per fragment that wrote cells
/// of it.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct StoredChunk {
    /// Oldest first.
    pub layers: Vec<Layer>,
    /// The form of the cells: 0 for that of the variable, or the number of another one that some files have.
    pub form: u32,
}

impl StoredChunk {
    /// Returns a chunk of these layers, oldest first.
    pub fn new(layers: Vec<Layer>) -> Self {
        Self { layers, form: 0 }
    }

    /// Whether a single layer holds the whole chunk in row-major order.
    pub fn is_whole(&self) -> bool {
        matches!(self.layers.as_slice(), [layer] if layer.placement.is_none())
    }

    /// Returns the payloads of all layers, in the order in which they are decoded.
    pub fn payloads(&self) -> impl Iterator<Item = &Payload> {
        self.layers.iter().flat_map(Layer::payloads)
    }
}

/// One stored piece of a chunk.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Layer {
    /// The cells of the chunk that the layer holds, and their place in the stored tile. `None` if the tile
    /// is the whole chunk in row-major order.
    pub placement: Option<Placement>,
    /// The elements; for values of variable length, the offset of each in `content`, as `u64`. Without
    /// `content`, the codec returns values of variable length with their offsets.
    pub values: Payload,
    /// The bytes of values of variable length, unless `values` has them.
    pub content: Option<Payload>,
    /// One byte per cell, 0 for NULL, if cells can be NULL.
    pub validity: Option<Payload>,
    /// Whether one of its objects may be absent. If so, the layer is left out: its cells come from earlier
    /// layers, or are the array's fill value.
    pub may_be_absent: bool,
}

impl Layer {
    /// Returns a layer that is the whole chunk in row-major order, without NULLs.
    pub fn whole(values: Payload) -> Self {
        Self { placement: None, values, content: None, validity: None, may_be_absent: false }
    }

    /// Sets which cells of the chunk the layer holds, and where they are in the stored tile.
    #[must_use]
    pub fn with_placement(self, placement: Option<Placement>) -> Self {
        Self { placement, ..self }
    }

    /// Sets the bytes of values of variable length.
    #[must_use]
    pub fn with_content(self, content: Option<Payload>) -> Self {
        Self { content, ..self }
    }

    /// Sets which cells are NULL.
    #[must_use]
    pub fn with_validity(self, validity: Option<Payload>) -> Self {
        Self { validity, ..self }
    }

    /// Sets whether one of its objects may be absent.
    #[must_use]
    pub fn with_may_be_absent(self, may_be_absent: bool) -> Self {
        Self { may_be_absent, ..self }
    }

    /// Returns the payloads to read, in the order in which they are decoded.
    pub fn payloads(&self) -> impl Iterator<Item = &Payload> {
        std::iter::once(&self.values).chain(&self.content).chain(&self.validity)
    }

    /// Returns [`Layer::payloads`] as mutable references.
    pub fn payloads_mut(&mut self) -> impl Iterator<Item = &mut Payload> {
        std::iter::once(&mut self.values).chain(&mut self.content).chain(&mut self.validity)
    }
}

/// The mapping from cells of a stored tile to cells of a chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Placement {
    /// The cells of the chunk that the layer holds: a range per axis, relative to the chunk.
    pub region: Vec<Range<u64>>,
    /// Elements per axis of the stored tile. The one element of an axis of length 1 is repeated for all cells of
    /// the region.
    pub tile_shape: Vec<u64>,
    /// The coordinates of the region's first cell in the stored tile.
    pub origin: Vec<u64>,
    /// The order of the cells in the stored tile.
    pub order: StorageOrder,
}

impl Placement {
    /// Maps the first cells of a stored tile of `tile_shape`, in row-major order, to the cells of `region` in a chunk.
    pub fn new(region: Vec<Range<u64>>, tile_shape: Vec<u64>) -> Self {
        let origin = vec![0; tile_shape.len()];
        Self { region, tile_shape, origin, order: StorageOrder::RowMajor }
    }

    /// Sets the coordinates of the region's first cell in the stored tile.
    #[must_use]
    pub fn with_origin(self, origin: Vec<u64>) -> Self {
        Self { origin, ..self }
    }

    /// Sets the order of the cells in the stored tile.
    #[must_use]
    pub fn with_order(self, order: StorageOrder) -> Self {
        Self { order, ..self }
    }
}

/// The location of stored bytes, and how a tile is made of them: by decoding, and then by reversing
/// big-endian words.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Payload {
    /// The location of the stored bytes.
    pub at: Location,
    /// The length of the decoded tile in bytes.
    pub raw_len: u64,
    /// The encoding of the stored bytes.
    pub codec: Codec,
    /// The byte order of the decoded words.
    pub byte_order: ByteOrder,
}

impl Payload {
    /// Returns a payload of little-endian words.
    pub fn new(at: Location, raw_len: u64, codec: Codec) -> Self {
        Self { at, raw_len, codec, byte_order: ByteOrder::Little }
    }

    /// Sets the byte order of the decoded words.
    #[must_use]
    pub fn with_byte_order(self, byte_order: ByteOrder) -> Self {
        Self { byte_order, ..self }
    }

    /// Returns the number of stored bytes. For an object whose length is unknown before it is read, the
    /// length of the decoded tile is the estimate.
    pub fn stored_len(&self) -> u64 {
        self.at.range.most().unwrap_or(self.raw_len)
    }

    /// Whether the stored bytes are the tile's bytes, so that it needs no memory of its own.
    pub fn is_view(&self) -> bool {
        self.codec.is_raw() && self.byte_order.is_little()
    }

    /// Turns the stored bytes into the tile's bytes; see [`Codec::decode`].
    ///
    /// # Errors
    /// `Corrupt` if the stored bytes do not decode to exactly `raw_len` bytes.
    pub fn decode(
        &self,
        stored: Bytes,
        spare: Vec<u8>,
        scratch: &mut Scratch,
    ) -> Result<DecodedPayload> {
        // Raw bytes need no memory for decoding, only for reversed words.
        let (for_codec, for_words) = match self.codec.is_raw() {
            true => (vec![], spare),
            false => (spare, vec![]),
        };
        let decoded =
            self.codec.decode(stored, self.raw_len, self.at.start(), for_codec, scratch)?;
        let bytes = self.byte_order.to_little(decoded.bytes, for_words)?;
        Ok(DecodedPayload { bytes, ..decoded })
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
            // Owned bytes, and shared ones as of a mapping.
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
