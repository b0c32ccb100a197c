//! [`Manifest`]: where chunks are: here, in an object of the repository, or in a range of any other object.
//!
//! ```text
//!   Manifest ── arrays, by id ── references, by the coordinates of chunks ──▶ inline bytes
//!                                                                            chunk id, offset, length
//!                                                                            location, offset, length, tag or time
//! ```
//!
//! The bytes stay as they are, and a chunk is found by halving. That proves that a chunk is absent only if all are in
//! order, which parsing checks.

use std::cmp::Ordering;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use zstd::bulk::Decompressor;

use super::flat::{Buffer, Table, Vector};
use super::header::{Kind, content};
use super::id::{NodeId, ObjectId};
use gridfusion_core::{Error, Result};

/// A parsed manifest.
pub(super) struct Manifest {
    /// Its FlatBuffer.
    bytes: Bytes,
    /// The number of chunks.
    chunks: u64,
    /// Decompresses locations, with the dictionary that it has read once.
    locations: Mutex<Option<Decompressor<'static>>>,
}

impl fmt::Debug for Manifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Manifest({} chunks)", self.chunks)
    }
}

/// Where a chunk is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ChunkPlace {
    /// These are its bytes.
    Inline(Bytes),
    /// In an object of the repository.
    Native { id: ObjectId, offset: u64, len: u64 },
    /// In any object.
    Virtual { location: String, offset: u64, len: u64, written: Option<Written> },
}

/// How a chunk shows that its object is still the one that it was found in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Written {
    /// The entity tag of the object.
    Tag(String),
    /// The object was written by this time, in seconds since 1970.
    By(u32),
}

/// The most bytes of a location that is stored compressed. Icechunk itself stores 1024.
const MOST_LOCATION: usize = 4096;

impl Manifest {
    /// Parses the manifest with this id, of which the option `metadata_limit` allows `most` bytes. Checks the order of
    /// all chunks.
    ///
    /// # Errors
    /// `Corrupt` or `Unsupported` if it cannot be read, or is another one.
    pub(super) fn parse(id: &ObjectId, bytes: &Bytes, most: u64) -> Result<Self> {
        let bytes = content(Kind::Manifest, bytes, most)?.bytes;
        let mut manifest = Self { bytes, chunks: 0, locations: Mutex::default() };
        manifest.chunks = manifest.check(id)?;
        Ok(manifest)
    }

    /// The number of chunks of all arrays.
    pub(super) fn chunks(&self) -> u64 {
        self.chunks
    }

    /// The bytes of memory that it takes.
    pub(super) fn memory(&self) -> usize {
        self.bytes.len()
    }

