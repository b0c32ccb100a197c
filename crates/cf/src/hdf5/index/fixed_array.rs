//! The fixed array of chunks, for datasets whose axes all have a greatest length.
//!
//! Format: HDF5 File Format Specification version 3.0, VII.C "The Fixed Array Index".
//!
//! ```text
//!   header ──▶ data block:  FADB, header │ element 0 … element n-1 │ checksum
//!          or  data block:  FADB, header, a bit per page │ checksum │ page 0 │ page 1 │ …
//!              page:        elements │ checksum
//! ```

use bytes::Bytes;

use super::super::file_bytes::{Fields, FileBytes};
use super::array::{BlockHead, ChunkArray, Elements, MOST_RUNS, PageRun};
use super::chunk_index::ChunkIndex;
use super::numbering::Numbering;
use super::{check_sum, is_set};
use gridfusion_core::Result;

/// The name of the region in errors.
const REGION: &str = "fixed array of chunks";

/// A fixed array whose block exists.
#[derive(Debug)]
pub(super) struct FixedArray {
    elements: Elements,
    count: u64,
    /// The address of the data block, and its beginning.
    block: u64,
    head: BlockHead,
    pages: Option<Pages>,
}

/// The pages of a large array.
#[derive(Debug)]
struct Pages {
    /// The elements of a page. The last one may have fewer.
    elements: u64,
    /// The address of the first page.
    start: u64,
    /// A bit per page that was written.
    written: Bytes,
}

impl FixedArray {
    /// Reads the header, and which pages were written. Returns `None` if no chunk was.
    pub(super) fn read(file: &FileBytes, index: &ChunkIndex) -> Result<Option<Self>> {
        let (address_width, length_width) = (file.widths.address, file.widths.length);
        let len = 8 + u64::from(length_width) + u64::from(address_width) + 4;
        let bytes = file.read(index.address, len)?;
        let mut fields = Fields::new(REGION, index.address, &bytes);
        fields.magic(b"FAHD\0")?;
        check_sum(REGION, &bytes, index.address)?;
        let elements = Elements::read(&mut fields, REGION, address_width)?;
        let (page_bits, count) = (fields.uint(1)?, fields.uint(length_width)?);
        let block = fields.uint(address_width)?;
        let chunks = Numbering::new(index).chunks();
        if chunks != Some(count) && chunks != Some(0) {
            let chunks = chunks.map_or_else(|| "any number of".to_owned(), |it| it.to_string());
            return Err(fields.corrupt(format!("{count} elements for {chunks} chunks")));
        }
        if file.widths.is_undefined(block) {
            return Ok(None);
        }
        let head = BlockHead { magic: b"FADB\0", owner: index.address, first: None };
        let mut array = Self { elements, count, block, head, pages: None };
        if let Some(page) = 1_u64.checked_shl(page_bits as u32).filter(|&page| count > page) {
            array.pages = Some(array.read_pages(file, page)?);
        }
        Ok(Some(array))
    }

    fn read_pages(&self, file: &FileBytes, elements: u64) -> Result<Pages> {
        let head_len = self.head.len(file.widths.address);
        let written_len = self.count.div_ceil(elements).div_ceil(8);
        let len = head_len.saturating_add(written_len).saturating_add(4);
        let bytes = file.read(self.block, len)?;
        let mut fields = Fields::new(REGION, self.block, &bytes);
        self.head.check(&mut fields, file.widths.address)?;
        check_sum(REGION, &bytes, self.block)?;
        let written = bytes.slice(head_len as usize..bytes.len() - 4);
        Ok(Pages { elements, start: self.block.saturating_add(len), written })
    }

    /// Returns all runs that were written.
    pub(super) fn runs(&mut self, file: &FileBytes) -> Result<Vec<PageRun>> {
        let step = self.pages.as_ref().map_or(self.count, |pages| pages.elements);
        if self.count > MOST_RUNS.saturating_mul(step) {
            let message = format!("{} elements in pages of {step}", self.count);
            return Err(Fields::new(REGION, self.block, &[]).corrupt(message));
        }
        let (mut runs, mut number) = (vec![], 0);
        while number < self.count {
            runs.extend(self.run(file, number)?);
            number += step;
        }
        Ok(runs)
    }
}

impl ChunkArray for FixedArray {
    fn elements(&self) -> Elements {
        self.elements
    }

    fn end(&self) -> u64 {
        self.count
    }

    fn run(&mut self, _: &FileBytes, number: u64) -> Result<Option<PageRun>> {
        if number >= self.count {
            let message = format!("no element {number} among {}", self.count);
            return Err(Fields::new(REGION, self.block, &[]).corrupt(message));
        }
        let (first, count) = (0, self.count);
        let Some(pages) = &self.pages else {
            let head = Some(self.head);
            return Ok(Some(PageRun { address: self.block, head, first, count, tail: 0 }));
        };
        let page = number / pages.elements;
        if !is_set(&pages.written, page) {
            return Ok(None);
        }
        let len = pages.elements.saturating_mul(self.elements.len).saturating_add(4);
        let address = pages.start.saturating_add(page.saturating_mul(len));
        let first = page * pages.elements;
        let count = pages.elements.min(self.count - first);
        Ok(Some(PageRun { address, head: None, first, count, tail: 0 }))
    }
}
