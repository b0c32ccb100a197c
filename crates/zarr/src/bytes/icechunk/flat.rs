//! [`Table`]: a checked reader of FlatBuffers, the encoding of all metadata of Icechunk.
//!
//! ```text
//!   root ──▶ table: offset back to its vtable ──▶ vtable: for each field, its offset in the table, 0 if it is absent
//!              └ fields: numbers and structs themselves; texts, vectors and tables by an offset forward
//! ```
//!
//! Every offset is checked. Several fields may point to the same bytes, so that few bytes could stand for very many
//! items. A writer has no reason for this: what is read of vectors and texts may take no more bytes than the buffer
//! has.
//!
//! Facts: the internals page of FlatBuffers.

use std::cell::Cell;

use gridfusion_core::{Error, Result};

/// The bytes of one object, and how many of them may still be read through vectors and texts.
#[derive(Debug)]
pub(super) struct Buffer<'a> {
    bytes: &'a [u8],
    /// The kind of the object, for errors.
    region: &'static str,
    left: Cell<u64>,
}

/// A table of a buffer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Table<'a> {
    buffer: &'a Buffer<'a>,
    /// Where it begins.
    at: usize,
    /// Where its vtable begins.
    vtable: usize,
    /// The bytes of the vtable, and of the table itself.
    vtable_len: usize,
    len: usize,
}

impl<'a> Buffer<'a> {
    pub(super) fn new(bytes: &'a [u8], region: &'static str) -> Self {
        Self { bytes, region, left: Cell::new(bytes.len() as u64) }
    }

    /// Returns the outermost table.
    pub(super) fn root(&'a self) -> Result<Table<'a>> {
        let at = self.u32(0)? as usize;
        Table::new(self, at)
    }

    pub(super) fn corrupt(&self, message: impl Into<String>) -> Error {
        Error::corrupt_region(self.region, message)
    }

    fn beyond(&self, at: usize, len: usize) -> Error {
        let size = self.bytes.len();
        self.corrupt(format!(
            "{len} bytes at byte {at} of its decompressed content, which has {size}"
        ))
    }

    fn slice(&self, at: usize, len: usize) -> Result<&'a [u8]> {
        let end = at.checked_add(len);
        let slice = end.and_then(|end| self.bytes.get(at..end));
        slice.ok_or_else(|| self.beyond(at, len))
    }

    fn array<const N: usize>(&self, at: usize) -> Result<[u8; N]> {
        self.slice(at, N)?.try_into().map_err(|_| self.beyond(at, N))
    }

    fn u16(&self, at: usize) -> Result<usize> {
        Ok(u16::from_le_bytes(self.array(at)?).into())
    }

    fn u32(&self, at: usize) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array(at)?))
    }

    /// Returns where an offset leads that is stored at `at`.
    fn forward(&self, at: usize) -> Result<usize> {
        let target = at.checked_add(self.u32(at)? as usize).filter(|target| *target > at);
        target.ok_or_else(|| self.corrupt(format!("an offset at byte {at} that leads nowhere")))
    }

    /// Returns where the elements of the vector at `at` begin, and their number.
    fn vector(&self, at: usize, width: usize) -> Result<(usize, usize)> {
        let len = self.u32(at)? as usize;
        let begin = at.checked_add(4).ok_or_else(|| self.beyond(at, 4))?;
        let bytes = len.checked_mul(width).ok_or_else(|| self.beyond(begin, len))?;
        self.slice(begin, bytes)?;
        Ok((begin, len))
    }

    /// Counts bytes of vectors and texts.
    fn spend(&self, bytes: usize) -> Result<()> {
        let left = self.left.get().checked_sub(bytes as u64);
        self.left.set(left.ok_or_else(|| {
            self.corrupt("vectors that share bytes, and together are longer than the object")
        })?);
        Ok(())
    }
}

impl<'a> Table<'a> {
    fn new(buffer: &'a Buffer<'a>, at: usize) -> Result<Self> {
        let back = i32::from_le_bytes(buffer.array(at)?);
        let vtable = i64::try_from(at).ok().and_then(|at| at.checked_sub(i64::from(back)));
        let vtable = vtable.and_then(|vtable| usize::try_from(vtable).ok());
        let vtable =
            vtable.ok_or_else(|| buffer.corrupt(format!("a table at byte {at} without fields")))?;
        let (vtable_len, len) = (buffer.u16(vtable)?, buffer.u16(vtable.saturating_add(2))?);
        if vtable_len < 4 || !vtable_len.is_multiple_of(2) || len < 4 {
            return Err(
                buffer.corrupt(format!("a table at byte {at} with {vtable_len} bytes of fields"))
            );
        }
        buffer.slice(vtable, vtable_len)?;
        buffer.slice(at, len)?;
        Ok(Self { buffer, at, vtable, vtable_len, len })
    }

    pub(super) fn corrupt(&self, message: impl Into<String>) -> Error {
        self.buffer.corrupt(message)
    }

