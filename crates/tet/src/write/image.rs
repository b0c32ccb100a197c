//! [`Image`]: the bytes of a finished file.

use std::sync::Arc;

use bytes::Bytes;
use gridfusion_core::format::{Content, Write};
use sha2::{Digest, Sha256};

/// The hash in files outside of packages, which have none.
pub(super) const NO_SHA256: &str =
    "0000000000000000000000000000000000000000000000000000000000000000";

/// A file, and what a package tells of it.
pub(super) struct Image {
    /// The bytes, in parts that follow each other.
    pub(super) parts: Vec<Vec<u8>>,
    /// The zone maps, which are also among the parts.
    pub(super) zones: Bytes,
    /// The hash of the bytes before the zone maps.
    pub(super) sha256: String,
}

impl Image {
    /// Returns the length of the file.
    pub(super) fn len(&self) -> u64 {
        self.parts.iter().map(|part| part.len() as u64).sum()
    }

    /// Returns the writes of an object with these bytes. It is not complete yet.
    pub(super) fn writes(self, object: &Arc<str>) -> Vec<Write> {
        let append = |part| Write::Append(Content::new(Arc::clone(object), part));
        self.parts.into_iter().map(append).collect()
    }
}

/// Returns the SHA-256 of bytes, in hexadecimal digits.
pub(super) fn sha256_of<'a>(parts: impl IntoIterator<Item = &'a Vec<u8>>) -> String {
    let mut hash = Sha256::new();
    parts.into_iter().for_each(|part| hash.update(part));
    hex(&hash.finalize())
}

/// Returns bytes in hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
