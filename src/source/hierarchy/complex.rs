//! Complex numbers as two columns.
//!
//! ```text
//!   decoded   re im re im re im      value 0: re re re      value 1: im im im
//! ```

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::format::{Codec, Decoded, PayloadDecoder, Scratch, StoredChunk};

/// Returns a chunk of complex numbers with only one of their halves, of `width` bytes: the real part (0) or the
/// imaginary part (1).
pub(super) fn half(mut chunk: StoredChunk, part: usize, width: u64) -> StoredChunk {
    for payload in chunk.layers.iter_mut().flat_map(|layer| layer.payloads_mut()) {
        let whole = std::mem::replace(&mut payload.codec, Codec::Raw);
        payload.codec = Codec::Custom(Arc::new(Half { whole, part, width: width as usize }));
        payload.raw_len /= 2;
    }
    chunk
}

/// Decodes complex numbers, and keeps one half of each.
#[derive(Debug)]
struct Half {
    whole: Codec,
    /// 0 for the real part, 1 for the imaginary part.
    part: usize,
    /// Bytes of a part.
    width: usize,
}

impl fmt::Display for Half {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.whole.fmt(f)
    }
}

impl PayloadDecoder for Half {
    fn decode(
        &self,
        stored: &Bytes,
        raw_len: u64,
        offset: u64,
        mut spare: Vec<u8>,
        scratch: &mut Scratch,
    ) -> Result<Decoded> {
        let both = raw_len.checked_mul(2);
        let both = both.ok_or_else(|| Error::internal("a chunk of more than 2^63 bytes"))?;
        let whole = self.whole.decode(stored.clone(), both, offset, vec![], scratch)?;
        spare.clear();
        for number in whole.bytes.chunks_exact(2 * self.width) {
            spare.extend_from_slice(&number[self.part * self.width..][..self.width]);
        }
        Ok(Decoded { bytes: spare.into(), offsets: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{ByteRange, Layer, Location, Payload};

    #[test]
    fn halves_of_complex_numbers() {
        let numbers: Vec<u8> = [1.0_f32, -1.0, 2.0, -2.0].iter().flat_map(|it| it.to_le_bytes()).collect();
        let at = Location::new("c/0", ByteRange::Whole);
        let chunk = StoredChunk { layers: vec![Layer::whole(Payload::new(at, 16, Codec::Raw))] };
        for (part, expected) in [(0, [1.0_f32, 2.0]), (1, [-1.0, -2.0])] {
            let half = half(chunk.clone(), part, 4);
            let payload = &half.layers[0].values;
            let decode = |stored: Vec<u8>| payload.decode(stored.into(), vec![9; 3], &mut Scratch::default());
            let decoded = decode(numbers.clone()).unwrap();
            assert_eq!(decoded.bytes, expected.map(f32::to_le_bytes).concat());
            assert!(decode(numbers[..12].to_vec()).is_err());
        }
    }
}
