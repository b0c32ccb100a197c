//! The raw messages of an object header, for facts that the metadata parser does not give: where the bytes of a
//! message lie in the file, and the details of number types.
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
use crate::error::Result;

/// The kind of a message with the type of cells.
pub(super) const DATATYPE: u16 = 3;
/// The kind of a message with the layout of a dataset.
pub(super) const LAYOUT: u16 = 8;
/// The kind of a message with the address at which the header goes on.
const CONTINUATION: u16 = 16;
/// The most parts of a header.
const MAX_PARTS: usize = 1024;
/// The most bytes of a header.
pub(super) const MAX_HEADER: u64 = 16 << 20;

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

/// Returns the messages of the header at `address`.
pub(super) fn messages(file: &FileBytes, address: u64) -> Result<Vec<RawMessage>> {
    let (envelope, first) = prefix(file, address)?;
    let (mut messages, mut parts, mut bytes) = (vec![], vec![first], 0_u64);
    let mut done = 0;
    while let Some(part) = parts.get(done).cloned() {
        done += 1;
        bytes = bytes.saturating_add(part.end.saturating_sub(part.start));
        if done > MAX_PARTS || bytes > MAX_HEADER {
            return Err(Fields::new("object header", address, &[]).corrupt("it never ends"));
        }
        let from = messages.len();
        split(file, part, envelope, &mut messages)?;
        for message in messages.iter().skip(from).filter(|message| message.kind == CONTINUATION) {
            parts.push(continuation(file, message, envelope)?);
        }
    }
    Ok(messages)
}

/// Returns the messages' envelope and the addresses of the first part.
fn prefix(file: &FileBytes, address: u64) -> Result<(Envelope, Range<u64>)> {
    let head = file.read(address, 16)?;
    let mut fields = Fields::new("object header", address, &head);
    if !head.starts_with(b"OHDR") {
        fields.magic(b"\x01")?;
        fields.take(7)?;
        let (len, start) = (fields.uint(4)?, address.saturating_add(16));
        return Ok((Envelope::Version1, start..start.saturating_add(len)));
    }
    fields.take(5)?;
    let flags = fields.uint(1)?;
    let times = if flags & 0x20 != 0 { 16 } else { 0 };
    let phases = if flags & 0x10 != 0 { 4 } else { 0 };
    let width = 1_u8 << (flags & 3);
    let at = address.saturating_add(6 + times + phases);
    let len = file.read(at, u64::from(width))?;
    let len = Fields::new("object header", at, &len).uint(width)?;
    let start = at.saturating_add(u64::from(width));
    Ok((Envelope::Version2 { has_order: flags & 4 != 0 }, start..start.saturating_add(len)))
}

/// Returns the addresses of the messages that a continuation refers to.
fn continuation(file: &FileBytes, message: &RawMessage, envelope: Envelope) -> Result<Range<u64>> {
    let mut fields = Fields::new("object header", message.address, &message.bytes);
    let start = fields.uint(file.widths.address)?;
    let end = start.saturating_add(fields.uint(file.widths.length)?);
    Ok(match envelope {
        Envelope::Version1 => start..end,
        // A signature comes first, a checksum last.
        Envelope::Version2 { .. } => start.saturating_add(4)..end.saturating_sub(4),
    })
}

/// Adds the messages in a part of the header.
fn split(
    file: &FileBytes,
    part: Range<u64>,
    envelope: Envelope,
    messages: &mut Vec<RawMessage>,
) -> Result<()> {
    let bytes = file.read(part.start, part.end.saturating_sub(part.start))?;
    let mut fields = Fields::new("object header", part.start, &bytes);
    let least = match envelope {
        Envelope::Version1 => 8,
        Envelope::Version2 { has_order } => 4 + if has_order { 2 } else { 0 },
    };
    while fields.left() >= least {
        let kind = fields.uint(if matches!(envelope, Envelope::Version1) { 2 } else { 1 })? as u16;
        let len = fields.uint(2)? as usize;
        let is_shared = fields.uint(1)? & 2 != 0;
        fields.take(least - if matches!(envelope, Envelope::Version1) { 5 } else { 4 })?;
        let at = fields.position();
        fields.take(len)?;
        let address = part.start.saturating_add(at as u64);
        let bytes = bytes.slice(at..at + len);
        messages.push(RawMessage { kind, is_shared, address, bytes });
    }
    Ok(())
}

/// Returns the bytes of a datatype message, wherever it is stored; `None` if it is in the heap of shared messages.
pub(super) fn datatype(file: &FileBytes, messages: &[RawMessage]) -> Result<Option<Bytes>> {
    let found = messages.iter().find(|message| message.kind == DATATYPE);
    let Some(message) = found else { return Ok(None) };
    if !message.is_shared {
        return Ok(Some(message.bytes.clone()));
    }
    // IV.A.2: version, type of sharing, and from version 2 on the address.
    let mut fields = Fields::new("shared message", message.address, &message.bytes);
    let (version, sharing) = (fields.uint(1)?, fields.uint(1)?);
    if version == 1 {
        fields.take(6)?;
    } else if version == 3 && sharing == 1 {
        return Ok(None);
    }
    let committed = self::messages(file, fields.uint(file.widths.address)?)?;
    let found = committed.into_iter().find(|message| message.kind == DATATYPE);
    Ok(found.filter(|message| !message.is_shared).map(|message| message.bytes))
}
