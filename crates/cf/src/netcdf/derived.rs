//! Tiles that are made of tiles of other datasets: every n-th of their cells, or cells of another type.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use super::conversion::Conversion;
use gridfusion_core::format::{Codec, DecodedPayload, Payload, PayloadDecoder, Scratch};
use gridfusion_core::{Error, Result};

/// Every n-th cell of a tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Picked {
    /// Bytes of a cell.
    pub(super) width: u64,
    /// The distance of the cells.
    pub(super) every: u64,
    /// The first cell.
    pub(super) first: u64,
}

impl Picked {
    /// Returns the payload of these cells of a payload of cells of one width.
    pub(super) fn of(self, stored: Payload) -> Payload {
        let raw_len = stored.raw_len / self.every.max(1);
        derived(stored, raw_len, Change::Picked(self))
    }

    fn apply(self, cells: &[u8]) -> Vec<u8> {
        let (width, every) = (self.width.max(1) as usize, self.every.max(1) as usize);
        let first = self.first as usize * width;
        let groups = cells.chunks_exact(width * every);
        groups.filter_map(|group| group.get(first..first + width)).flatten().copied().collect()
    }
}

/// Returns the payload of converted cells.
pub(super) fn converted(stored: Payload, conversion: Conversion) -> Payload {
    let cells = stored.raw_len / conversion.from.size();
    derived(stored, cells.saturating_mul(conversion.to.size()), Change::Converted(conversion))
}

fn derived(stored: Payload, raw_len: u64, change: Change) -> Payload {
    let at = stored.at.clone();
    let codec = Codec::Custom(Arc::new(Derived { stored, change }));
    Payload::new(at, raw_len, codec)
}

/// A decoder that changes the cells of another.
#[derive(Debug)]
struct Derived {
    stored: Payload,
    change: Change,
}

#[derive(Debug, Clone, Copy)]
enum Change {
    Picked(Picked),
    Converted(Conversion),
}

impl fmt::Display for Derived {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.stored.codec.fmt(f)
    }
}

impl PayloadDecoder for Derived {
    fn decode(
        &self,
        stored: &Bytes,
        _raw_len: u64,
        _offset: u64,
        spare: Vec<u8>,
        scratch: &mut Scratch,
    ) -> Result<DecodedPayload> {
        let tile = self.stored.decode(stored.clone(), spare, scratch)?;
        if tile.offsets.is_some() {
            return Err(Error::internal("cells of any length are not derived"));
        }
        let bytes = match self.change {
            Change::Picked(picked) => picked.apply(&tile.bytes),
            Change::Converted(conversion) => conversion.apply(&tile.bytes)?,
        };
        Ok(DecodedPayload::new(bytes.into(), None))
    }
}

#[cfg(test)]
mod tests {
    use gridfusion_core::format::ByteOrder;

    use super::*;
    use gridfusion_core::format::{ByteRange, ElementType, Location};

    #[test]
    fn cells_are_picked_and_converted() {
        let at = Location::new("", ByteRange::Whole);
        let big: Vec<u8> = (0..12_i16).flat_map(i16::to_be_bytes).collect();
        let stored = Payload::new(at, 24, Codec::Raw).with_byte_order(ByteOrder::big(2));
        let picked = Picked { width: 2, every: 4, first: 3 }.of(stored);
        assert_eq!(picked.raw_len, 6);
        let conversion = Conversion { from: ElementType::I16, to: ElementType::F64 };
        let both = converted(picked, conversion);
        let decode = |bytes: &[u8]| {
            both.decode(Bytes::copy_from_slice(bytes), vec![1; 5], &mut Scratch::default())
        };
        assert_eq!(
            decode(&big).unwrap().bytes,
            [3.0_f64, 7.0, 11.0].map(f64::to_le_bytes).concat()
        );
        assert!(decode(&big[..22]).is_err());
    }
}
