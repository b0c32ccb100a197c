//! Archives of Zarr stores, recognised by their first bytes, or by their directories.

use super::directory::ZipDirectory;
use super::entry::HEADER;
use super::{u16_at, u32_at};
use crate::bytes::open_store::is_document_of_node;

/// The most folders around a document in the first bytes of an archive. Deeper ones may belong to anything.
const MOST_FOLDERS: usize = 2;

/// Whether a file with these first bytes is an archive with metadata of Zarr near its root.
pub fn is_zipped_zarr(head: &[u8]) -> bool {
    let mut at = 0;
    while let Some(header) = head.get(at..).filter(|it| it.starts_with(b"PK\x03\x04")) {
        let name_end = HEADER as usize + usize::from(u16_at(header, 26));
        let Some(name) = header.get(HEADER as usize..name_end) else { return false };
        let mut parts = name.rsplit(|byte| *byte == b'/');
        let is_document = parts
            .next()
            .and_then(|it| std::str::from_utf8(it).ok())
            .is_some_and(is_document_of_node);
        if is_document && parts.count() <= MOST_FOLDERS {
            return true;
        }
        let data = at + name_end + usize::from(u16_at(header, 28));
        at = match u32_at(header, 18) {
            // The writer did not know the length, or it is in a field of ZIP64.
            0 | u32::MAX => match next_header(head, data) {
                Some(next) => next,
                None => return false,
            },
            len => data.saturating_add(len as usize),
        };
    }
    false
}

/// Whether a file with these first bytes begins as an archive.
pub(crate) fn is_zip(head: &[u8]) -> bool {
    head.starts_with(b"PK\x03\x04")
}

impl ZipDirectory {
    /// Whether the archive has metadata of Zarr near its root.
    pub fn is_zipped_zarr(&self) -> bool {
        self.has_near_root(is_document_of_node, MOST_FOLDERS)
    }
}

/// Returns where the next header begins.
fn next_header(head: &[u8], from: usize) -> Option<usize> {
    let rest = head.get(from..)?;
    Some(from + rest.windows(4).position(|bytes| bytes == b"PK\x03\x04")?)
}
