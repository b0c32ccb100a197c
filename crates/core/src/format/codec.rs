//! Payload codecs, whose output never exceeds the promised length.
//!
//! [`Codec`] lists the encodings that several formats share. An encoding of one format alone implements
//! [`PayloadDecoder`], so this module depends on no format.

use std::any::Any;
use std::fmt;
use std::io::Read;
use std::sync::Arc;

use bytes::Bytes;

use crate::error::{Error, Result};

/// The encoding of a payload.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Codec {
    /// The tile's bytes, without encoding.
    Raw,
    /// One or more zstd frames.
    Zstd,
    /// An encoding of one format alone.
    Custom(Arc<dyn PayloadDecoder>),
}

/// A decoder for an encoding of one format alone.
///
/// One decoder serves all tiles of a kind, and the threads that decode them share it. `Display` names the
/// encoding for people: `gzip 6, byteshuffle`.
pub trait PayloadDecoder: fmt::Debug + fmt::Display + Send + Sync {
    /// Decodes `stored`, which begins at byte `offset` of its object, into at most `raw_len` bytes. Reuses
    /// the memory of `spare` if it is large enough.
    ///
    /// Decoders borrow further memory from [`Scratch::lend`], so that a tile costs no allocation.
    /// Memory that is reserved before decoding must be in proportion to the length of `stored`, because a
    /// damaged file can give any `raw_len`.
    ///
    /// # Errors
    /// `Corrupt` if `stored` does not decode to exactly `raw_len` bytes; but see
    /// [`knows_length`](Self::knows_length).
    fn decode(
        &self,
        stored: &Bytes,
        raw_len: u64,
        offset: u64,
        spare: Vec<u8>,
        scratch: &mut Scratch,
    ) -> Result<DecodedPayload>;

    /// Whether the decoded length is known before decoding. It is not for values of variable length that are
    /// stored with their lengths. Then `raw_len` is an estimate, and the decoder itself limits the length.
    fn knows_length(&self) -> bool {
        true
    }

    /// Returns the number of stored bytes that the decoder itself holds, so that none are read; `None` if it holds none.
    fn held_bytes(&self) -> Option<u64> {
        None
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Raw => f.write_str("raw"),
            Self::Zstd => f.write_str("zstd"),
            Self::Custom(decoder) => decoder.fmt(f),
        }
    }
}

/// A decoded payload.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DecodedPayload {
    /// The tile's bytes.
    pub bytes: Bytes,
    /// The offset of each value in `bytes`, if the encoding of variable-length values contains their
    /// lengths.
    pub offsets: Option<Vec<u64>>,
}

impl DecodedPayload {
    /// Returns the bytes of a tile, with the offsets of values of variable length if the encoding has them.
    pub fn new(bytes: Bytes, offsets: Option<Vec<u64>>) -> Self {
        Self { bytes, offsets }
    }
}

/// Memory that decoding reuses from tile to tile.
#[derive(Default)]
pub struct Scratch {
    zstd: Option<zstd::bulk::Decompressor<'static>>,
    /// State of the [`PayloadDecoder`] that decoded the last tile.
    custom: Option<Box<dyn Any + Send + Sync>>,
}

impl Scratch {
    /// Lends the state that a [`PayloadDecoder`] keeps from tile to tile. The state is `T::default()` at
    /// first, and again after a decoder with another type of state.
    pub fn lend<T, R>(&mut self, decode: impl FnOnce(&mut T) -> R) -> R
    where
        T: Any + Default + Send + Sync,
    {
        let mut kept = match self.custom.take().map(|kept| kept.downcast::<T>()) {
            Some(Ok(kept)) => kept,
            Some(Err(_)) | None => Box::<T>::default(),
        };
        let decoded = decode(&mut kept);
        self.custom = Some(kept);
        decoded
    }
}

impl fmt::Debug for Scratch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scratch").finish_non_exhaustive()
    }
}

/// The greatest ratio of tile to payload bytes at which a tile is allocated before it is decoded. Most data
/// is compressed less. A payload of 1 KiB reserves at most 64 KiB, whatever length its index promises.
const MAX_PREALLOCATED_RATIO: u64 = 64;

impl Codec {
    /// Whether decoding returns the stored bytes unchanged.
    pub fn is_raw(&self) -> bool {
        matches!(self, Self::Raw)
    }

