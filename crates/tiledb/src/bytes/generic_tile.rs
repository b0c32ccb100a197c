//! Generic tiles: the envelope of schemas, enumerations, array metadata, groups and blocks of
//! fragments.
//!
//! ```text
//!   0       4         12        20     21         29        30        34
//!   ├───────┼─────────┼─────────┼──────┼──────────┼─────────┼─────────┼──────────┼───────────┤
//!   │version│ stored  │ content │ type │cell size │encrypted│pipeline │ pipeline │ a tile of │
//!   │       │ bytes   │ bytes   │      │          │ 0 or 1  │ bytes   │          │ chunks    │
//!   └───────┴─────────┴─────────┴──────┴──────────┴─────────┴─────────┴──────────┴───────────┘
//! ```

use bytes::Bytes;

use super::datatype::Datatype;
use super::filter::{EncryptionKey, Field, Filter, FilterBuffers, Pipeline, TileEncoder};
use gridfusion_core::format::wire::{Reader, to_usize};
use gridfusion_core::{Error, Result};

/// The newest format version that this reader supports.
pub(super) const LATEST_VERSION: u32 = 23;
/// The version of generic tiles that are written.
const WRITTEN_VERSION: u32 = 22;
/// The greatest ratio of content to stored bytes that is decoded. Deflate, which writers use,
/// compresses by a factor of 1032 at most; 2048 is the next power of two. The ratio also limits how many
/// tiles the metadata of a fragment can list.
pub(super) const MAX_RATIO: u64 = 2048;

/// Decodes the generic tile at the start of `stored`, and returns its content. `stored` begins at byte
/// `base` of its object; errors name the content by `region`. Bytes after the tile are ignored.
///
/// # Errors
/// `Corrupt` if the tile is malformed; `Usage` if the key is missing, or given for a tile that is not
/// encrypted; `Unsupported` for newer versions.
pub(super) fn decode(
    region: &'static str,
    base: u64,
    stored: &[u8],
    key: Option<&EncryptionKey>,
) -> Result<Bytes> {
    let mut reader = Reader::new(region, base, stored);
    let version = reader.u32()?;
    if version > LATEST_VERSION {
        return Err(too_new(version));
    }
    let stored_len = reader.u64()?;
    let raw_len = reader.u64()?;
    // Before any memory is requested: a damaged length must not cost more than the file is worth.
    if raw_len / MAX_RATIO > stored_len {
        let message = format!("{stored_len} stored bytes cannot hold {raw_len} bytes of content");
        return Err(reader.corrupt(message));
    }
    let datatype = Datatype::from_code(reader.u8()?)?;
    let cell_size = reader.u64()?;
    let encryption = reader.u8()?;
    check_key(&reader, encryption, key)?;

    // The pipeline gets a reader of its own, so that it cannot read into the tile.
    let pipeline_len = reader.u32()?;
    let pipeline_at = reader.offset();
    let pipeline = reader.take(to_usize(u64::from(pipeline_len)))?;
    let mut pipeline_reader = Reader::new(region, pipeline_at, pipeline);
    let pipeline = Pipeline::parse(&mut pipeline_reader, version)?;
    pipeline_reader.end()?;

    // The header stands in for a schema: it gives the type and the version that the filters depend on.
    let field = Field { datatype, cell_size, var_strings: false, fragment_version: version };
    let codec = pipeline.codec(&field, key)?;
    let at = reader.offset();
    let tile = reader.take(to_usize(stored_len))?;
    Ok(codec.decode_with(tile, raw_len, at, vec![], &mut FilterBuffers::default())?.bytes)
}

/// Returns the generic tile of `content` as TileDB writes it: compressed with gzip, and not encrypted.
///
/// # Errors
/// `Internal` errors only.
pub(crate) fn encode(content: &[u8]) -> Result<Vec<u8>> {
    let field = Field {
        datatype: Datatype::Char,
        cell_size: 1,
        var_strings: false,
        fragment_version: WRITTEN_VERSION,
    };
    let pipeline = Pipeline { filters: vec![Filter::Gzip { level: 1 }] };
    let filters = pipeline.bytes();
    let tile = TileEncoder::new(&pipeline, field).tile(content)?;
    let mut stored = WRITTEN_VERSION.to_le_bytes().to_vec();
    stored.extend((tile.len() as u64).to_le_bytes());
    stored.extend((content.len() as u64).to_le_bytes());
    stored.push(Datatype::Char.code());
    stored.extend(1_u64.to_le_bytes());
    stored.push(0);
    stored.extend((filters.len() as u32).to_le_bytes());
    stored.extend(filters);
    stored.extend(tile);
    Ok(stored)
}

/// Fails unless an encrypted tile has a key, and an unencrypted one has none. `encryption` is the byte of the
/// header.
fn check_key(reader: &Reader<'_>, encryption: u8, key: Option<&EncryptionKey>) -> Result<()> {
    match (encryption, key) {
        (0, None) | (1, Some(_)) => Ok(()),
        (0, Some(_)) => Err(Error::usage(
            "the array is not encrypted: leave out option 'encryption_key'".to_owned(),
        )),
        (1, None) => {
            Err(Error::usage("the array is encrypted; give option 'encryption_key'".to_owned()))
        }
        (other, _) => Err(reader.corrupt(format!("encryption {other}, expected 0 or 1"))),
    }
}

/// Returns the error for a format version that is too new for this reader.
pub(super) fn too_new(version: u32) -> Error {
    Error::unsupported(format!(
        "TileDB format version {version}; this reader knows versions up to {LATEST_VERSION}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::testing::generic_tile;

    fn decode(stored: &[u8]) -> Result<Bytes> {
        super::decode("test tile", 100, stored, None)
    }

    #[test]
    fn the_content_comes_back() {
        let mut tile = generic_tile(b"hello");
        assert_eq!(decode(&tile).unwrap(), &b"hello"[..]);
        tile.extend([1, 2, 3]);
        assert_eq!(decode(&tile).unwrap(), &b"hello"[..]);
        assert_eq!(decode(&generic_tile(b"")).unwrap(), &b""[..]);
        let long: Vec<u8> = (0..200_000_u32).map(|at| (at / 300) as u8).collect();
        for content in [&b"hello"[..], b"", &long] {
            assert_eq!(decode(&encode(content).unwrap()).unwrap(), content);
        }
    }

    #[test]
    fn no_truncation_and_no_flipped_bit_does_harm() {
        let tile = generic_tile(b"hello");
        for len in 0..tile.len() {
            assert!(decode(&tile[..len]).is_err(), "{len}");
        }
        for bit in 0..tile.len() * 8 {
            let mut tile = tile.clone();
            tile[bit / 8] ^= 1 << (bit % 8);
            let _ = decode(&tile);
        }
        let mut newer = tile.clone();
        newer[0] = 24;
        assert_eq!(decode(&newer).unwrap_err().kind(), gridfusion_core::ErrorKind::Unsupported);
    }

    #[test]
    fn keys_and_tiles_must_agree() {
        let mut tile = generic_tile(b"hello");
        let key = EncryptionKey::new(&[7; 32]).unwrap();
        let error = super::decode("test tile", 0, &tile, Some(&key)).unwrap_err();
        assert_eq!(error.kind(), gridfusion_core::ErrorKind::Usage);
        tile[29] = 1;
        assert_eq!(decode(&tile).unwrap_err().kind(), gridfusion_core::ErrorKind::Usage);
        tile[29] = 2;
        assert_eq!(decode(&tile).unwrap_err().kind(), gridfusion_core::ErrorKind::Corrupt);
    }
}
