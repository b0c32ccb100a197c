//! The image of the metadata cache: metadata that a writer kept in one piece when it closed the file. It counts
//! instead of the bytes at the addresses that it names, which may be of an older version.
//!
//! Format: HDF5 File Format Specification version 3.0, IV.A.2.y "The Metadata Cache Image Message" and III.K "Disk
//! Format: Level 1K - Metadata Cache Image".

use bytes::Bytes;

use super::file_bytes::{Fields, FileBytes};
use super::raw_header::{CACHE_IMAGE, RawMessage};
use gridfusion_core::{Error, Result};

/// The name of the region in errors.
const REGION: &str = "metadata cache image";
/// The most bytes of an image.
const MAX_IMAGE: u64 = 64 << 20;

/// Returns the pieces of metadata in the image, by position in the file. `extension` are the messages about the file.
pub(super) fn read(file: &FileBytes, extension: &[RawMessage]) -> Result<Vec<(u64, Bytes)>> {
    let widths = file.widths;
    let Some(message) = extension.iter().find(|message| message.kind == CACHE_IMAGE) else {
        return Ok(vec![]);
    };
    let mut fields = Fields::new(REGION, message.address, &message.bytes);
    fields.magic(b"\0")?;
    let (address, len) = (fields.address(widths)?, fields.length(widths)?);
    if widths.is_undefined(address) || len == 0 {
        return Ok(vec![]);
    }
    if len > MAX_IMAGE {
        return Err(Error::unsupported(format!("a metadata cache image of {len} bytes")));
    }
    let image = file.read(address, len)?;
    let mut fields = Fields::new(REGION, address, &image);
    fields.checked()?;
    fields.magic(b"MDCI\0")?;
    fields.take(1)?;
    let (_, entries) = (fields.length(widths)?, fields.uint(4)?);
    let mut pieces = vec![];
    for _ in 0..entries {
        // Kind, flags, ring, age, and numbers of children.
        fields.take(8)?;
        let parents = fields.uint(2)? as usize;
        fields.take(4)?;
        let (at, len) = (fields.address(widths)?, fields.length(widths)?);
        fields.take(parents * usize::from(widths.address))?;
        let from = fields.position();
        fields.take(usize::try_from(len).unwrap_or(usize::MAX))?;
        let start = at.saturating_add(widths.base);
        let size = file.blocks.size();
        if start.checked_add(len).is_none_or(|end| end > size) {
            let message = format!("a piece of {len} bytes at {start} in a file of {size} bytes");
            return Err(fields.corrupt(message));
        }
        pieces.push((start, image.slice(from..from + len as usize)));
    }
    pieces.sort_by_key(|(at, _)| *at);
    let overlap = pieces.windows(2).any(|pair| match pair {
        [(at, piece), (next, _)] => at.saturating_add(piece.len() as u64) > *next,
        _ => false,
    });
    if overlap {
        return Err(fields.corrupt("its pieces overlap"));
    }
    Ok(pieces)
}
