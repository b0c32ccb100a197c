//! Complex numbers as two columns.
//!
//! ```text
//!   decoded   re im re im re im      value 0: re re re      value 1: im im im
//! ```
//!
//! A number that is missing as a whole becomes NaN in both columns, because neither half alone tells.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use super::options::HierarchyView;
use crate::hierarchy::{CellType, Variable};
use gridfusion_core::format::{
    Codec, DecodedPayload, ElementType, PayloadDecoder, Scratch, StoredChunk,
};
use gridfusion_core::{Error, Result};

/// Returns the complex number that stands for missing data, if a variable has one: its fill value. A number with a
/// NaN equals no other, so it stands for nothing.
pub(super) fn missing_number(variable: &Variable, view: &HierarchyView) -> Option<Vec<u8>> {
    let CellType::Complex(element) = variable.cell else { return None };
    let halves = variable.fill.chunks(element.size() as usize);
    let has_nan = halves.map(|half| element.rank(half)).any(|rank| rank.is_none());
    let is_missing = variable.fill_is_missing && view.read.fill_as_null && !has_nan;
    is_missing.then(|| variable.fill.clone())
}

/// Returns NaN of this width, little-endian.
pub(super) fn nan(width: usize) -> Vec<u8> {
    if width == 4 { f32::NAN.to_le_bytes().to_vec() } else { f64::NAN.to_le_bytes().to_vec() }
}

/// Returns a chunk of complex numbers with only one of their halves, of type `element`: the real part (0) or the
/// imaginary part (1). Numbers that are `missing`, in little-endian bytes, become NaN.
pub(super) fn half(
    mut chunk: StoredChunk,
    part: usize,
    element: ElementType,
    missing: Option<&[u8]>,
) -> StoredChunk {
    let width = element.size() as usize;
    let nan = nan(width);
    for payload in chunk.layers.iter_mut().flat_map(|layer| layer.payloads_mut()) {
        let whole = std::mem::replace(&mut payload.codec, Codec::Raw);
        let is_big = !payload.byte_order.is_little();
        let as_stored = |bytes: &[u8]| -> Vec<u8> {
            let words = bytes.chunks(width);
            words.flat_map(|word| if is_big { reversed(word) } else { word.to_vec() }).collect()
        };
        let missing = missing.map(|missing| (as_stored(missing), as_stored(&nan)));
        payload.codec = Codec::Custom(Arc::new(Half { whole, part, width, missing }));
        payload.raw_len /= 2;
    }
    chunk
}

fn reversed(word: &[u8]) -> Vec<u8> {
    word.iter().rev().copied().collect()
}

/// Decodes complex numbers, and keeps one half of each.
#[derive(Debug)]
struct Half {
    whole: Codec,
    /// 0 for the real part, 1 for the imaginary part.
    part: usize,
    /// Bytes of a part.
    width: usize,
    /// A number that is missing, and NaN, as stored.
    missing: Option<(Vec<u8>, Vec<u8>)>,
}

impl fmt::Display for Half {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.whole.fmt(f)
    }
}

impl PayloadDecoder for Half {
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
        let both = raw_len.checked_mul(2);
        let both = both.ok_or_else(|| Error::internal("a chunk of more than 2^63 bytes"))?;
        let whole = self.whole.decode(stored.clone(), both, offset, vec![], scratch)?;
        spare.clear();
        for number in whole.bytes.chunks_exact(2 * self.width) {
            let half = &number[self.part * self.width..][..self.width];
            match &self.missing {
                Some((missing, nan)) if number == missing => spare.extend_from_slice(nan),
                _ => spare.extend_from_slice(half),
            }
        }
        Ok(DecodedPayload::new(spare.into(), None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gridfusion_core::format::{ByteOrder, ByteRange, Layer, Location, Payload};

    #[test]
    fn halves_of_complex_numbers() {
        let numbers: Vec<u8> =
            [1.0_f32, -1.0, 2.0, -2.0].iter().flat_map(|it| it.to_le_bytes()).collect();
        let at = Location::new("c/0", ByteRange::Whole);
        let chunk = StoredChunk::new(vec![Layer::whole(Payload::new(at, 16, Codec::Raw))]);
        for (part, expected) in [(0, [1.0_f32, 2.0]), (1, [-1.0, -2.0])] {
            let half = half(chunk.clone(), part, ElementType::F32, None);
            let payload = &half.layers[0].values;
            let decode = |stored: Vec<u8>| {
                payload.decode(stored.into(), vec![9; 3], &mut Scratch::default())
            };
            let decoded = decode(numbers.clone()).unwrap();
            assert_eq!(decoded.bytes, expected.map(f32::to_le_bytes).concat());
            assert!(decode(numbers[..12].to_vec()).is_err());
        }
    }

    #[test]
    fn a_missing_number_is_nan_in_both_halves() {
        let big = |numbers: &[f32]| -> Vec<u8> {
            numbers.iter().flat_map(|it| it.to_be_bytes()).collect()
        };
        let at = Location::new("c/0", ByteRange::Whole);
        let mut payload = Payload::new(at, 16, Codec::Raw);
        payload.byte_order = ByteOrder::big(4);
        let chunk = StoredChunk::new(vec![Layer::whole(payload)]);
        let missing: Vec<u8> = [2.0_f32, -2.0].iter().flat_map(|it| it.to_le_bytes()).collect();
        for (part, first) in [(0, 2.0_f32), (1, 3.0)] {
            let half = half(chunk.clone(), part, ElementType::F32, Some(&missing));
            let stored = big(&[2.0, 3.0, 2.0, -2.0]);
            let decoded =
                half.layers[0].values.decode(stored.into(), vec![], &mut Scratch::default());
            let bytes = decoded.unwrap().bytes;
            assert_eq!(bytes[..4], first.to_le_bytes());
            assert_eq!(bytes[4..], f32::NAN.to_le_bytes());
        }
    }
}
