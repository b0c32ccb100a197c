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

impl Layer {
    /// Turns the stored `payload` into the tile's bytes.
    ///
    /// A raw payload is handed back without a copy. A compressed one is decoded into at most
    /// `raw_len` bytes, whatever its frame claims: a decompression bomb costs no more than an
    /// honest chunk.
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
        // Most tiles shrink less than eightfold and are allocated at once. Others grow as they really
        // decode: what an index claims about a small payload reserves nothing.
        let mut tile = Vec::with_capacity(raw_len.min(payload.len().saturating_mul(8)));
        let bad = |error: std::io::Error| self.corrupt(&format!("not a zstd frame ({error})"));
        zstd::stream::Decoder::with_buffer(payload)
            .map_err(bad)?
            .take(self.raw_len)
            .read_to_end(&mut tile)
            .map_err(bad)?;
        if tile.len() != raw_len {
            return Err(self.corrupt(&format!("{} bytes after decompression", tile.len())));
        }
        Ok(tile.into())
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
        for (raw_len, ok) in [(50_000_000, true), (50_000_001, false)] {
            assert_eq!(layer(Codec::Zstd, raw_len).decode(packed.clone()).is_ok(), ok);
        }
        assert!(layer(Codec::Zstd, 1 << 60).decode(packed).is_err());
        let error = layer(Codec::Zstd, 8).decode(Bytes::from_static(b"garbage!")).unwrap_err();
        assert_eq!(error.offset(), Some(100));
        assert!(layer(Codec::Raw, 8).decode(Bytes::from_static(b"short")).is_err());
    }
}