    /// Returns the number of stored bytes that the decoder has itself; see [`PayloadDecoder::held_bytes`].
    pub fn held_bytes(&self) -> Option<u64> {
        match self {
            Self::Raw | Self::Zstd => None,
            Self::Custom(decoder) => decoder.held_bytes(),
        }
    }

    /// Whether the decoded length is known before decoding; see [`PayloadDecoder::knows_length`].
    pub fn knows_length(&self) -> bool {
        match self {
            Self::Raw | Self::Zstd => true,
            Self::Custom(decoder) => decoder.knows_length(),
        }
    }

    /// Decodes `stored`, which begins at byte `offset` of its object, into the tile's bytes. Reuses the
    /// memory of `spare` if it is large enough: fresh memory for each tile costs a good part of what
    /// decompressing costs.
    ///
    /// A raw payload is returned without a copy. Any other fills at most about `raw_len` bytes, or `spare`
    /// if that is larger, so a decompression bomb costs no more than an honest chunk. A small payload with
    /// a huge `raw_len` reserves nothing.
    ///
    /// # Errors
    /// `Corrupt` if the payload does not decode to exactly `raw_len` bytes, unless the decoder does not
    /// [know the length](PayloadDecoder::knows_length).
    pub fn decode(
        &self,
        stored: Bytes,
        raw_len: u64,
        offset: u64,
        spare: Vec<u8>,
        scratch: &mut Scratch,
    ) -> Result<DecodedPayload> {
        let corrupt = |found: &str| {
            let expected = format!("{found}, expected {raw_len} bytes");
            Error::corrupt("chunk payload", offset, expected)
        };
        let (tile, after) = match self {
            Self::Raw => (DecodedPayload { bytes: stored, offsets: None }, ""),
            Self::Zstd => {
                let tile = decode_zstd(&stored, raw_len, spare, scratch)?.map_err(|error| {
                    corrupt(&format!("a zstd payload that does not decode ({error})"))
                })?;
                (DecodedPayload { bytes: tile.into(), offsets: None }, " after decompression")
            }
            Self::Custom(decoder) => {
                (decoder.decode(&stored, raw_len, offset, spare, scratch)?, " after decoding")
            }
        };
        if self.knows_length() && tile.bytes.len() as u64 != raw_len {
            return Err(corrupt(&format!("{} bytes{after}", tile.bytes.len())));
        }
        Ok(tile)
    }
}

fn decode_zstd(
    stored: &[u8],
    raw_len: u64,
    spare: Vec<u8>,
    scratch: &mut Scratch,
) -> Result<std::io::Result<Vec<u8>>> {
    let len = usize::try_from(raw_len)
        .map_err(|_| Error::unsupported(format!("a tile of {raw_len} bytes is too large")))?;
    Ok(if raw_len <= (stored.len() as u64).saturating_mul(MAX_PREALLOCATED_RATIO) {
        decode_at_once(stored, len, spare, scratch)
    } else {
        decode_growing(stored, raw_len)
    })
}

/// Decodes into memory for `raw_len` bytes. If `spare` has more, a longer frame may fill all of it.
fn decode_at_once(
    stored: &[u8],
    raw_len: usize,
    spare: Vec<u8>,
    scratch: &mut Scratch,
) -> std::io::Result<Vec<u8>> {
    let mut tile = spare;
    tile.clear();
    tile.reserve_exact(raw_len);
    let decompressor = match &mut scratch.zstd {
        Some(decompressor) => decompressor,
        none => none.insert(zstd::bulk::Decompressor::new()?),
    };
    decompressor.decompress_to_buffer(stored, &mut tile)?;
    Ok(tile)
}

