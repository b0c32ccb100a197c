//! Payload codecs, with output that never exceeds what the index promises.

use std::fmt;
use std::io::Read;

use bytes::Bytes;

use super::Layer;
use crate::error::{Error, Result};

/// How a payload is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Codec {
    /// The tile's bytes as they are.
    Raw,
    /// One or more zstd frames.
    Zstd,
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Raw => "raw",
            Self::Zstd => "zstd",
        })
    }
}

/// Decodes into memory for `raw_len` bytes; if `spare` has more, a longer frame may fill it.
fn decode_at_once(payload: &[u8], raw_len: usize, spare: Vec<u8>) -> std::io::Result<Vec<u8>> {
    let mut tile = spare;
    tile.clear();
    tile.reserve_exact(raw_len);
    zstd::bulk::Decompressor::new()?.decompress_to_buffer(payload, &mut tile)?;
    Ok(tile)
}

/// Tiles that claim to have shrunk by more than this are not allocated before they are decoded.
const HONEST_RATIO: u64 = 64;

impl Layer {
    /// Turns the stored `payload` into the tile's bytes, in the memory of `spare` where it is large
    /// enough: fresh memory for each tile costs a good part of what decompressing does.
    ///
    /// A raw payload is handed back without a copy. A compressed one is decoded into at most
    /// `raw_len` bytes and one more, whatever its frame claims: a decompression bomb costs no more
    /// than an honest chunk, and a small payload that is said to be huge reserves nothing.
    ///
    /// # Errors
    /// `Corrupt` if the payload does not decode to exactly `raw_len` bytes.
    pub fn decode(&self, payload: Bytes, spare: Vec<u8>) -> Result<Bytes> {
        match self.codec {
            Codec::Raw if payload.len() as u64 == self.raw_len => Ok(payload),
            Codec::Raw => Err(self.corrupt(&format!("{} bytes", payload.len()))),
            Codec::Zstd => self.decode_zstd(&payload, spare),
        }
    }

    fn decode_zstd(&self, payload: &[u8], spare: Vec<u8>) -> Result<Bytes> {
        let raw_len = usize::try_from(self.raw_len)
            .map_err(|_| Error::unsupported(format!("a tile of {} bytes", self.raw_len)))?;
        let tile = if self.raw_len <= (payload.len() as u64).saturating_mul(HONEST_RATIO) {
            decode_at_once(payload, raw_len, spare)
        } else {
            self.decode_growing(payload)
        };
        let tile = tile.map_err(|error| {
            self.corrupt(&format!("a zstd payload that does not decode ({error})"))
        })?;
        if tile.len() != raw_len {
            return Err(self.corrupt(&format!("{} bytes after decompression", tile.len())));
        }
        Ok(tile.into())
    }

    /// Decodes into memory that grows with what really comes out.
    fn decode_growing(&self, payload: &[u8]) -> std::io::Result<Vec<u8>> {
        let mut tile = Vec::new();
        // One byte more than promised tells a longer frame.
        let limit = self.raw_len.saturating_add(1);
        zstd::stream::Decoder::with_buffer(payload)?.take(limit).read_to_end(&mut tile)?;
        Ok(tile)
    }

    fn corrupt(&self, found: &str) -> Error {
        let expected = format!("{found}, expected {} bytes", self.raw_len);
        Error::corrupt("chunk payload", self.payload.start, expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(codec: Codec, raw_len: u64) -> Layer {
        Layer { payload: 100..200, raw_len, codec }
    }

    #[test]
    fn zstd_gives_the_tile_back() {
        let tile: Vec<u8> = (0..10_000).map(|i| (i / 7) as u8).collect();
        let mut packed = zstd::encode_all(&tile[..5_000], 3).unwrap();
        packed.extend(zstd::encode_all(&tile[5_000..], 3).unwrap());
        let decoded = layer(Codec::Zstd, 10_000).decode(packed.into(), vec![7; 3]).unwrap();
        assert_eq!(decoded, tile);
    }

    #[test]
    fn spare_memory_of_any_size_is_reused_or_not() {
        let tile: Vec<u8> = (0..5_000).map(|i| (i / 7) as u8).collect();
        let packed = Bytes::from(zstd::encode_all(&tile[..], 3).unwrap());
        for spare in [0, 4_999, 5_000, 50_000] {
            let spare = vec![0xAA; spare];
            let (place, fits) = (spare.as_ptr(), spare.capacity() >= 5_000);
            let decoded = layer(Codec::Zstd, 5_000).decode(packed.clone(), spare).unwrap();
            assert_eq!(decoded, tile);
            assert!(!fits || decoded.as_ptr() == place);
            let roomy = vec![0; 50_000];
            assert!(layer(Codec::Zstd, 4_000).decode(packed.clone(), roomy).is_err());
        }
    }

    #[test]
    fn a_bomb_is_cut_off_and_a_short_frame_is_an_error() {
        let packed = Bytes::from(zstd::encode_all(&vec![0_u8; 50_000_000][..], 19).unwrap());
        assert!(packed.len() < 10_000);
        for (raw_len, ok) in [(50_000_000, true), (50_000_001, false), (1_000, false)] {
            assert_eq!(layer(Codec::Zstd, raw_len).decode(packed.clone(), Vec::new()).is_ok(), ok);
        }
        assert!(layer(Codec::Zstd, 1 << 60).decode(packed, Vec::new()).is_err());
        let error =
            layer(Codec::Zstd, 8).decode(Bytes::from_static(b"garbage!"), Vec::new()).unwrap_err();
        assert_eq!(error.offset(), Some(100));
        assert!(layer(Codec::Raw, 8).decode(Bytes::from_static(b"short"), Vec::new()).is_err());
    }
}
