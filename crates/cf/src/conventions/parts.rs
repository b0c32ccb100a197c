//! Parts of cells, as columns of their own: fields of compounds, and halves of complex numbers.
//!
//! ```text
//!   decoded   ├─ station ─┤├ temp ┤├─ station ─┤├ temp ┤      part 1: temp temp
//! ```

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::strided::copy_strided;
use gridfusion_core::format::{Codec, DecodedPayload, PayloadDecoder, Scratch, StoredChunk};
use gridfusion_core::{Error, Result};

/// A part of each cell.
#[derive(Debug, Clone, Default)]
pub(super) struct Part {
    /// The first byte in the cell.
    pub(super) offset: usize,
    /// Bytes of the part.
    pub(super) width: usize,
    /// A cell that is missing, and what the part of it then is: words of `width` bytes, little-endian.
    pub(super) missing: Option<(Vec<u8>, Vec<u8>)>,
}

impl Part {
    /// Returns the part of words whose bytes are reversed.
    fn reversed(mut self) -> Self {
        for words in self.missing.iter_mut().flat_map(|(cell, part)| [cell, part]) {
            words.chunks_mut(self.width.max(1)).for_each(<[u8]>::reverse);
        }
        self
    }
}

/// Returns a chunk of cells of `cell` bytes with only one part of each, for each part.
pub(super) fn parts(mut chunk: StoredChunk, cell: usize, wanted: &[Part]) -> Vec<StoredChunk> {
    let mut codecs: Vec<(Arc<Codec>, u64)> = vec![];
    for payload in chunk.layers.iter_mut().flat_map(|layer| layer.payloads_mut()) {
        let codec = std::mem::replace(&mut payload.codec, Codec::Raw);
        codecs.push((Arc::new(codec), payload.raw_len));
    }
    let last = wanted.iter().rposition(|part| part.width > 0);
    let of_part = |(number, part): (usize, &Part)| {
        let mut chunk = chunk.clone();
        let payloads = chunk.layers.iter_mut().flat_map(|layer| layer.payloads_mut());
        for (payload, (whole, raw_len)) in payloads.zip(&codecs) {
            let is_little = payload.byte_order.is_little();
            payload.raw_len = raw_len / (cell.max(1) as u64) * part.width as u64;
            payload.codec = Codec::Custom(Arc::new(PartOf {
                whole: Arc::clone(whole),
                cell,
                part: if is_little { part.clone() } else { part.clone().reversed() },
                is_last: last == Some(number),
            }));
        }
        chunk
    };
    wanted.iter().enumerate().map(of_part).collect()
}

/// Decodes cells, and keeps one part of each.
#[derive(Debug)]
struct PartOf {
    /// The codec of the cells, which all parts of a chunk share.
    whole: Arc<Codec>,
    /// Bytes of a cell.
    cell: usize,
    part: Part,
    /// Whether no other part of the chunk is decoded after this one.
    is_last: bool,
}

/// The cells that were decoded last: other parts of the same chunk are mostly decoded next.
#[derive(Default)]
struct LastCells(Option<(Arc<Codec>, Bytes, Bytes)>);

/// Each thread keeps this many bytes of cells. More are decoded again for each part. It is the size of chunks that the NetCDF
/// library chooses.
const MOST_KEPT: usize = 16 << 20;

impl fmt::Display for PartOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.whole.fmt(f)
    }
}

impl PartOf {
    /// Returns the decoded cells.
    fn cells(&self, stored: &Bytes, len: u64, offset: u64, scratch: &mut Scratch) -> Result<Bytes> {
        if self.whole.is_raw() {
            return Ok(self.whole.decode(stored.clone(), len, offset, vec![], scratch)?.bytes);
        }
        let same = |it: &Bytes| (it.as_ptr(), it.len()) == (stored.as_ptr(), stored.len());
        let known = scratch.lend(|last: &mut LastCells| {
            // The bytes that are kept cannot be those of another chunk at the same place in memory.
            let known = last.0.take();
            let known =
                known.filter(|(codec, from, _)| Arc::ptr_eq(codec, &self.whole) && same(from));
            let cells = known.as_ref().map(|(.., cells)| cells.clone());
            last.0 = known.filter(|_| !self.is_last);
            cells
        });
        if let Some(known) = known {
            return Ok(known);
        }
        let cells = self.whole.decode(stored.clone(), len, offset, vec![], scratch)?.bytes;
        if !self.is_last && cells.len() <= MOST_KEPT {
            let kept = (Arc::clone(&self.whole), stored.clone(), cells.clone());
            scratch.lend(|last: &mut LastCells| last.0 = Some(kept));
        }
        Ok(cells)
    }
}

impl PayloadDecoder for PartOf {
    fn held_bytes(&self) -> Option<u64> {
        self.whole.held_bytes()
    }

