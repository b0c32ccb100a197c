//! The fractal heap, where objects with many links or attributes have them, and files their shared messages.
//!
//! Format: HDF5 File Format Specification version 3.0, III.G "Disk Format: Level 1G - Fractal Heap".
//!
//! ```text
//!   id of an object ─▶ offset and length in the heap ─▶ row and column of the doubling table
//!
//!   row 0 │  512 │  512 │  512 │  512 │     each cell is a direct block, which has the objects
//!   row 1 │  512 │  512 │  512 │  512 │
//!   row 2 │ 1024 │ 1024 │ 1024 │ 1024 │
//!     …                                    up to a greatest length;
//!   row n │ 128K │ 128K │ 128K │ 128K │     each longer cell is a table of its own, from row 0 on
//! ```

use std::collections::HashMap;

use bytes::Bytes;

use super::file_bytes::{Fields, FileBytes};
use super::filters::Filters;
use super::heap_place::{FilteredBlock, Huge};
use super::parse;
use super::stored_variable::location;
use gridfusion_core::format::{Payload, Scratch};
use gridfusion_core::{Error, Result};

/// The name of the region in errors.
const REGION: &str = "fractal heap";
/// The most bytes of a direct block, of which libhdf5 writes 64 KiB.
const MAX_BLOCK: u64 = 64 << 20;
/// The most bytes of the blocks of a heap that are compressed.
const MAX_DECODED: u64 = 256 << 20;
/// The most tables within tables. The lengths of blocks double from level to level, and have 64 bits.
const MAX_LEVELS: usize = 64;

/// An open heap.
#[derive(Debug)]
pub(super) struct FractalHeap {
    address: u64,
    id_len: usize,
    has_checksums: bool,
    /// The B-tree of objects that are longer than a block.
    huge: u64,
    /// The places of these objects, once they were read.
    huge_places: Option<HashMap<u64, Huge>>,
    /// Blocks per row.
    width: u64,
    /// Bytes of the first block, and of the longest direct block.
    first: u64,
    longest: u64,
    /// Bytes of an offset, and of a length, in an id.
    offset_width: u8,
    length_width: u8,
    root: u64,
    /// The rows of the root; 0 if it is a direct block.
    rows: u64,
    filters: Option<Filters>,
    /// Where the root block is, if it is a direct block.
    root_block: FilteredBlock,
    /// Tables that were read, by address.
    tables: HashMap<u64, Bytes>,
    /// Direct blocks that were read, by offset.
    blocks: HashMap<u64, Bytes>,
    decoded: u64,
}

/// A cell of a table.
struct Cell {
    row: u64,
    column: u64,
    /// The offset of its first byte from that of the table, and its bytes.
    start: u64,
    len: u64,
}

/// A direct block.
struct Block {
    address: u64,
    /// The offset in the heap of its first byte.
    offset: u64,
    len: u64,
    stored: FilteredBlock,
}

impl FractalHeap {
    /// Reads the header of the heap at `address`.
    pub(super) fn read(file: &FileBytes, address: u64) -> Result<Self> {
        let widths = file.widths;
        let (o, l) = (u64::from(widths.address), u64::from(widths.length));
        let fixed = 26 + 3 * o + 12 * l;
        let head = file.read(address, fixed)?;
        let mut fields = Fields::new(REGION, address, &head);
        fields.magic(b"FRHP")?;
        fields.take(3)?;
        let filters_len = fields.uint(2)?;
        let more = if filters_len > 0 { l + 4 + filters_len } else { 0 };
        let bytes = file.read(address, fixed.saturating_add(more))?;
        let mut fields = Fields::new(REGION, address, &bytes);
        fields.checked()?;
        fields.magic(b"FRHP\0")?;
        let (id_len, _, flags) = (fields.uint(2)? as usize, fields.uint(2)?, fields.uint(1)?);
        let (longest_object, _) = (fields.uint(4)?, fields.length(widths)?);
        let huge = fields.address(widths)?;
        // Free space, the bytes of the heap, and the numbers of objects.
        fields.take((l + o + 8 * l) as usize)?;
        let (width, first) = (fields.uint(2)?, fields.length(widths)?);
        let (longest, bits) = (fields.length(widths)?, fields.uint(2)?);
        fields.take(2)?;
        let (root, rows) = (fields.address(widths)?, fields.uint(2)?);
        let are_powers = [width, first, longest].iter().all(|it| it.is_power_of_two());
        if !are_powers || first > longest || bits > 64 || rows > 64 {
            let message = format!(
                "rows of {width} blocks of {first} to {longest} bytes, {rows} rows, {bits} bits"
            );
            return Err(fields.corrupt(message));
        }
        if longest > MAX_BLOCK {
            return Err(Error::unsupported(format!("a heap with blocks of {longest} bytes")));
        }
        let (mut filters, mut root_block) = (None, FilteredBlock::default());
        if filters_len > 0 {
            root_block =
                FilteredBlock { len: fields.length(widths)?, skipped: fields.uint(4)? as u32 };
            let all = parse::filters(fields.take(filters_len as usize)?, widths)?;
            filters = Some(Filters::new(all, 1, None)?);
        }
        let offset_width = bits.div_ceil(8) as u8;
        let longest_width = u64::from(longest.trailing_zeros()).div_ceil(8) as u8;
        let length_width = longest_width.min(longest_object.max(1).ilog2() as u8 / 8 + 1);
        Ok(Self {
            address,
            id_len,
            has_checksums: flags & 2 != 0,
            huge,
            huge_places: None,
            width,
            first,
            longest,
            offset_width,
            length_width,
            root,
            rows,
            filters,
            root_block,
            tables: HashMap::new(),
            blocks: HashMap::new(),
            decoded: 0,
        })
    }

