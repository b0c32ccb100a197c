//! Messages that several objects share: in the header of a committed type, or in heaps of the file.
//!
//! Format: HDF5 File Format Specification version 3.0, IV.A.2 "Shared Message", and III.H "Disk Format: Level 1H -
//! Shared Object Header Message Table".
//!
//! ```text
//!   message ─▶ address of a header ────────────────────────▶ the message of the same kind there
//!          └─▶ id in a heap ─▶ table: the heap of each kind ─▶ the object with this id
//! ```

use bytes::Bytes;

use super::file_bytes::{Fields, FileBytes};
use super::fractal_heap::FractalHeap;
use super::raw_header::{self, ATTRIBUTE, FILL, OLD_FILL, RawMessage, SHARED_TABLE};
use gridfusion_core::{Error, Result};

/// The name of the region in errors.
const REGION: &str = "shared message";
/// The most places that lead from one to the next.
const MAX_PLACES: usize = 4;

/// The table of shared messages.
#[derive(Debug, Default)]
pub(super) struct SharedMessages {
    /// The address of the table, and the number of its entries.
    table: Option<(u64, u64)>,
    /// The entries, once they were read.
    indexes: Option<Vec<Index>>,
}

/// An entry of the table.
#[derive(Debug)]
struct Index {
    /// A bit per kind of messages.
    kinds: u64,
    heap_address: u64,
    /// The heap, once it was read.
    heap: Option<FractalHeap>,
}

impl SharedMessages {
    /// Returns the messages that a file shares. `extension` are the messages about the file.
    pub(super) fn new(file: &FileBytes, extension: &[RawMessage]) -> Result<Self> {
        let Some(message) = extension.iter().find(|message| message.kind == SHARED_TABLE) else {
            return Ok(Self::default());
        };
        let mut fields = Fields::new(REGION, message.address, &message.bytes);
        fields.take(1)?;
        let table = Some((fields.address(file.widths)?, fields.uint(1)?));
        Ok(Self { table, indexes: None })
    }

    /// Returns the bytes of a message, wherever it is.
    pub(super) fn resolved(&mut self, file: &FileBytes, message: &RawMessage) -> Result<Bytes> {
        match message.is_shared {
            true => self.elsewhere(file, message.kind, message.address, &message.bytes),
            false => Ok(message.bytes.clone()),
        }
    }

    /// Returns the bytes of a message of which `place` is the place.
    pub(super) fn elsewhere(
        &mut self,
        file: &FileBytes,
        kind: u16,
        address: u64,
        place: &[u8],
    ) -> Result<Bytes> {
        let (mut at, mut place) = (address, Bytes::copy_from_slice(place));
        for _ in 0..MAX_PLACES {
            let mut fields = Fields::new(REGION, at, &place);
            let (version, sharing) = (fields.uint(1)?, fields.uint(1)?);
            match (version, sharing) {
                // Reserved bytes, and a length that the specification does not mention and `H5Oshared.c` skips.
                (1, _) => _ = fields.take(6 + usize::from(file.widths.length))?,
                (2, 0 | 2) | (3, 0 | 2) => {}
                (3, 1) => return self.in_heap(file, kind, fields.take(8)?),
                _ => {
                    let message = format!("version {version} and type {sharing} of a place");
                    return Err(fields.corrupt(message));
                }
            }
            let header = fields.address(file.widths)?;
            let mut messages = raw_header::messages(file, header)?.into_iter();
            let found = messages.find(|message| message.kind == kind);
            let found = found.ok_or_else(|| {
                let message = format!("the header has no message of kind {kind}");
                Error::corrupt(REGION, header, message)
            })?;
            if !found.is_shared {
                return Ok(found.bytes);
            }
            (at, place) = (found.address, found.bytes);
        }
        Err(Fields::new(REGION, at, &[]).corrupt("it is shared in a circle"))
    }

    /// Returns an attribute by its id in the heap of shared messages.
    pub(super) fn attribute(&mut self, file: &FileBytes, id: &[u8]) -> Result<Bytes> {
        self.in_heap(file, ATTRIBUTE, id)
    }

    fn in_heap(&mut self, file: &FileBytes, kind: u16, id: &[u8]) -> Result<Bytes> {
        let Some((address, entries)) = self.table else {
            return Err(Error::corrupt_region(REGION, "the file has no table of shared messages"));
        };
        let indexes = match &mut self.indexes {
            Some(indexes) => indexes,
            None => self.indexes.insert(read_table(file, address, entries)?),
        };
        // Both kinds of fill values have the same index.
        let bit = 1 << if kind == OLD_FILL { FILL } else { kind };
        let index = indexes.iter_mut().find(|index| index.kinds & bit != 0).ok_or_else(|| {
            Error::corrupt(REGION, address, format!("no index is of messages of kind {kind}"))
        })?;
        let heap = match &mut index.heap {
            Some(heap) => heap,
            None => index.heap.insert(FractalHeap::read(file, index.heap_address)?),
        };
        heap.object(file, id)
    }
}

fn read_table(file: &FileBytes, address: u64, entries: u64) -> Result<Vec<Index>> {
    let entry = 14 + 2 * u64::from(file.widths.address);
    let bytes = file.read(address, 8 + entries * entry)?;
    let mut fields = Fields::new(REGION, address, &bytes);
    fields.checked()?;
    fields.magic(b"SMTB")?;
    let mut index = || {
        fields.take(2)?;
        let kinds = fields.uint(2)?;
        // The least length of a message, when lists become trees and back, and the number of messages.
        fields.take(10)?;
        fields.address(file.widths)?;
        Ok(Index { kinds, heap_address: fields.address(file.widths)?, heap: None })
    };
    (0..entries).map(|_| index()).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::blocks::{FileBlocks, Replay};
    use super::super::file_bytes::Widths;
    use super::super::raw_header::DATATYPE;
    use super::*;

    /// An object header of version 1 at byte 64, with a datatype of 8 bytes.
    fn file() -> FileBytes {
        let mut bytes = vec![0; 128];
        bytes[64..80].copy_from_slice(&[1, 0, 1, 0, 1, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0]);
        bytes[80..88].copy_from_slice(&[DATATYPE as u8, 0, 8, 0, 0, 0, 0, 0]);
        bytes[88..96].copy_from_slice(b"datatype");
        let mut replay = Replay::new(FileBlocks::new(128));
        let _ = replay.blocks().read(0, 1);
        replay.request().unwrap();
        replay.supply(vec![bytes.into()]).unwrap();
        let widths = Widths { base: 0, address: 8, length: 4 };
        FileBytes { blocks: Arc::clone(replay.blocks()), widths }
    }

    #[test]
    fn places_of_all_versions_lead_to_a_header() {
        let address = 64_u64.to_le_bytes();
        for head in [&[1, 0, 0, 0, 0, 0, 0, 0, 9, 9, 9, 9][..], &[2, 0], &[2, 2], &[3, 0], &[3, 2]]
        {
            let place = [head, &address].concat();
            let found = SharedMessages::default().elsewhere(&file(), DATATYPE, 0, &place);
            assert_eq!(found.unwrap(), "datatype", "{head:?}");
        }
    }
}