    /// Returns where the field with this number begins, which has `width` bytes; `None` if it is absent.
    fn field(&self, number: usize, width: usize) -> Result<Option<usize>> {
        let entry = 4 + 2 * number;
        if entry + 2 > self.vtable_len {
            return Ok(None);
        }
        let offset = self.buffer.u16(self.vtable + entry)?;
        if offset == 0 {
            return Ok(None);
        }
        if offset < 4 || offset + width > self.len {
            return Err(self.corrupt(format!(
                "field {number} of the table at byte {} is outside of it",
                self.at
            )));
        }
        Ok(Some(self.at + offset))
    }

    /// Returns a struct of `N` bytes, or a number as its bytes.
    pub(super) fn fixed<const N: usize>(&self, number: usize) -> Result<Option<[u8; N]>> {
        self.field(number, N)?.map(|at| self.buffer.array(at)).transpose()
    }

    pub(super) fn u8(&self, number: usize, default: u8) -> Result<u8> {
        Ok(self.fixed(number)?.map_or(default, |[byte]| byte))
    }

    pub(super) fn u32(&self, number: usize) -> Result<u32> {
        Ok(self.fixed(number)?.map_or(0, u32::from_le_bytes))
    }

    pub(super) fn i32(&self, number: usize) -> Result<i32> {
        Ok(self.fixed(number)?.map_or(0, i32::from_le_bytes))
    }

    pub(super) fn u64(&self, number: usize) -> Result<u64> {
        Ok(self.fixed(number)?.map_or(0, u64::from_le_bytes))
    }

    /// Returns a table in a field.
    pub(super) fn table(&self, number: usize) -> Result<Option<Self>> {
        let Some(at) = self.field(number, 4)? else { return Ok(None) };
        Self::new(self.buffer, self.buffer.forward(at)?).map(Some)
    }

    /// Returns the bytes of a vector of bytes.
    pub(super) fn bytes(&self, number: usize) -> Result<Option<&'a [u8]>> {
        self.records(number, 1)
    }

    /// Returns the bytes of a vector of numbers or structs of `width` bytes each.
    pub(super) fn records(&self, number: usize, width: usize) -> Result<Option<&'a [u8]>> {
        let Some(at) = self.field(number, 4)? else { return Ok(None) };
        let (begin, len) = self.buffer.vector(self.buffer.forward(at)?, width)?;
        self.buffer.spend(len * width)?;
        self.buffer.slice(begin, len * width).map(Some)
    }

    /// Returns a text.
    pub(super) fn text(&self, number: usize) -> Result<Option<&'a str>> {
        let text = |bytes: &'a [u8]| {
            std::str::from_utf8(bytes).map_err(|_| self.corrupt("a text that is not UTF-8"))
        };
        self.bytes(number)?.map(text).transpose()
    }

    /// Returns a vector of tables or texts; an empty one if it is absent.
    pub(super) fn vector(&self, number: usize) -> Result<Vector<'a>> {
        let Some(at) = self.field(number, 4)? else {
            return Ok(Vector { buffer: self.buffer, begin: 0, len: 0 });
        };
        let (begin, len) = self.buffer.vector(self.buffer.forward(at)?, 4)?;
        Ok(Vector { buffer: self.buffer, begin, len })
    }

    /// Fails for a required field that is absent.
    pub(super) fn needed<T>(&self, field: Option<T>, name: &str) -> Result<T> {
        field.ok_or_else(|| self.corrupt(format!("there is no {name}")))
    }

    /// Whether a field is there.
    pub(super) fn has(&self, number: usize) -> Result<bool> {
        Ok(self.field(number, 0)?.is_some())
    }
}

/// A vector of tables or texts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Vector<'a> {
    buffer: &'a Buffer<'a>,
    begin: usize,
    len: usize,
}

impl<'a> Vector<'a> {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    fn target(&self, number: usize) -> Result<usize> {
        if number >= self.len {
            return Err(Error::internal("an element behind the end of a vector"));
        }
        self.buffer.forward(self.begin + 4 * number)
    }

    /// Returns one table.
    pub(super) fn table(&self, number: usize) -> Result<Table<'a>> {
        Table::new(self.buffer, self.target(number)?)
    }

    /// Returns all tables.
    pub(super) fn tables(self) -> impl Iterator<Item = Result<Table<'a>>> {
        (0..self.len).map(move |number| {
            self.buffer.spend(4)?;
            self.table(number)
        })
    }

    /// Returns all texts.
    pub(super) fn texts(self) -> impl Iterator<Item = Result<&'a str>> {
        (0..self.len).map(move |number| {
            let (begin, len) = self.buffer.vector(self.target(number)?, 1)?;
            self.buffer.spend(len + 4)?;
            std::str::from_utf8(self.buffer.slice(begin, len)?)
                .map_err(|_| self.buffer.corrupt("a text that is not UTF-8"))
        })
    }
}
