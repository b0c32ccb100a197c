//! The extensible array of chunks, for datasets with one unlimited axis.
//!
//! Format: HDF5 File Format Specification version 3.0, VII.D "The Extensible Array Index".
//!
//! ```text
//!   header ──▶ index block:       EAIB │ first elements │ data blocks │ secondary blocks │ checksum
//!              secondary block:   EASB │ a bit per page │ data blocks │ checksum
//!              data block:        EADB │ elements │ checksum
//!          or  data block:        EADB │ checksum │ page 0 │ page 1 │ …      page:  elements │ checksum
//! ```
//!
//! Levels of data blocks become larger: level `u` has 2^(u/2) blocks of 2^((u+1)/2) times the least elements. The
//! index block has the addresses of the blocks of the first levels; each further level has a secondary block.

use super::super::file_bytes::{Fields, FileBytes};
use super::array::{BlockHead, ChunkArray, Elements, MOST_RUNS, PageRun};
use super::chunk_index::ChunkIndex;
use super::{check_sum, is_set};
use gridfusion_core::Result;

/// The name of the region in errors.
const REGION: &str = "extensible array of chunks";

/// An extensible array whose index block exists.
#[derive(Debug)]
pub(super) struct ExtensibleArray {
    header: Header,
    /// The addresses of the data blocks of the first levels.
    blocks: Vec<u64>,
    /// The addresses of the secondary blocks of the other levels.
    secondary: Vec<u64>,
    /// The secondary block that was read last, with its level.
    last: Option<(usize, Secondary)>,
}

#[derive(Debug)]
struct Header {
    address: u64,
    elements: Elements,
    /// Elements in the index block.
    in_index: u64,
    index_block: u64,
    /// The elements of a page of a data block.
    page: u64,
    /// Bytes of the number of a block's first element.
    first_width: u8,
    levels: Vec<Level>,
    /// Levels whose blocks the index block knows.
    direct: usize,
    counts: Counts,
}

/// The numbers of parts, as the header has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counts {
    secondary: u64,
    blocks: u64,
    /// The number of the last element that was ever written, and 1.
    end: u64,
}

/// A level of data blocks.
#[derive(Debug, Clone, Copy)]
struct Level {
    /// The number of its first element, after those of the index block.
    first: u64,
    blocks: u64,
    /// Elements per block.
    elements: u64,
}

#[derive(Debug)]
struct Secondary {
    blocks: Vec<u64>,
    /// A bit per page that was written.
    written: Vec<u8>,
}

impl Header {
    fn read(file: &FileBytes, address: u64) -> Result<Self> {
        let (address_width, length_width) = (file.widths.address, file.widths.length);
        let len = 12 + 6 * u64::from(length_width) + u64::from(address_width) + 4;
        let bytes = file.read(address, len)?;
        let mut fields = Fields::new(REGION, address, &bytes);
        fields.magic(b"EAHD\0")?;
        check_sum(REGION, &bytes, address)?;
        let elements = Elements::read(&mut fields, REGION, address_width)?;
        let (bits, in_index, least) = (fields.uint(1)?, fields.uint(1)?, fields.uint(1)?);
        let (pointers, page_bits) = (fields.uint(1)?, fields.uint(1)?);
        let mut count = || fields.uint(length_width);
        let (secondary, _, blocks, _, end, _) =
            (count()?, count()?, count()?, count()?, count()?, count()?);
        let index_block = fields.uint(address_width)?;
        let levels = (bits + 1).checked_sub(u64::from(least.trailing_zeros()));
        let is_valid = least.is_power_of_two() && pointers.is_power_of_two() && bits <= 64;
        let levels = levels.filter(|_| is_valid).ok_or_else(|| {
            let found = format!("{bits} bits, {least} elements and {pointers} blocks at least");
            fields.corrupt(found)
        })?;
        let levels = levels_of(levels as u32, least);
        let direct = (2 * pointers.trailing_zeros() as usize).min(levels.len());
        Ok(Self {
            address,
            elements,
            in_index,
            index_block,
            page: 1_u64.checked_shl(page_bits as u32).unwrap_or(u64::MAX),
            first_width: bits.div_ceil(8) as u8,
            levels,
            direct,
            counts: Counts { secondary, blocks, end },
        })
    }

    fn head(&self, magic: &'static [u8; 5], first: Option<[u64; 2]>) -> BlockHead {
        let first = first.map(|first| (first, self.first_width));
        BlockHead { magic, owner: self.address, first }
    }