    /// Returns the bytes of an object.
    pub(super) fn object(&mut self, file: &FileBytes, id: &[u8]) -> Result<Bytes> {
        let Some(id) = id.get(..self.id_len.min(id.len())).filter(|id| !id.is_empty()) else {
            return Err(self.corrupt("an empty id of an object"));
        };
        let mut fields = Fields::new(REGION, self.address, id);
        let flags = fields.uint(1)?;
        match (flags >> 6, flags >> 4 & 3) {
            (0, 0) => {
                let (offset, len) =
                    (fields.uint(self.offset_width)?, fields.uint(self.length_width)?);
                self.managed(file, offset, len)
            }
            (0, 1) => self.huge(file, fields),
            // The id has the object itself.
            (0, 2) => {
                let len = match self.id_len > 18 {
                    true => (flags & 15) << 8 | fields.uint(1)?,
                    false => flags & 15,
                };
                fields.take(len as usize + 1).map(Bytes::copy_from_slice)
            }
            _ => Err(fields.corrupt(format!("an id of an object with flags {flags}"))),
        }
    }

    /// Returns an object in a direct block.
    fn managed(&mut self, file: &FileBytes, offset: u64, len: u64) -> Result<Bytes> {
        let block = self.block(file, offset)?;
        let bytes = match self.blocks.get(&block.offset) {
            Some(bytes) => bytes.clone(),
            None => {
                let bytes = self.read_block(file, &block)?;
                self.blocks.insert(block.offset, bytes.clone());
                bytes
            }
        };
        let from = offset - block.offset;
        let end = from.checked_add(len).filter(|&end| end <= bytes.len() as u64);
        let end = end.ok_or_else(|| {
            let of = bytes.len();
            self.corrupt(format!("{len} bytes from byte {from} of a block of {of} bytes"))
        })?;
        Ok(bytes.slice(from as usize..end as usize))
    }

    /// Finds the direct block with an offset.
    fn block(&mut self, file: &FileBytes, offset: u64) -> Result<Block> {
        let (mut table, mut rows, mut start) = (self.root, self.rows, 0);
        if rows == 0 && offset < self.first {
            let (address, len, stored) = (self.root, self.first, self.root_block);
            return Ok(Block { address, offset: 0, len, stored });
        }
        for _ in 0..MAX_LEVELS {
            let cell = self.cell(offset - start).filter(|cell| cell.row < rows);
            let cell = cell.ok_or_else(|| self.corrupt(format!("no block has byte {offset}")))?;
            let (address, stored) = self.entry(file, table, rows, &cell)?;
            if file.widths.is_undefined(address) {
                return Err(self.corrupt(format!("the block with byte {offset} was never written")));
            }
            start += cell.start;
            if cell.len <= self.longest {
                return Ok(Block { address, offset: start, len: cell.len, stored });
            }
            // The rows that have the bytes of the cell together.
            let per_row = self.first.saturating_mul(self.width);
            (table, rows) = (address, u64::from((cell.len / per_row).max(1).ilog2()) + 1);
        }
        Err(self.corrupt("its tables never end"))
    }

    /// Returns the cell of a table with an offset.
    fn cell(&self, offset: u64) -> Option<Cell> {
        let per_row = self.first.checked_mul(self.width)?;
        // Rows 0 and 1 have the same lengths, and each further row has twice those before.
        let doubled = (offset / per_row).checked_ilog2();
        let (row, start, doublings) = match doubled {
            None => (0, 0, 0),
            Some(doubled) => (doubled + 1, per_row.checked_shl(doubled)?, doubled),
        };
        let len = self.first.checked_shl(doublings)?;
        let column = (offset - start) / len;
        Some(Cell { row: u64::from(row), column, start: start + column * len, len })
    }