/// Decodes into memory that grows with the output, so a false `raw_len` costs nothing. Slower, because the
/// memory is moved when it grows.
fn decode_growing(stored: &[u8], raw_len: u64) -> std::io::Result<Vec<u8>> {
    let mut tile = Vec::new();
    // One byte more than promised reveals a frame that is too long.
    let limit = raw_len.saturating_add(1);
    zstd::stream::Decoder::with_buffer(stored)?.take(limit).read_to_end(&mut tile)?;
    Ok(tile)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(codec: &Codec, raw_len: u64, stored: Bytes, spare: Vec<u8>) -> Result<Bytes> {
        let decoded = codec.decode(stored, raw_len, 100, spare, &mut Scratch::default())?;
        assert!(decoded.offsets.is_none());
        Ok(decoded.bytes)
    }

    #[test]
    fn zstd_gives_the_tile_back() {
        let tile: Vec<u8> = (0..10_000).map(|i| (i / 7) as u8).collect();
        let mut packed = zstd::encode_all(&tile[..5_000], 3).unwrap();
        packed.extend(zstd::encode_all(&tile[5_000..], 3).unwrap());
        let decoded = decode(&Codec::Zstd, 10_000, packed.into(), vec![7; 3]).unwrap();
        assert_eq!(decoded, tile);
    }

    #[test]
    fn spare_memory_of_any_size_is_reused_or_not() {
        let tile: Vec<u8> = (0..5_000).map(|i| (i / 7) as u8).collect();
        let packed = Bytes::from(zstd::encode_all(&tile[..], 3).unwrap());
        for spare in [0, 4_999, 5_000, 50_000] {
            let spare = vec![0xAA; spare];
            let (place, fits) = (spare.as_ptr(), spare.capacity() >= 5_000);
            let decoded = decode(&Codec::Zstd, 5_000, packed.clone(), spare).unwrap();
            assert_eq!(decoded, tile);
            assert!(!fits || decoded.as_ptr() == place);
            let roomy = vec![0; 50_000];
            assert!(decode(&Codec::Zstd, 4_000, packed.clone(), roomy).is_err());
        }
    }

    #[test]
    fn a_bomb_is_cut_off_and_a_short_frame_is_an_error() {
        let packed = Bytes::from(zstd::encode_all(&vec![0_u8; 50_000_000][..], 19).unwrap());
        assert!(packed.len() < 10_000);
        for (raw_len, ok) in [(50_000_000, true), (50_000_001, false), (1_000, false)] {
            assert_eq!(decode(&Codec::Zstd, raw_len, packed.clone(), Vec::new()).is_ok(), ok);
        }
        assert!(decode(&Codec::Zstd, 1 << 60, packed, Vec::new()).is_err());
        let error =
            decode(&Codec::Zstd, 8, Bytes::from_static(b"garbage!"), Vec::new()).unwrap_err();
        assert_eq!(error.offset(), Some(100));
        assert!(decode(&Codec::Raw, 8, Bytes::from_static(b"short"), Vec::new()).is_err());
    }

    /// A decoder that reverses bytes, and counts tiles in its scratch.
    #[derive(Debug)]
    struct Reversed;

    impl fmt::Display for Reversed {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("reversed")
        }
    }

    impl PayloadDecoder for Reversed {
        fn decode(
            &self,
            stored: &Bytes,
            _raw_len: u64,
            _offset: u64,
            mut spare: Vec<u8>,
            scratch: &mut Scratch,
        ) -> Result<DecodedPayload> {
            scratch.lend(|tiles: &mut u64| *tiles += 1);
            spare.clear();
            spare.extend(stored.iter().rev());
            Ok(DecodedPayload { bytes: spare.into(), offsets: None })
        }
    }

    #[test]
    fn a_format_brings_its_own_decoder() {
        let codec = Codec::Custom(Arc::new(Reversed));
        assert_eq!((codec.to_string().as_str(), codec.is_raw()), ("reversed", false));
        let mut scratch = Scratch::default();
        for tiles in 1..4_u64 {
            let stored = Bytes::from_static(b"elit");
            let tile = codec.decode(stored, 4, 0, vec![1; 9], &mut scratch).unwrap();
            assert_eq!(tile.bytes, b"tile"[..]);
            assert_eq!(scratch.lend(|count: &mut u64| *count), tiles);
        }
        let short = codec.decode(Bytes::from_static(b"eli"), 4, 0, vec![], &mut scratch);
        assert!(short.unwrap_err().to_string().contains("3 bytes after decoding, expected 4"));
    }

    #[test]
    fn scratch_is_kept_for_the_decoder_that_asks_again() {
        let mut scratch = Scratch::default();
        scratch.lend(|kept: &mut Vec<u8>| kept.extend([1, 2]));
        let place = scratch.lend(|kept: &mut Vec<u8>| kept.as_ptr());
        assert!(scratch.lend(|kept: &mut Vec<u8>| kept.as_ptr() == place && *kept == [1, 2]));
        assert!(scratch.lend(|kept: &mut String| kept.is_empty()));
        assert!(scratch.lend(|kept: &mut Vec<u8>| kept.is_empty()));
    }
}