    /// Returns the run of the elements in the index block.
    fn first_run(&self, tail: u64) -> PageRun {
        let head = Some(self.head(b"EAIB\0", None));
        PageRun { address: self.index_block, head, first: 0, count: self.in_index, tail }
    }

    /// Returns the pages of a data block of a level; 0 if it has none.
    fn pages(&self, level: &Level) -> u64 {
        if level.elements > self.page { level.elements.div_ceil(self.page) } else { 0 }
    }
}

/// Returns the levels of data blocks.
fn levels_of(count: u32, least: u64) -> Vec<Level> {
    let mut first = 0_u64;
    let level = |number: u32| {
        let elements =
            least.saturating_mul(1_u64.checked_shl(number.div_ceil(2)).unwrap_or(u64::MAX));
        let blocks = 1_u64.checked_shl(number / 2).unwrap_or(u64::MAX);
        let level = Level { first, blocks, elements };
        first = first.saturating_add(blocks.saturating_mul(elements));
        level
    };
    (0..count).map(level).collect()
}

impl ExtensibleArray {
    /// Reads the header and the index block. Returns `None` if no chunk was ever written.
    pub(super) fn read(file: &FileBytes, index: &ChunkIndex) -> Result<Option<Self>> {
        let header = Header::read(file, index.address)?;
        let width = file.widths.address;
        if file.widths.is_undefined(header.index_block) {
            let Counts { secondary, blocks, end } = header.counts;
            if (secondary, blocks, end) == (0, 0, 0) {
                return Ok(None);
            }
            let message = format!("{end} elements without an index block");
            return Err(Fields::new(REGION, index.address, &[]).corrupt(message));
        }
        let direct = header.levels.iter().take(header.direct).map(|level| level.blocks).sum();
        let secondary = (header.levels.len() - header.direct) as u64;
        let before =
            header.head(b"EAIB\0", None).len(width) + header.in_index * header.elements.len;
        let len = before + (direct + secondary) * u64::from(width) + 4;
        let bytes = file.read(header.index_block, len)?;
        check_sum(REGION, &bytes, header.index_block)?;
        let mut fields = Fields::new(REGION, header.index_block, &bytes);
        fields.take(before as usize)?;
        let mut addresses =
            |count| (0..count).map(|_| fields.uint(width)).collect::<Result<Vec<u64>>>();
        let (blocks, secondary) = (addresses(direct)?, addresses(secondary)?);
        Ok(Some(Self { header, blocks, secondary, last: None }))
    }

    /// Reads the secondary block of a level; returns `None` if it was never written.
    fn secondary(&mut self, file: &FileBytes, number: usize) -> Result<Option<&Secondary>> {
        let header = &self.header;
        let address = number.checked_sub(header.direct).and_then(|at| self.secondary.get(at));
        let Some(&address) = address.filter(|&&at| !file.widths.is_undefined(at)) else {
            return Ok(None);
        };
        if self.last.as_ref().is_none_or(|(level, _)| *level != number) {
            let level = header.levels[number];
            let width = file.widths.address;
            let head = header.head(b"EASB\0", Some([level.first; 2]));
            let written = header.pages(&level).div_ceil(8).saturating_mul(level.blocks);
            let len = level.blocks.saturating_mul(u64::from(width)).saturating_add(written);
            let len = len.saturating_add(head.len(width) + 4);
            let bytes = file.read(address, len)?;
            check_sum(REGION, &bytes, address)?;
            let mut fields = Fields::new(REGION, address, &bytes);
            head.check(&mut fields, width)?;
            let written = fields.take(written as usize)?.to_vec();
            let blocks = (0..level.blocks).map(|_| fields.uint(width)).collect::<Result<_>>()?;
            self.last = Some((number, Secondary { blocks, written }));
        }
        Ok(self.last.as_ref().map(|(_, secondary)| secondary))
    }

