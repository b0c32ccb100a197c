//! Tables of references in Parquet, as kerchunk and VirtualiZarr write them with fsspec.
//!
//! ```text
//!   refs.parq/.zmetadata        { "metadata": {…}, "record_size": 10000 }
//!   refs.parq/t2m/refs.0.parq   path      offset   size   raw        the first 10000 chunks, in the order of their numbers
//!                               s3://…    4096     1000   null       bytes of another object
//!                               s3://…    0        0      null       a whole object
//!                               null      0        0      0x0102…    the bytes themselves
//!                               null      0        0      null       an absent chunk
//! ```
//!
//! A chunk's number counts the chunks of its array, those along the last axis first. The last table has rows that no chunk has:
//! they are null. A table without any reference is not written at all.
//!
//! Tables are read whole. Their writers make one row group of each, so reading its footer first would cost a request and save
//! no bytes.
//!
//! Facts: `LazyReferenceMapper` of fsspec, and tables that fastparquet and pyarrow wrote for it.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;

use super::array::ZarrArray;
use super::parquet_file::ParquetFile;
use super::places::{KnownTable, ObjectPlace, ObjectPlaces, PlaceTable};
use gridfusion_core::format::{ByteRange, Location, Machine, Replies, Step};
use gridfusion_core::{Error, Result};

const REGION: &str = "table of references";

/// The most bytes of the pages of a table when they are decompressed, and of the table when it is parsed.
const MOST_BYTES: u64 = 1 << 28;

/// The bytes of a parsed row, without its path and its own bytes.
const ROW: u64 = 20;

/// The tables that are read at once.
const AT_ONCE: usize = 16;

/// The path of a row without one.
const NO_PATH: u32 = u32::MAX;

/// The references of some chunks that follow one another.
#[derive(Debug)]
pub struct ReferenceTable {
    /// The number of the first chunk.
    first: u64,
    /// The different paths, and for each row its own.
    paths: Vec<Arc<str>>,
    path_of: Vec<u32>,
    /// For each row, the first byte and the number of bytes.
    ranges: Vec<(u64, u64)>,
    /// The bytes of rows that have them.
    raw: HashMap<u64, Bytes>,
    /// Bytes of memory.
    memory: u64,
}

impl ReferenceTable {
    /// Parses a table of an array with `chunks` chunks. The table is that with this number.
    fn parse(bytes: Bytes, number: u64, record_size: u64, chunks: u64) -> Result<Self> {
        let file = ParquetFile::try_new(bytes, MOST_BYTES)?;
        let rows = file.rows()?;
        let first = number.checked_mul(record_size);
        let first = first.ok_or_else(|| corrupt(format!("the table {number}")))?;
        let needed = chunks.saturating_sub(first).min(record_size);
        if rows < needed || rows > record_size {
            let message =
                format!("{rows} rows for {needed} chunks, and the record size {record_size}");
            return Err(corrupt(message));
        }
        if rows.saturating_mul(ROW) > MOST_BYTES {
            return Err(Error::unsupported(format!(
                "a table of {rows} references; write it with a smaller record size"
            )));
        }
        let len = rows as usize;
        let mut table = Self {
            first,
            paths: vec![],
            path_of: vec![NO_PATH; len],
            ranges: vec![(0, 0); len],
            raw: HashMap::new(),
            memory: rows * ROW,
        };
        table.take_paths(&file)?;
        table.take_ranges(&file)?;
        table.take_raw(&file)?;
        table.check(needed)?;
        Ok(table)
    }

    fn take_paths(&mut self, file: &ParquetFile) -> Result<()> {
        let mut known: HashMap<Arc<str>, u32> = HashMap::new();
        file.bytes("path", |row, path| {
            let path =
                str::from_utf8(path).map_err(|_| corrupt(format!("the path in row {row}")))?;
            let number = match known.get(path) {
                Some(number) => *number,
                None => {
                    let number = self.paths.len() as u32;
                    let path: Arc<str> = path.into();
                    self.add(path.len() as u64)?;
                    self.paths.push(Arc::clone(&path));
                    known.insert(path, number);
                    number
                }
            };
            self.path_of[row as usize] = number;
            Ok(())
        })?;
        Ok(())
    }

    /// Counts the memory of a path, or of the bytes of a row. A dictionary may repeat these in each row.
    fn add(&mut self, bytes: u64) -> Result<()> {
        /// Bytes of an entry, besides the path or bytes themselves.
        const ENTRY: u64 = 64;
        self.memory += bytes + ENTRY;
        match self.memory > 2 * MOST_BYTES {
            true => {
                Err(Error::unsupported(format!("a table of more than {} bytes", 2 * MOST_BYTES)))
            }
            false => Ok(()),
        }
    }

