//! The elements of arrays of chunks, which fixed and extensible arrays have in common.
//!
//! Elements lie in runs. Each run has a checksum, and is read whole, so that no damaged element reads as a chunk that
//! was never written.

use bytes::Bytes;

use super::super::file_bytes::{Fields, FileBytes};
use super::{Entry, check_sum};
use gridfusion_core::{Error, Result};

/// The most runs of an array: those of four billion chunks in the library's pages.
pub(super) const MOST_RUNS: u64 = 1 << 22;

/// How the elements of an array are stored: one per chunk.
#[derive(Debug, Clone, Copy)]
pub(super) struct Elements {
    /// Bytes per element.
    pub(super) len: u64,
    /// Bytes of the number of stored bytes, if chunks have filters.
    size_width: Option<u8>,
    region: &'static str,
}

impl Elements {
    /// Reads the client, which tells whether chunks have filters, and the length of an element.
    pub(super) fn read(
        fields: &mut Fields<'_>,
        region: &'static str,
        address_width: u8,
    ) -> Result<Self> {
        let (client, len) = (fields.uint(1)?, fields.uint(1)?);
        let plain = u64::from(address_width);
        let size_width = match client {
            0 if len == plain => None,
            1 if (plain + 5..=plain + 12).contains(&len) => Some((len - plain - 4) as u8),
            _ => return Err(fields.corrupt(format!("elements of kind {client} and {len} bytes"))),
        };
        Ok(Self { len, size_width, region })
    }

    fn element(&self, fields: &mut Fields<'_>, file: &FileBytes) -> Result<Option<Entry>> {
        let address = fields.uint(file.widths.address)?;
        let size = self.size_width.map(|width| fields.uint(width)).transpose()?;
        let skipped = if size.is_some() { fields.uint(4)? as u32 } else { 0 };
        Ok((!file.widths.is_undefined(address)).then_some(Entry { address, size, skipped }))
    }
}

/// The beginning of a block of an array, which tells what it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BlockHead {
    /// The signature and the version.
    pub(super) magic: &'static [u8; 5],
    /// The address of the array's header.
    pub(super) owner: u64,
    /// The number of the first element, as the specification or the library counts, and the bytes of this number.
    pub(super) first: Option<([u64; 2], u8)>,
}

impl BlockHead {
    pub(super) fn len(&self, address_width: u8) -> u64 {
        6 + u64::from(address_width) + self.first.map_or(0, |(_, width)| u64::from(width))
    }

    /// Fails unless the next bytes are this beginning.
    pub(super) fn check(&self, fields: &mut Fields<'_>, address_width: u8) -> Result<()> {
        fields.magic(self.magic)?;
        fields.take(1)?;
        let owner = fields.uint(address_width)?;
        if owner != self.owner {
            let message = format!("a block of the array at {owner}, expected {}", self.owner);
            return Err(fields.corrupt(message));
        }
        let Some((expected, width)) = self.first else { return Ok(()) };
        let first = fields.uint(width)?;
        if !expected.contains(&first) {
            let message = format!("the block of element {first}, expected {}", expected[0]);
            return Err(fields.corrupt(message));
        }
        Ok(())
    }
}

/// Elements that lie together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PageRun {
    /// The address of the bytes that have the checksum.
    pub(super) address: u64,
    /// The beginning of those bytes, unless they are a page of elements.
    pub(super) head: Option<BlockHead>,
    /// The number of the first element, and how many there are.
    pub(super) first: u64,
    pub(super) count: u64,
    /// The bytes between the last element and the checksum.
    pub(super) tail: u64,
}

impl PageRun {
    /// Returns the elements; `None` for each chunk that was never written.
    pub(super) fn read(&self, file: &FileBytes, elements: Elements) -> Result<Vec<Option<Entry>>> {
        let bytes = self.bytes(file, elements)?;
        let mut fields = Fields::new(elements.region, self.address, &bytes);
        if let Some(head) = &self.head {
            head.check(&mut fields, file.widths.address)?;
        }
        (0..self.count).map(|_| elements.element(&mut fields, file)).collect()
    }

    fn bytes(&self, file: &FileBytes, elements: Elements) -> Result<Bytes> {
        let head = self.head.map_or(0, |head| head.len(file.widths.address));
        let len = self.count.checked_mul(elements.len);
        let len = len.and_then(|len| len.checked_add(head + self.tail + 4)).unwrap_or(u64::MAX);
        let bytes = file.read(self.address, len)?;
        check_sum(elements.region, &bytes, self.address)?;
        Ok(bytes)
    }
}

/// An array of chunks.
pub(super) trait ChunkArray {
    fn elements(&self) -> Elements;

    /// Returns the number of the last element that was ever written, and 1, if the array has it.
    fn end(&self) -> u64;

    /// Returns the run that has element `number`; `None` if the array has no space for it, because its chunk was never
    /// written.
    fn run(&mut self, file: &FileBytes, number: u64) -> Result<Option<PageRun>>;
}

/// Looks up elements, whose numbers are sorted, and calls `found` with the second number of each that is there.
pub(super) fn lookup(
    file: &FileBytes,
    array: &mut impl ChunkArray,
    mut wanted: &[(u64, usize)],
    found: &mut impl FnMut(usize, Entry),
) -> Result<()> {
    let mut failed = Ok(());
    while let Some(&(number, _)) = wanted.first() {
        let run = array.run(file, number);
        let end = match &run {
            Ok(Some(run)) => run.first.saturating_add(run.count),
            _ => 0,
        };
        // At least one, so that the search ends.
        let here = wanted.partition_point(|(number, _)| *number < end).max(1);
        let read = run.and_then(|run| {
            let read = run.map(|run| Ok((run.first, run.read(file, array.elements())?)));
            read.transpose()
        });
        match read {
            Ok(Some((first, entries))) => {
                for &(number, wanted) in wanted.iter().take(here) {
                    let entry = entries.get((number - first) as usize).copied().flatten();
                    let Some(entry) = entry else { continue };
                    check_end(array, number)?;
                    found(wanted, entry);
                }
            }
            Ok(None) => {}
            // The other runs are looked up too, so that all missing blocks are requested at once.
            Err(error) if file.blocks.has_missed() => failed = Err(error),
            Err(error) => return Err(error),
        }
        wanted = wanted.get(here..).unwrap_or_default();
    }
    failed
}

/// Fails if an element that has an address lies beyond the end of its array.
fn check_end(array: &impl ChunkArray, number: u64) -> Result<()> {
    let end = array.end();
    if number < end {
        return Ok(());
    }
    let message = format!("element {number} was written, but the last one is before {end}");
    Err(Error::corrupt_region(array.elements().region, message))
}
