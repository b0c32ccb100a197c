//! The header of a metadata object, and its content.
//!
//! ```text
//!   0   ICE🧊CHUNK        12 bytes
//!   12  ic-2.3.0          24 bytes: the program that wrote it
//!   36  2                 version of the specification: 1, or 2 for 2.0 and 2.1
//!   37  6                 kind of object
//!   38  1                 compression: none, or zstd
//!   39  …                 a FlatBuffer
//! ```
//!
//! No checksum protects these bytes.

use std::io::Read;

use bytes::Bytes;

use gridfusion_core::{Error, Result};

const MAGIC: &[u8] = "ICE🧊CHUNK".as_bytes();

/// The bytes of a header.
const LEN: usize = 39;

/// The most decompressed bytes for each byte of the greatest document.
const MOST_TIMES: u64 = 16;

/// A kind of metadata object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Snapshot = 1,
    Manifest = 2,
    Repository = 6,
}

impl Kind {
    /// Returns its name in errors.
    pub(super) fn region(self) -> &'static str {
        match self {
            Self::Snapshot => "snapshot",
            Self::Manifest => "manifest",
            Self::Repository => "repository object",
        }
    }
}

/// The content of a metadata object.
#[derive(Debug)]
pub(super) struct Content {
    /// The version of the specification.
    pub(super) version: u8,
    /// The decompressed FlatBuffer.
    pub(super) bytes: Bytes,
}

/// Checks the header of an object of this kind, and decompresses its content. The option `metadata_limit` allows
/// documents of `most` bytes.
///
/// # Errors
/// `Corrupt` for another object; `Unsupported` for a version or compression that gridfusion does not know, and a
/// content that is too long.
pub(super) fn content(kind: Kind, bytes: &Bytes, most: u64) -> Result<Content> {
    let corrupt = |offset: u64, message: String| Error::corrupt(kind.region(), offset, message);
    let Some(header) = bytes.first_chunk::<LEN>() else {
        let len = bytes.len();
        return Err(corrupt(0, format!("it has {len} bytes, and its header alone has {LEN}")));
    };
    if !header.starts_with(MAGIC) {
        return Err(corrupt(0, "it does not begin as an object of Icechunk".to_owned()));
    }
    let [.., version, number, compression] = *header;
    if !matches!(version, 1 | 2) {
        let message = format!("version {version} of Icechunk; gridfusion reads 1 and 2");
        return Err(Error::unsupported(message));
    }
    if number != kind as u8 {
        return Err(corrupt(37, format!("it is of kind {number}, expected {}", kind as u8)));
    }
    let packed = bytes.slice(LEN..);
    let bytes = match compression {
        0 => packed,
        1 => unpacked(kind, &packed, most.saturating_mul(MOST_TIMES))?,
        other => return Err(Error::unsupported(format!("compression {other} of Icechunk"))),
    };
    Ok(Content { version, bytes })
}

/// Decompresses at most `most` bytes.
fn unpacked(kind: Kind, packed: &[u8], most: u64) -> Result<Bytes> {
    let broken = |error: std::io::Error| {
        Error::corrupt(kind.region(), LEN as u64, format!("it does not decompress ({error})"))
    };
    let stream = zstd::stream::Decoder::with_buffer(packed).map_err(broken)?;
    let mut bytes = vec![];
    stream.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(broken)?;
    if bytes.len() as u64 > most {
        let message = format!(
            "a {} of more than {most} decompressed bytes; the option 'metadata_limit' allows a larger one",
            kind.region()
        );
        return Err(Error::unsupported(message));
    }
    Ok(bytes.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use gridfusion_core::ErrorKind;

    fn object(version: u8, kind: u8, compression: u8, content: &[u8]) -> Bytes {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&[b' '; 24]);
        bytes.extend_from_slice(&[version, kind, compression]);
        bytes.extend_from_slice(content);
        bytes.into()
    }

    #[test]
    fn headers_tell_what_follows() {
        let packed = zstd::encode_all(&[7_u8; 100][..], 3).unwrap();
        let read =
            |bytes: &Bytes, most| content(Kind::Manifest, bytes, most).map(|it| it.bytes.len());
        assert_eq!(read(&object(2, 2, 0, b"abc"), 9).unwrap(), 3);
        assert_eq!(read(&object(1, 2, 1, &packed), 9).unwrap(), 100);
        for (wrong, most, kind) in [
            (object(2, 2, 1, &packed), 6, ErrorKind::Unsupported),
            (object(3, 2, 0, b""), 9, ErrorKind::Unsupported),
            (object(2, 1, 0, b""), 9, ErrorKind::Corrupt),
            (object(2, 2, 2, b""), 9, ErrorKind::Unsupported),
            (object(2, 2, 1, b"abc"), 9, ErrorKind::Corrupt),
            (object(2, 2, 1, &packed[..packed.len() - 1]), 9, ErrorKind::Corrupt),
            (object(2, 2, 0, b"").slice(1..), 9, ErrorKind::Corrupt),
            (object(2, 2, 0, b"").slice(..38), 9, ErrorKind::Corrupt),
        ] {
            assert_eq!(read(&wrong, most).unwrap_err().kind(), kind, "{wrong:?}");
        }
    }
}