    /// Rows with a path must have an offset and a size.
    fn take_ranges(&mut self, file: &ParquetFile) -> Result<()> {
        let with_path = self.path_of.iter().filter(|path| **path != NO_PATH).count();
        for (name, is_offset) in [("offset", true), ("size", false)] {
            let mut taken = 0;
            file.numbers(name, |row, value| {
                let has_path = self.path_of[row as usize] != NO_PATH;
                taken += usize::from(has_path);
                let value = u64::try_from(value).ok().or_else(|| (!has_path).then_some(0));
                let value =
                    value.ok_or_else(|| corrupt(format!("a negative {name} in row {row}")))?;
                let range = &mut self.ranges[row as usize];
                *(if is_offset { &mut range.0 } else { &mut range.1 }) = value;
                Ok(())
            })?;
            if taken != with_path {
                return Err(corrupt(format!("{with_path} paths, and {taken} of them with {name}")));
            }
        }
        Ok(())
    }

    fn take_raw(&mut self, file: &ParquetFile) -> Result<()> {
        file.bytes("raw", |row, bytes| {
            let bytes = match bytes.strip_prefix(b"base64:") {
                Some(encoded) => BASE64_STANDARD.decode(encoded).map_err(|error| {
                    corrupt(format!("bytes that are not base64 in row {row} ({error})"))
                })?,
                None => bytes.to_vec(),
            };
            self.add(bytes.len() as u64)?;
            self.raw.insert(row, bytes.into());
            Ok(())
        })?;
        Ok(())
    }

    /// Fails for a reference beyond the `needed` ones, and for a range beyond all objects.
    fn check(&self, needed: u64) -> Result<()> {
        for (row, path) in self.path_of.iter().enumerate() {
            let (start, len) = self.ranges[row];
            let has_raw = self.raw.contains_key(&(row as u64));
            let has_path = *path != NO_PATH;
            if (has_path || has_raw) && row as u64 >= needed {
                return Err(corrupt(format!(
                    "a reference in row {row}, where the array has {needed} chunks"
                )));
            }
            if has_path && !has_raw && self.paths[*path as usize].is_empty() {
                return Err(corrupt(format!("an empty path in row {row}")));
            }
            if has_path && start.checked_add(len).is_none() {
                return Err(corrupt(format!("{len} bytes from {start} on in row {row}")));
            }
        }
        Ok(())
    }

    /// The number of references.
    pub fn references(&self) -> u64 {
        let rows = self.path_of.iter().enumerate();
        let is_there = |(row, path): &(usize, &u32)| {
            **path != NO_PATH || self.raw.contains_key(&(*row as u64))
        };
        rows.filter(is_there).count() as u64
    }

    /// Bytes of memory.
    pub fn memory(&self) -> u64 {
        self.memory
    }

    /// Whether an object is in a store.
    pub fn names_stores(&self) -> bool {
        self.paths.iter().any(|path| path.contains("://") && !path.starts_with("file://"))
    }
}

impl PlaceTable for ReferenceTable {
    fn place(&self, array: &ZarrArray, object: &[u64]) -> Result<Option<ObjectPlace>> {
        let row = array.object_number(object).and_then(|number| number.checked_sub(self.first));
        let path = row.and_then(|row| Some((row, *self.path_of.get(usize::try_from(row).ok()?)?)));
        let (row, path) = path.ok_or_else(|| Error::internal("a chunk of another table"))?;
        if let Some(bytes) = self.raw.get(&row) {
            return Ok(Some(ObjectPlace::Here(bytes.clone())));
        }
        let Some(path) = self.paths.get(path as usize) else { return Ok(None) };
        let (start, len) = self.ranges[row as usize];
        let range = match (start, len) {
            (0, 0) => ByteRange::Whole,
            // The sum was checked.
            (start, len) => ByteRange::from(start..start.saturating_add(len)),
        };
        Ok(Some(ObjectPlace::At(Location::new(Arc::clone(path), range))))
    }
}

/// The tables of an array.
#[derive(Debug, Clone)]
pub struct TableNames {
    array: Arc<ZarrArray>,
    record_size: u64,
}

impl TableNames {
    /// Returns the tables of an array, each with so many rows.
    pub fn new(array: Arc<ZarrArray>, record_size: u64) -> Self {
        Self { array, record_size: record_size.max(1) }
    }

    /// The folder of the tables.
    pub fn folder(&self) -> &str {
        &self.array.variable().path
    }