    fn decode(
        &self,
        stored: &Bytes,
        raw_len: u64,
        offset: u64,
        mut spare: Vec<u8>,
        scratch: &mut Scratch,
    ) -> Result<DecodedPayload> {
        let Part { offset: at, width, missing } = &self.part;
        let count = raw_len / ((*width).max(1) as u64);
        let len = count.checked_mul(self.cell as u64);
        let len = len.ok_or_else(|| Error::internal("a chunk of more than 2^63 bytes"))?;
        let cells = self.cells(stored, len, offset, scratch)?;
        let outside = || Error::internal("a part outside of its cell");
        let size = self.cell.max(1);
        let first = cells.get((*at).min(cells.len())..).filter(|_| at + width <= size);
        spare.clear();
        spare.resize(cells.len() / size * width, 0);
        copy_strided(first.ok_or_else(outside)?, size, *width, &mut spare);
        if let Some((missing, instead)) = missing {
            let parts = spare.chunks_exact_mut((*width).max(1));
            let is_missing = |(cell, _): &(&[u8], _)| *cell == missing.as_slice();
            for (_, part) in cells.chunks_exact(size).zip(parts).filter(is_missing) {
                part.copy_from_slice(instead);
            }
        }
        Ok(DecodedPayload::new(spare.into(), None))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use gridfusion_core::format::{ByteOrder, ByteRange, Layer, Location, Payload};

    fn chunk(len: u64, codec: Codec, byte_order: ByteOrder) -> StoredChunk {
        let payload = Payload::new(Location::new("c/0", ByteRange::Whole), len, codec);
        StoredChunk::new(vec![Layer::whole(payload.with_byte_order(byte_order))])
    }

    fn part(offset: usize, width: usize) -> Part {
        Part { offset, width, missing: None }
    }

    /// Copies bytes, and counts how often.
    #[derive(Debug, Default)]
    struct Counted(AtomicUsize);

    impl fmt::Display for Counted {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("counted")
        }
    }

    impl PayloadDecoder for Counted {
        fn decode(
            &self,
            stored: &Bytes,
            raw_len: u64,
            _: u64,
            _: Vec<u8>,
            _: &mut Scratch,
        ) -> Result<DecodedPayload> {
            self.0.fetch_add(1, Ordering::Relaxed);
            match stored.len() as u64 == raw_len {
                true => Ok(DecodedPayload::new(stored.clone(), None)),
                false => Err(Error::internal("other bytes")),
            }
        }
    }

    #[test]
    fn each_part_has_its_bytes_of_each_cell_and_cells_are_decoded_once() {
        let counted = Arc::new(Counted::default());
        let custom = Codec::Custom(Arc::clone(&counted) as Arc<dyn PayloadDecoder>);
        let wanted = [part(4, 2), part(0, 0), part(0, 4)];
        let stored: Bytes = (0..24).collect::<Vec<u8>>().into();
        for (codec, decoded_once) in [(Codec::Raw, 0), (custom, 1)] {
            let chunks = parts(chunk(24, codec, ByteOrder::Little), 8, &wanted);
            let mut scratch = Scratch::default();
            let mut decoded = |part: usize, stored: &Bytes| {
                let payload = &chunks[part].layers[0].values;
                payload.decode(stored.clone(), vec![9; 3], &mut scratch).map(|it| it.bytes)
            };
            assert_eq!(decoded(0, &stored).unwrap(), [4, 5, 12, 13, 20, 21][..]);
            let expected = [0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19];
            assert_eq!(decoded(2, &stored).unwrap(), expected[..]);
            assert_eq!(counted.0.swap(0, Ordering::Relaxed), decoded_once);
            // The last part keeps nothing.
            assert_eq!(decoded(2, &stored).unwrap(), expected[..]);
            assert_eq!(decoded(2, &stored).unwrap(), expected[..]);
            assert_eq!(counted.0.swap(0, Ordering::Relaxed), 2 * decoded_once);
            // Other bytes are not taken for those that were decoded before.
            decoded(0, &stored).unwrap();
            let zeros = Bytes::from(vec![0; 24]);
            assert_eq!(decoded(0, &zeros).unwrap(), [0; 6][..]);
            assert!(decoded(0, &stored.slice(..16)).is_err());
            counted.0.store(0, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_missing_cell_has_other_parts() {
        let big = |numbers: &[f32]| -> Vec<u8> {
            numbers.iter().flat_map(|it| it.to_be_bytes()).collect()
        };
        let missing: Vec<u8> = [2.0_f32, -2.0].iter().flat_map(|it| it.to_le_bytes()).collect();
        let nan = f32::NAN.to_le_bytes().to_vec();
        let of = |offset| Part { missing: Some((missing.clone(), nan.clone())), ..part(offset, 4) };
        let chunks = parts(chunk(16, Codec::Raw, ByteOrder::big(4)), 8, &[of(0), of(4)]);
        for (chunk, first) in chunks.iter().zip([2.0_f32, 3.0]) {
            let stored = big(&[2.0, 3.0, 2.0, -2.0]);
            let decoded =
                chunk.layers[0].values.decode(stored.into(), vec![], &mut Scratch::default());
            let bytes = decoded.unwrap().bytes;
            assert_eq!(bytes[..4], first.to_le_bytes());
            assert_eq!(bytes[4..], f32::NAN.to_le_bytes());
        }
    }
}
