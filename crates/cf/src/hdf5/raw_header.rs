//! The raw messages of an object header. Nothing of a message is parsed here, so that one that cannot be read does
//! not hide the others.
//!
//! Format: HDF5 File Format Specification version 3.0, IV.A.1 "Object Headers".
//!
//! ```text
//!   version 1:  prefix (16 bytes), messages                     continuation: messages
//!   version 2:  OHDR, prefix, messages, checksum                continuation: OCHK, messages, checksum
//! ```

use std::ops::Range;

use bytes::Bytes;

use super::file_bytes::{Fields, FileBytes};
use gridfusion_core::{Error, Result};

/// The kind of a message with the shape of a dataset.
pub(super) const DATASPACE: u16 = 1;
/// The kind of a message about the links of a group.
pub(super) const LINK_INFO: u16 = 2;
/// The kind of a message with the type of cells.
pub(super) const DATATYPE: u16 = 3;
/// The kinds of messages with the cells that were never written, before and since HDF5 1.6.
pub(super) const OLD_FILL: u16 = 4;
pub(super) const FILL: u16 = 5;
/// The kind of a message that is a link.
pub(super) const LINK: u16 = 6;
/// The kind of a message with the names of files that hold the cells.
pub(super) const EXTERNAL_FILES: u16 = 7;
/// The kind of a message with the layout of a dataset.
pub(super) const LAYOUT: u16 = 8;
/// The kind of a message with facts that only writers of a group need.
pub(super) const GROUP_INFO: u16 = 10;
/// The kind of a message with the filters of chunks.
pub(super) const FILTERS: u16 = 11;
/// The kind of a message that is an attribute.
pub(super) const ATTRIBUTE: u16 = 12;
/// The kind of a message with the address of the table of shared messages.
pub(super) const SHARED_TABLE: u16 = 15;
/// The kind of a message with the address at which the header goes on.
const CONTINUATION: u16 = 16;
/// The kind of a message about the links of a group, before HDF5 1.8.
pub(super) const SYMBOL_TABLE: u16 = 17;
/// The kind of a message about the attributes of an object.
pub(super) const ATTRIBUTE_INFO: u16 = 21;
/// The kind of a message with the address of metadata that other places of the file do not have yet.
pub(super) const CACHE_IMAGE: u16 = 24;

/// The most parts of a header.
const MAX_PARTS: usize = 1024;
/// The most bytes of a header.
const MAX_HEADER: u64 = 16 << 20;

/// The name of the region in errors.
const REGION: &str = "object header";

/// A message of an object header.
#[derive(Debug)]
pub(super) struct RawMessage {
    pub(super) kind: u16,
    /// Whether the bytes are the place of the message, instead of the message.
    pub(super) is_shared: bool,
    /// The address of the bytes.
    pub(super) address: u64,
    pub(super) bytes: Bytes,
}

/// How messages follow one another.
#[derive(Clone, Copy)]
enum Envelope {
    Version1,
    /// With the order of creation or not.
    Version2 {
        has_order: bool,
    },
}

/// A part of a header.
#[derive(Clone)]
struct HeaderPart {
    /// The addresses of all its bytes.
    range: Range<u64>,
    /// The bytes before its messages.
    head: u64,
}

/// Returns the messages of the header at `address`.
pub(super) fn messages(file: &FileBytes, address: u64) -> Result<Vec<RawMessage>> {
    let (envelope, first) = prefix(file, address)?;
    let (mut messages, mut parts, mut bytes) = (vec![], vec![first], 0_u64);
    let mut done = 0;
    while let Some(part) = parts.get(done).cloned() {
        done += 1;
        bytes = bytes.saturating_add(part.range.end.saturating_sub(part.range.start));
        if done > MAX_PARTS || bytes > MAX_HEADER {
            return Err(Fields::new(REGION, address, &[]).corrupt("it never ends"));
        }
        let from = messages.len();
        split(file, &part, envelope, &mut messages)?;
        for message in messages.iter().skip(from).filter(|message| message.kind == CONTINUATION) {
            parts.push(continuation(file, message, envelope)?);
        }
    }
    Ok(messages)
}

