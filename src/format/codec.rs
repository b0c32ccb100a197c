//! Payload codecs, with output that never exceeds what is promised.
//!
//! [`Codec`] knows what several formats share. What only one of them does to its tiles is a
//! [`PayloadDecoder`] of that format, which this module does not know.

use std::any::Any;
use std::fmt;
use std::io::Read;
use std::sync::Arc;

use bytes::Bytes;

use crate::error::{Error, Result};

/// How a payload is encoded.
#[derive(Debug, Clone)]
pub enum Codec {
    /// The tile's bytes as they are.
    Raw,
    /// One or more zstd frames.
    Zstd,
    /// As one format alone does it.
    Custom(Arc<dyn PayloadDecoder>),
}

/// How a format undoes what it did to a tile before it was stored.
///
/// It is made once for all tiles of a kind, and shared by the threads that decode them. `Display` names the
/// encoding for people: `gzip 6, byteshuffle`.
pub trait PayloadDecoder: fmt::Debug + fmt::Display + Send + Sync {
    /// Turns the `stored` bytes, which begin at byte `offset` of their object, into the tile's: at most
    /// `raw_len` bytes, in the memory of `spare` where it is large enough.
    ///
    /// Decoders borrow further memory from [`Scratch::lend`], so that a tile costs no allocation.
    /// Memory that is reserved before anything is decoded must be in proportion to `stored`, whatever
    /// `raw_len` says.
    ///
    /// # Errors
    /// `Corrupt` if `stored` does not decode to exactly `raw_len` bytes.
    fn decode(
        &self,
        stored: &Bytes,
        raw_len: u64,
        offset: u64,
        spare: Vec<u8>,
        scratch: &mut Scratch,
    ) -> Result<Decoded>;
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
pub struct Decoded {
    /// The tile's bytes.
    pub bytes: Bytes,
    /// Where each value begins, if the encoding of values of variable length says so itself.
    pub offsets: Option<Vec<u64>>,
}

/// Memory that decoding reuses from tile to tile.
#[derive(Default)]
pub struct Scratch {
    zstd: Option<zstd::bulk::Decompressor<'static>>,
    /// State of the [`PayloadDecoder`] that decoded the last tile.
    custom: Option<Box<dyn Any + Send + Sync>>,
}

impl Scratch {
    /// Lends what a [`PayloadDecoder`] keeps from tile to tile, which begins as `T::default()`. It
    /// begins anew after another decoder has kept something else.
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

/// Tiles that claim to have shrunk by more than this are not allocated before they are decoded.
const HONEST_RATIO: u64 = 64;

impl Codec {
    /// Whether decoding hands the stored bytes back as they are.
    pub fn is_raw(&self) -> bool {
        matches!(self, Self::Raw)
    }

    /// Turns the `stored` bytes, which begin at byte `offset` of their object, into the tile's, in the
    /// memory of `spare` where it is large enough: fresh memory for each tile costs a good part of
    /// what decompressing does.
    ///
    /// A raw payload is handed back without a copy. Any other is decoded into at most `raw_len` bytes
    /// and a little more, whatever it claims: a decompression bomb costs no more than an honest
    /// chunk, and a small payload that is said to be huge reserves nothing.
    ///
    /// # Errors
    /// `Corrupt` if the payload does not decode to exactly `raw_len` bytes.
    pub fn decode(
        &self,
        stored: Bytes,
        raw_len: u64,
        offset: u64,
        spare: Vec<u8>,
        scratch: &mut Scratch,
    ) -> Result<Decoded> {
        let corrupt = |found: &str| {
            let expected = format!("{found}, expected {raw_len} bytes");
            Error::corrupt("chunk payload", offset, expected)
        };
        let (tile, after) = match self {
            Self::Raw => (Decoded { bytes: stored, offsets: None }, ""),
            Self::Zstd => {
                let tile = decode_zstd(&stored, raw_len, spare, scratch)?.map_err(|error| {
                    corrupt(&format!("a zstd payload that does not decode ({error})"))
                })?;
                (Decoded { bytes: tile.into(), offsets: None }, " after decompression")
            }
            Self::Custom(decoder) => {
                (decoder.decode(&stored, raw_len, offset, spare, scratch)?, " after decoding")
            }
        };
        if tile.bytes.len() as u64 != raw_len {
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
        .map_err(|_| Error::unsupported(format!("a tile of {raw_len} bytes")))?;
    Ok(if raw_len <= (stored.len() as u64).saturating_mul(HONEST_RATIO) {
        decode_at_once(stored, len, spare, scratch)
    } else {
        decode_growing(stored, raw_len)
    })
}

/// Decodes into memory for `raw_len` bytes; if `spare` has more, a longer frame may fill it.
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

/// Decodes into memory that grows with what really comes out.
fn decode_growing(stored: &[u8], raw_len: u64) -> std::io::Result<Vec<u8>> {
    let mut tile = Vec::new();
    // One byte more than promised tells a longer frame.
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

    /// Turns bytes round, with a count of the tiles in its scratch.
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
        ) -> Result<Decoded> {
            scratch.lend(|tiles: &mut u64| *tiles += 1);
            spare.clear();
            spare.extend(stored.iter().rev());
            Ok(Decoded { bytes: spare.into(), offsets: None })
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