    /// Returns the run with an element of a block of a level; `None` if it was never written. `element` counts within
    /// the level.
    fn run_in(&mut self, file: &FileBytes, number: usize, element: u64) -> Result<Option<PageRun>> {
        let level = self.header.levels[number];
        let (block, within) = (element / level.elements, element % level.elements);
        let pages = self.header.pages(&level);
        let first = level.first + block * level.elements;
        // The library counts the blocks of the index block from its first one, whatever their level.
        let mut counted_first = first;
        let (address, page) = if number < self.header.direct {
            let before: u64 = self.header.levels.iter().take(number).map(|it| it.blocks).sum();
            counted_first += before * level.elements;
            (self.blocks.get((before + block) as usize).copied(), None)
        } else {
            let page = within / self.header.page;
            let secondary = self.secondary(file, number)?;
            let Some(secondary) = secondary else { return Ok(None) };
            let bit = block.saturating_mul(pages).saturating_add(page);
            let page = (pages > 0).then(|| (page, is_set(&secondary.written, bit)));
            (secondary.blocks.get(block as usize).copied(), page)
        };
        let Some(address) = address.filter(|&at| !file.widths.is_undefined(at)) else {
            return Ok(None);
        };
        let header = &self.header;
        let head = header.head(b"EADB\0", Some([first, counted_first]));
        let first = first.saturating_add(header.in_index);
        match page {
            _ if pages > 0 && number < header.direct => {
                let message = "pages of a block that the index block knows";
                Err(Fields::new(REGION, header.index_block, &[]).corrupt(message))
            }
            None => {
                let (head, count) = (Some(head), level.elements);
                Ok(Some(PageRun { address, head, first, count, tail: 0 }))
            }
            Some((_, false)) => Ok(None),
            Some((page, true)) => {
                let start = address.saturating_add(head.len(file.widths.address) + 4);
                let len = header.page.saturating_mul(header.elements.len).saturating_add(4);
                let address = start.saturating_add(page.saturating_mul(len));
                let (first, count) = (first + page * header.page, header.page);
                Ok(Some(PageRun { address, head: None, first, count, tail: 0 }))
            }
        }
    }

    /// Returns all runs that were written. Fails if there are not as many blocks as the header counts.
    pub(super) fn runs(&mut self, file: &FileBytes) -> Result<Vec<PageRun>> {
        let mut runs = vec![];
        if self.header.in_index > 0 {
            runs.extend(self.run(file, 0)?);
        }
        let is_there = |address: &&u64| !file.widths.is_undefined(**address);
        let mut counts = Counts {
            secondary: self.secondary.iter().filter(is_there).count() as u64,
            blocks: self.blocks.iter().filter(is_there).count() as u64,
            ..self.header.counts
        };
        let mut failed = Ok(());
        for number in 0..self.header.levels.len() {
            let blocks = match self.secondary(file, number) {
                Ok(Some(secondary)) => secondary.blocks.iter().filter(is_there).count(),
                Ok(None) => 0,
                // The other levels are visited too, so that all missing blocks are requested at once.
                Err(error) if file.blocks.has_missed() => {
                    failed = Err(error);
                    continue;
                }
                Err(error) => return Err(error),
            };
            counts.blocks += blocks as u64;
            if blocks > 0 || number < self.header.direct {
                self.runs_of(file, number, &mut runs)?;
            }
        }
        failed?;
        let expected = self.header.counts;
        if counts != expected {
            let message = format!(
                "{} secondary blocks and {} data blocks, but the header counts {} and {}",
                counts.secondary, counts.blocks, expected.secondary, expected.blocks
            );
            return Err(Fields::new(REGION, self.header.address, &[]).corrupt(message));
        }
        Ok(runs)
    }

    fn runs_of(&mut self, file: &FileBytes, number: usize, runs: &mut Vec<PageRun>) -> Result<()> {
        let level = self.header.levels[number];
        let step = level.elements.min(self.header.page);
        let pages = level.elements.div_ceil(step);
        let bytes = level.elements.saturating_mul(self.header.elements.len);
        if pages.saturating_mul(level.blocks) > MOST_RUNS || bytes > file.blocks.size() {
            let message = format!("{} blocks of {} elements", level.blocks, level.elements);
            return Err(Fields::new(REGION, self.header.address, &[]).corrupt(message));
        }
        for block in 0..level.blocks {
            let first = block * level.elements;
            for page in 0..pages {
                runs.extend(self.run_in(file, number, first + page * step)?);
            }
        }
        Ok(())
    }
}

impl ChunkArray for ExtensibleArray {
    fn elements(&self) -> Elements {
        self.header.elements
    }

    fn end(&self) -> u64 {
        self.header.counts.end
    }

    fn run(&mut self, file: &FileBytes, number: u64) -> Result<Option<PageRun>> {
        let header = &self.header;
        let Some(element) = number.checked_sub(header.in_index) else {
            let addresses = (self.blocks.len() + self.secondary.len()) as u64;
            return Ok(Some(header.first_run(addresses * u64::from(file.widths.address))));
        };
        let level = header.levels.partition_point(|level| level.first <= element).checked_sub(1);
        let Some(level) = level else { return Ok(None) };
        let within = element - header.levels[level].first;
        let Level { blocks, elements, .. } = header.levels[level];
        // No array has more elements than its levels.
        match within < blocks.saturating_mul(elements) {
            true => self.run_in(file, level, within),
            false => Ok(None),
        }
    }
}