/// Returns the messages' envelope and the first part.
fn prefix(file: &FileBytes, address: u64) -> Result<(Envelope, HeaderPart)> {
    let head = file.read(address, 16)?;
    let mut fields = Fields::new(REGION, address, &head);
    if !head.starts_with(b"OHDR") {
        fields.magic(b"\x01")?;
        fields.take(7)?;
        let (len, start) = (fields.uint(4)?, address.saturating_add(16));
        return Ok((
            Envelope::Version1,
            HeaderPart { range: start..start.saturating_add(len), head: 0 },
        ));
    }
    fields.magic(b"OHDR\x02")?;
    let flags = fields.uint(1)?;
    let times = if flags & 0x20 != 0 { 16 } else { 0 };
    let phases = if flags & 0x10 != 0 { 4 } else { 0 };
    let width = 1_u8 << (flags & 3);
    let at = address.saturating_add(6 + times + phases);
    let len = file.read(at, u64::from(width))?;
    let len = Fields::new(REGION, at, &len).uint(width)?;
    let head = 6 + times + phases + u64::from(width);
    // A checksum follows the messages.
    let end = address.saturating_add(head).saturating_add(len).saturating_add(4);
    let envelope = Envelope::Version2 { has_order: flags & 4 != 0 };
    Ok((envelope, HeaderPart { range: address..end, head }))
}

/// Returns the part that a continuation refers to.
fn continuation(file: &FileBytes, message: &RawMessage, envelope: Envelope) -> Result<HeaderPart> {
    let mut fields = Fields::new(REGION, message.address, &message.bytes);
    let start = fields.address(file.widths)?;
    let range = start..start.saturating_add(fields.length(file.widths)?);
    let head = match envelope {
        Envelope::Version1 => 0,
        // A signature comes first, a checksum last.
        Envelope::Version2 { .. } => 4,
    };
    Ok(HeaderPart { range, head })
}

/// Adds the messages in a part of the header.
fn split(
    file: &FileBytes,
    part: &HeaderPart,
    envelope: Envelope,
    messages: &mut Vec<RawMessage>,
) -> Result<()> {
    let (start, len) = (part.range.start, part.range.end.saturating_sub(part.range.start));
    if len > MAX_HEADER {
        return Err(Error::unsupported(format!("an object header of {len} bytes")));
    }
    let bytes = file.read(start, len)?;
    let mut fields = Fields::new(REGION, start, &bytes);
    let (kind_width, least, after) = match envelope {
        Envelope::Version1 => (2, 8, 0),
        Envelope::Version2 { has_order } => {
            fields.checked()?;
            (1, 4 + if has_order { 2 } else { 0 }, 4)
        }
    };
    match part.head {
        4 => fields.magic(b"OCHK")?,
        head => _ = fields.take(head as usize)?,
    }
    while fields.left() >= least + after {
        let kind = fields.uint(kind_width)? as u16;
        let (len, flags) = (fields.uint(2)? as usize, fields.uint(1)?);
        fields.take(least - 3 - usize::from(kind_width))?;
        let at = fields.position();
        if len + after > fields.left() {
            return Err(fields.corrupt(format!("a message of {len} bytes is cut off")));
        }
        fields.take(len)?;
        if kind > CACHE_IMAGE && flags & MUST_BE_KNOWN != 0 {
            let message = format!("object header messages of kind {kind}, which must be known");
            return Err(Error::unsupported(message));
        }
        let address = start.saturating_add(at as u64);
        let is_shared = flags & IS_SHARED != 0;
        messages.push(RawMessage { kind, is_shared, address, bytes: bytes.slice(at..at + len) });
    }
    Ok(())
}

/// The flag of a message that is elsewhere.
const IS_SHARED: u64 = 2;
/// The flag of a message that a reader must know to read the object.
const MUST_BE_KNOWN: u64 = 0x80;