    fn buffer(&self) -> Buffer<'_> {
        Buffer::new(&self.bytes, Kind::Manifest.region())
    }

    /// Checks the id, and the order of arrays and chunks. Returns the number of chunks.
    fn check(&self, id: &ObjectId) -> Result<u64> {
        let buffer = self.buffer();
        let root = buffer.root()?;
        let own = ObjectId(root.needed(root.fixed(0)?, "id of the manifest")?);
        if own != *id {
            return Err(root.corrupt(format!("it is the manifest {own}, expected {id}")));
        }
        let (mut chunks, mut node_before) = (0, None);
        for array in root.vector(1)?.tables() {
            let array = array?;
            let node = node_of(&array)?;
            if node_before.is_some_and(|before| before >= node) {
                return Err(array.corrupt("its arrays are out of order"));
            }
            node_before = Some(node);
            let mut before: Option<&[u8]> = None;
            for chunk in array.vector(1)?.tables() {
                let chunk = chunk?;
                let index = index_of(&chunk)?;
                let is_in_order = before.is_none_or(|before| {
                    before.len() == index.len()
                        && compare(before, &index_in(index)) == Ordering::Less
                });
                if !is_in_order {
                    let index: Vec<u64> = index_in(index).collect();
                    return Err(chunk.corrupt(format!("the chunk {index:?} is out of order")));
                }
                before = Some(index);
                chunks += 1;
            }
        }
        Ok(chunks)
    }

    /// Returns where a chunk of an array is; `None` if it is not listed.
    ///
    /// # Errors
    /// `Corrupt` if the reference contradicts itself.
    pub(super) fn chunk(&self, node: &NodeId, chunk: &[u64]) -> Result<Option<ChunkPlace>> {
        let buffer = self.buffer();
        let root = buffer.root()?;
        let arrays = root.vector(1)?;
        let array = halved(arrays, |array| Ok(node_of(array)?.cmp(node)))?;
        let Some(array) = array else { return Ok(None) };
        let found =
            halved(array.vector(1)?, |it| Ok(compare(index_of(it)?, &chunk.iter().copied())))?;
        found.map(|found| self.place(&root, &found, chunk)).transpose()
    }

    /// Returns the chunks of an array with their coordinates.
    ///
    /// # Errors
    /// As [`Manifest::chunk`].
    pub(super) fn chunks_of(&self, node: &NodeId) -> Result<Vec<(Vec<u64>, ChunkPlace)>> {
        let buffer = self.buffer();
        let root = buffer.root()?;
        let array = halved(root.vector(1)?, |array| Ok(node_of(array)?.cmp(node)))?;
        let Some(array) = array else { return Ok(vec![]) };
        let each = array.vector(1)?.tables().map(|chunk| {
            let chunk = chunk?;
            let index: Vec<u64> = index_in(index_of(&chunk)?).collect();
            let place = self.place(&root, &chunk, &index)?;
            Ok((index, place))
        });
        each.collect()
    }

    /// Calls `each` with the coordinates and the bytes of all chunks of an array.
    ///
    /// # Errors
    /// `Corrupt` if a reference cannot be read.
    pub(super) fn each_length(
        &self,
        node: &NodeId,
        mut each: impl FnMut(&[u64], u64),
    ) -> Result<()> {
        let buffer = self.buffer();
        let array = halved(buffer.root()?.vector(1)?, |array| Ok(node_of(array)?.cmp(node)))?;
        let Some(array) = array else { return Ok(()) };
        let mut index: Vec<u64> = vec![];
        for chunk in array.vector(1)?.tables() {
            let chunk = chunk?;
            index.clear();
            index.extend(index_in(index_of(&chunk)?));
            let inline = chunk.bytes(1)?.map(|bytes| bytes.len() as u64);
            each(&index, inline.map_or_else(|| chunk.u64(3), Ok)?);
        }
        Ok(())
    }

    /// Reads a reference.
    fn place(&self, root: &Table<'_>, chunk: &Table<'_>, index: &[u64]) -> Result<ChunkPlace> {
        let wrong = |what: &str| chunk.corrupt(format!("the chunk {index:?} {what}"));
        let (offset, len) = (chunk.u64(2)?, chunk.u64(3)?);
        if offset.checked_add(len).is_none() {
            return Err(wrong("ends behind every object"));
        }
        let kinds = [chunk.has(1)?, chunk.has(4)?, chunk.has(5)? || chunk.has(8)?];
        match kinds {
            [true, false, false] => {
                let bytes = chunk.bytes(1)?.unwrap_or_default();
                match bytes.is_empty() {
                    true => Err(wrong("has no bytes")),
                    false => Ok(ChunkPlace::Inline(self.bytes.slice_ref(bytes))),
                }
            }
            _ if kinds.iter().filter(|it| **it).count() != 1 => {
                Err(wrong("is in no place, or in several"))
            }
            // Icechunk itself fails here, too.
            _ if len == 0 => Err(wrong("has no bytes")),
            [_, true, _] => {
                let id = ObjectId(chunk.fixed(4)?.unwrap_or_default());
                Ok(ChunkPlace::Native { id, offset, len })
            }
            _ => {
                let location = match chunk.text(5)? {
                    Some(location) => location.to_owned(),
                    None => self
                        .location(root, chunk.bytes(8)?.unwrap_or_default())
                        .map_err(|error| error.about(&format!("the chunk {index:?}")))?,
                };
                let written = match (chunk.text(6)?, chunk.u32(7)?) {
                    (Some(tag), _) => Some(Written::Tag(tag.to_owned())),
                    (None, 0) => None,
                    (None, seconds) => Some(Written::By(seconds)),
                };
                Ok(ChunkPlace::Virtual { location, offset, len, written })
            }
        }
    }

    /// Decompresses a location with the dictionary of the manifest.
    fn location(&self, root: &Table<'_>, packed: &[u8]) -> Result<String> {
        let compression = root.u8(3, 1)?;
        if compression != 1 {
            let message = format!("compression {compression} of locations in Icechunk");
            return Err(Error::unsupported(message));
        }
        let broken = |error: std::io::Error| {
            root.corrupt(format!("a location that does not decompress ({error})"))
        };
        let mut known = self.locations.lock().unwrap_or_else(PoisonError::into_inner);
        let decompressor = match &mut *known {
            Some(known) => known,
            none => {
                let dictionary = root.needed(root.bytes(2)?, "dictionary of locations")?;
                none.insert(Decompressor::with_dictionary(dictionary).map_err(broken)?)
            }
        };
        let bytes = decompressor.decompress(packed, MOST_LOCATION).map_err(broken)?;
        String::from_utf8(bytes).map_err(|_| root.corrupt("a location that is not UTF-8"))
    }
}

fn node_of(array: &Table<'_>) -> Result<NodeId> {
    array.needed(array.fixed(0)?, "id of an array")
}

/// Returns the coordinates of a chunk, as their bytes.
fn index_of<'a>(chunk: &Table<'a>) -> Result<&'a [u8]> {
    chunk.needed(chunk.records(0, 4)?, "coordinates of a chunk")
}

fn index_in(bytes: &[u8]) -> impl Iterator<Item = u64> + Clone {
    let number = |it: &[u8]| u32::from_le_bytes(it.try_into().unwrap_or_default()).into();
    bytes.chunks_exact(4).map(number)
}

fn compare(index: &[u8], other: &(impl Iterator<Item = u64> + Clone)) -> Ordering {
    index_in(index).cmp(other.clone())
}

/// Returns the table that is equal, among tables in order.
fn halved<'a>(
    all: Vector<'a>,
    compare: impl Fn(&Table<'a>) -> Result<Ordering>,
) -> Result<Option<Table<'a>>> {
    let (mut first, mut end) = (0, all.len());
    while first < end {
        let middle = first.midpoint(end);
        let table = all.table(middle)?;
        match compare(&table)? {
            Ordering::Less => first = middle + 1,
            Ordering::Equal => return Ok(Some(table)),
            Ordering::Greater => end = middle,
        }
    }
    Ok(None)
}