    /// Returns the number of chunks.
    ///
    /// # Errors
    /// `Corrupt` if they are more than a number of 64 bits.
    pub fn chunks(&self) -> Result<u64> {
        let chunks = self.array.objects();
        chunks.ok_or_else(|| corrupt("more than 2⁶⁴ chunks".to_owned()).in_file(self.folder()))
    }

    /// Returns the number of tables.
    ///
    /// # Errors
    /// As [`TableNames::chunks`].
    pub fn tables(&self) -> Result<u64> {
        Ok(self.chunks()?.div_ceil(self.record_size))
    }

    /// Returns the numbers of the tables with these chunks.
    ///
    /// # Errors
    /// `Internal` for chunks outside of the array.
    pub fn tables_of(&self, chunks: &[Vec<u64>]) -> Result<BTreeSet<u64>> {
        let number = |chunk: &Vec<u64>| {
            let number = self.array.object_number(chunk);
            number.ok_or_else(|| Error::internal(format!("the chunk {chunk:?}")))
        };
        chunks.iter().map(|chunk| Ok(number(chunk)? / self.record_size)).collect()
    }

    /// Returns the name of a table in its folder.
    pub fn name(number: u64) -> String {
        format!("refs.{number}.parq")
    }

    /// Returns the number of the table with this name; `None` for another object.
    pub fn number(name: &str) -> Option<u64> {
        let number = name.strip_prefix("refs.")?.strip_suffix(".parq")?.parse().ok()?;
        (Self::name(number) == name).then_some(number)
    }

    /// Returns the path of a table.
    pub fn object(&self, number: u64) -> String {
        match self.folder() {
            "" => Self::name(number),
            folder => format!("{folder}/{}", Self::name(number)),
        }
    }
}

/// A machine that reads tables. Returns each with its number; `None` for an absent one.
#[derive(Debug)]
pub struct ReadTables {
    names: TableNames,
    /// The tables that are still to be requested.
    unread: BTreeSet<u64>,
    requested: Vec<u64>,
    read: Vec<(u64, Option<Arc<ReferenceTable>>)>,
}

impl ReadTables {
    /// Makes a machine for the tables with these numbers.
    pub fn new(names: TableNames, tables: BTreeSet<u64>) -> Self {
        Self { names, unread: tables, requested: vec![], read: vec![] }
    }

    fn take(&mut self, replies: Replies) -> Result<()> {
        let chunks = self.names.chunks()?;
        for (number, bytes) in self.requested.drain(..).zip(replies.into_present()) {
            let parse =
                |bytes| ReferenceTable::parse(bytes, number, self.names.record_size, chunks);
            let table = bytes.map(parse).transpose();
            let table = table.map_err(|error| error.in_file(&self.names.object(number)))?;
            self.read.push((number, table.map(Arc::new)));
        }
        Ok(())
    }
}

impl Machine for ReadTables {
    type Output = Vec<(u64, Option<Arc<ReferenceTable>>)>;

    fn subject(&self) -> &'static str {
        REGION
    }

    fn step(&mut self, replies: Replies) -> Result<Step<Self::Output>> {
        self.take(replies)?;
        while self.requested.len() < AT_ONCE
            && let Some(number) = self.unread.pop_first()
        {
            self.requested.push(number);
        }
        if self.requested.is_empty() {
            return Ok(Step::Done(std::mem::take(&mut self.read)));
        }
        let at = |number: &u64| Location::new(self.names.object(*number), ByteRange::Whole);
        Ok(Step::ReadIfPresent(self.requested.iter().map(at).collect()))
    }
}

/// Tables that were read, with those of all chunks that are looked up; `None` for a table that is known to be absent.
#[derive(Debug)]
pub struct ReadReferences {
    names: TableNames,
    tables: HashMap<u64, Option<Arc<ReferenceTable>>>,
}

impl ReadReferences {
    /// Finds chunks in these tables of an array.
    pub fn new(names: TableNames, tables: HashMap<u64, Option<Arc<ReferenceTable>>>) -> Self {
        Self { names, tables }
    }
}

impl ObjectPlaces for ReadReferences {
    fn tables(&self, _: &ZarrArray, object: &[u64]) -> Result<Vec<KnownTable>> {
        let numbers = self.names.tables_of(&[object.to_vec()])?;
        let table = numbers.first().and_then(|number| self.tables.get(number));
        let table = table.ok_or_else(|| Error::internal("a table that was not read"))?.clone();
        Ok(table.map(|table| KnownTable::Here(table)).into_iter().collect())
    }
}

fn corrupt(message: String) -> Error {
    Error::corrupt_region(REGION, message)
}

#[cfg(test)]
pub(crate) mod tests;
