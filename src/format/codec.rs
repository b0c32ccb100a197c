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

/// Tiles that claim to have shrunk by more than this are not allocated before they are decoded.
const HONEST_RATIO: u64 = 64;

impl Layer {
    /// Turns the stored `payload` into the tile's bytes.
    ///
    /// A raw payload is handed back without a copy. A compressed one is decoded into at most
    /// `raw_len` bytes and one more, whatever its frame claims: a decompression bomb costs no more
    /// than an honest chunk, and a small payload that is said to be huge reserves nothing.
    ///
    /// # Errors
    /// `Corrupt` if the payload does not decode to exactly `raw_len` bytes.
    pub fn decode(&self, payload: Bytes) -> Result<Bytes> {
        match self.codec {
            Codec::Raw if payload.len() as u64 == self.raw_len => Ok(payload),
            Codec::Raw => Err(self.corrupt(&format!("{} bytes", payload.len()))),
            Codec::Zstd => self.decode_zstd(&payload),
        }
    }

    fn decode_zstd(&self, payload: &[u8]) -> Result<Bytes> {
        let raw_len = usize::try_from(self.raw_len)
            .map_err(|_| Error::unsupported(format!("a tile of {} bytes", self.raw_len)))?;
        let tile = if self.raw_len <= (payload.len() as u64).saturating_mul(HONEST_RATIO) {
            zstd::bulk::decompress(payload, raw_len)
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
        let decoded = layer(Codec::Zstd, 10_000).decode(packed.into()).unwrap();
        assert_eq!(decoded, tile);
    }

    #[test]
    fn a_bomb_is_cut_off_and_a_short_frame_is_an_error() {
        let packed = Bytes::from(zstd::encode_all(&vec![0_u8; 50_000_000][..], 19).unwrap());
        assert!(packed.len() < 10_000);
        for (raw_len, ok) in [(50_000_000, true), (50_000_001, false), (1_000, false)] {
            assert_eq!(layer(Codec::Zstd, raw_len).decode(packed.clone()).is_ok(), ok);
        }
        assert!(layer(Codec::Zstd, 1 << 60).decode(packed).is_err());
        let error = layer(Codec::Zstd, 8).decode(Bytes::from_static(b"garbage!")).unwrap_err();
        assert_eq!(error.offset(), Some(100));
        assert!(layer(Codec::Raw, 8).decode(Bytes::from_static(b"short")).is_err());
    }
}