    /// Reads a cell of the table at `table`: the address of a block or another table.
    fn entry(
        &mut self,
        file: &FileBytes,
        table: u64,
        rows: u64,
        cell: &Cell,
    ) -> Result<(u64, FilteredBlock)> {
        let widths = file.widths;
        let (o, l) = (u64::from(widths.address), u64::from(widths.length));
        let block_len = o + if self.filters.is_some() { l + 4 } else { 0 };
        let block_rows = u64::from(self.longest.ilog2() - self.first.ilog2()) + 2;
        let blocks = rows.min(block_rows) * self.width;
        let head = 5 + o + u64::from(self.offset_width);
        let tables = (rows * self.width - blocks) * o;
        let len = head + blocks * block_len + tables + 4;
        let bytes = match self.tables.get(&table) {
            Some(bytes) if bytes.len() as u64 == len => bytes.clone(),
            _ => {
                let bytes = file.read(table, len)?;
                let mut fields = Fields::new(REGION, table, &bytes);
                fields.checked()?;
                fields.magic(b"FHIB\0")?;
                self.tables.insert(table, bytes.clone());
                bytes
            }
        };
        let index = cell.row * self.width + cell.column;
        let before = index.min(blocks) * block_len + index.saturating_sub(blocks) * o;
        let mut fields = Fields::new(REGION, table, &bytes);
        fields.take((head + before) as usize)?;
        let address = fields.address(widths)?;
        let stored = match &self.filters {
            Some(_) if index < blocks => {
                FilteredBlock { len: fields.length(widths)?, skipped: fields.uint(4)? as u32 }
            }
            _ => FilteredBlock::default(),
        };
        Ok((address, stored))
    }

    fn read_block(&mut self, file: &FileBytes, block: &Block) -> Result<Bytes> {
        let bytes = self.undone(file, block.address, block.len, block.stored)?;
        let mut fields = Fields::new(REGION, block.address, &bytes);
        fields.magic(b"FHDB\0")?;
        fields.take(usize::from(file.widths.address))?;
        let offset = fields.uint(self.offset_width)?;
        if offset != block.offset {
            return Err(fields.corrupt(format!("offset {offset}, expected {}", block.offset)));
        }
        if self.has_checksums {
            let at = fields.position();
            let stored = fields.uint(4)?;
            let mut summed = bytes.to_vec();
            summed.iter_mut().skip(at).take(4).for_each(|byte| *byte = 0);
            if u64::from(parse::checksum(&summed)) != stored {
                return Err(fields.corrupt("the checksum of a block is wrong"));
            }
        }
        Ok(bytes)
    }

    /// Reads bytes that the filters of the heap may have changed.
    fn undone(
        &mut self,
        file: &FileBytes,
        address: u64,
        len: u64,
        stored: FilteredBlock,
    ) -> Result<Bytes> {
        let Some(filters) = &self.filters else { return file.read(address, len) };
        self.decoded = self.decoded.saturating_add(len);
        if self.decoded > MAX_DECODED {
            let most = MAX_DECODED >> 20;
            return Err(Error::unsupported(format!("a heap of more than {most} MiB with filters")));
        }
        let bytes = file.read(address, stored.len)?;
        let payload = Payload::new(location(0, 0), len, filters.codec(stored.skipped)?);
        Ok(payload.decode(bytes, vec![], &mut Scratch::default())?.bytes)
    }

    /// Returns an object that has a place of its own in the file.
    fn huge(&mut self, file: &FileBytes, mut id: Fields<'_>) -> Result<Bytes> {
        let widths = file.widths;
        let (o, l) = (usize::from(widths.address), usize::from(widths.length));
        let own = o + l + if self.filters.is_some() { 4 + l } else { 0 };
        // A long id has the place, a short one a number in a B-tree.
        let place = if id.left() >= own {
            let (address, len) = (id.address(widths)?, id.length(widths)?);
            match &self.filters {
                Some(_) => {
                    let skipped = id.uint(4)? as u32;
                    Huge {
                        address,
                        len: id.length(widths)?,
                        stored: FilteredBlock { len, skipped },
                    }
                }
                None => Huge { address, len, stored: FilteredBlock::default() },
            }
        } else {
            let number = id.uint(id.left().min(8) as u8)?;
            let places = match &mut self.huge_places {
                Some(places) => places,
                None => self.huge_places.insert(parse::huge_objects(file, self.huge)?),
            };
            let place = places.get(&number).copied();
            place.ok_or_else(|| id.corrupt(format!("there is no object {number}")))?
        };
        if place.len > MAX_BLOCK {
            return Err(Error::unsupported(format!("an object of {} bytes in a heap", place.len)));
        }
        self.undone(file, place.address, place.len, place.stored)
    }

    fn corrupt(&self, message: impl Into<String>) -> Error {
        Fields::new(REGION, self.address, &[]).corrupt(message)
    }
}
