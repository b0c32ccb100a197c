//! One array: its variable, and the places of its chunks.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::chunk_key::{ChunkKey, coordinates_in};
use super::codec_chain::{Encoding, Sharding};
use super::half::{is_parquet_references, parquet_references};
use super::places::ObjectPlace;
use super::shard::ShardIndex;
use gridfusion_cf::hierarchy::{CellType, Variable};
use gridfusion_core::format::{
    Layer, Location, NOTHING, Payload, Placement, StorageOrder, StoredChunk,
};
use gridfusion_core::{Error, Result};

/// An array of a store.
#[derive(Debug)]
pub struct ZarrArray {
    variable: Variable,
    encoding: Encoding,
    key: ChunkKey,
    /// Elements per axis of an object: a chunk, or a shard of several.
    object_shape: Vec<u64>,
    /// Bytes of a decoded chunk; an estimate for values of any length.
    chunk_bytes: u64,
    /// Whether the last axis is part of the cells, of characters or of one element: objects are named as if it was not.
    has_joined_axis: bool,
    /// Whether that axis counts characters.
    has_characters: bool,
    indexes: Mutex<KnownIndexes>,
}

/// Indexes of shards that were read. An absent shard has none.
#[derive(Debug, Default)]
struct KnownIndexes {
    shards: std::collections::HashMap<Vec<u64>, Option<Arc<ShardIndex>>>,
    bytes: usize,
}

/// The most bytes of shard indexes that an array keeps. They are all forgotten when there are more.
const MAX_KNOWN: usize = 1 << 24;

/// The most characters of a text that is stored as single characters.
const MAX_TEXT: u64 = 1 << 16;

/// The expected bytes of a value of any length.
const VARIABLE_VALUE: u64 = 16;

impl ZarrArray {
    pub(super) fn new(
        variable: Variable,
        encoding: Encoding,
        key: ChunkKey,
        object_shape: Vec<u64>,
    ) -> Result<Self> {
        let width = variable.cell.width().unwrap_or(VARIABLE_VALUE);
        let bytes =
            variable.chunk_shape.iter().try_fold(width, |bytes, len| bytes.checked_mul(*len));
        let chunk_bytes = bytes.filter(|bytes| *bytes <= i64::MAX as u64).ok_or_else(|| {
            let shape = &variable.chunk_shape;
            Error::unsupported(format!("chunks of shape {shape:?}, which are too large"))
        })?;
        let indexes = Mutex::default();
        Ok(Self {
            variable,
            encoding,
            key,
            object_shape,
            chunk_bytes,
            has_joined_axis: false,
            has_characters: false,
            indexes,
        })
    }

    /// The array as a variable.
    pub fn variable(&self) -> &Variable {
        &self.variable
    }

    /// Makes the last axis, of single characters, part of the cells. Returns whether it could: chunks must have whole texts,
    /// whose characters follow one another.
    pub(super) fn join_characters(&mut self) -> bool {
        let rank = self.variable.axes.len();
        let Some(len) = self.variable.axes.last().map(|axis| axis.len) else { return false };
        let is_whole = self.variable.chunk_shape.last() == Some(&len)
            && self.object_shape.last() == Some(&len);
        let Some(fastest_first) = self.encoding.order.fastest_first(rank) else { return false };
        let order = fastest_first.iter().skip(1).rev().copied().collect();
        let (Some(order), Ok(width)) = (StorageOrder::permuted(order), u32::try_from(len)) else {
            return false;
        };
        let is_fastest = fastest_first.first() == Some(&(rank - 1));
        if !is_whole || !is_fastest || len > MAX_TEXT || self.has_joined_axis {
            return false;
        }
        self.encoding.order = order;
        if let Some(sharding) = &mut self.encoding.sharding {
            sharding.chunk_shape.pop();
            sharding.axes.retain(|axis| *axis + 1 != rank);
        }
        self.object_shape.pop();
        self.variable.axes.pop();
        self.variable.chunk_shape.pop();
        self.variable.cell = CellType::FixedUtf8(width);
        self.variable.fill = self.variable.fill.repeat(width as usize);
        // A fill value is a character, and a text of such characters is a text.
        self.variable.fill_is_missing = false;
        (self.has_joined_axis, self.has_characters) = (true, true);
        true
    }

    /// Makes an array of one element, in a chunk of one, a scalar.
    pub(super) fn make_scalar(&mut self) {
        let is_one = self.variable.chunk_shape == [1] && self.encoding.sharding.is_none();
        if is_one && self.variable.shape() == [1] {
            self.variable.axes.clear();
            self.variable.chunk_shape.clear();
            self.object_shape.clear();
            self.encoding.order = StorageOrder::RowMajor;
            self.has_joined_axis = true;
        }
    }

    /// Whether the last axis is part of the cells.
    pub(super) fn has_characters(&self) -> bool {
        self.has_characters
    }

    /// The encoding of chunks, for people: `shuffle 4, zlib`.
    pub fn encoding(&self) -> String {
        self.encoding.codec.to_string()
    }

    /// Whether chunks are stored as they are.
    pub(super) fn is_raw(&self) -> bool {
        self.encoding.codec.is_raw()
    }

    /// Elements per axis of a shard; `None` if each chunk is an object of its own.
    pub fn shard_shape(&self) -> Option<&[u64]> {
        self.encoding.sharding.as_ref().map(|_| self.object_shape.as_slice())
    }

    /// Bytes of a decoded chunk; `None` for values of any length.
    pub fn chunk_bytes(&self) -> Option<u64> {
        self.variable.cell.width().map(|_| self.chunk_bytes)
    }

    /// How several chunks are stored in one object, if they are.
    pub(super) fn sharding(&self) -> Option<&Sharding> {
        self.encoding.sharding.as_ref()
    }

    /// The number of chunks of a shard.
    pub(super) fn chunks_per_shard(&self) -> u64 {
        let axes = self.object_shape.iter().zip(&self.variable.chunk_shape);
        axes.map(|(shard, chunk)| shard / chunk).fold(1, u64::saturating_mul)
    }

    /// Returns the coordinates of the shard that holds a chunk, and the chunk's number in it.
    pub(super) fn place_in_shard(&self, sharding: &Sharding, chunk: &[u64]) -> (Vec<u64>, u64) {
        let per_axis = |axis: usize| self.object_shape[axis] / self.variable.chunk_shape[axis];
        let shard = chunk.iter().enumerate().map(|(axis, at)| at / per_axis(axis)).collect();
        let number = sharding.axes.iter().fold(0_u64, |number, &axis| {
            let (at, len) = (chunk[axis] % per_axis(axis), per_axis(axis));
            number.saturating_mul(len).saturating_add(at)
        });
        (shard, number)
    }

    /// Returns the object at these coordinates: a chunk, or a shard.
    pub(crate) fn object(&self, coordinates: &[u64]) -> Arc<str> {
        self.key.object(&self.variable.path, self.stored_at(coordinates)).into()
    }

    /// Whether the array has an object at these coordinates, as they are stored.
    pub(super) fn has_object(&self, stored: &[u64]) -> bool {
        let rank = self.variable.axes.len();
        let (at, joined) = stored.split_at(rank.min(stored.len()));
        let expected: &[u64] = if self.has_joined_axis { &[0] } else { &[] };
        at.len() == rank && joined == expected && self.is_in_array(at)
    }

    /// Returns the coordinates of the first chunk in an object; `None` for one that the array does not have.
    pub(super) fn first_chunk(&self, stored: &[u64]) -> Option<Vec<u64>> {
        let edges = self.object_shape.iter().zip(&self.variable.chunk_shape);
        let first = stored.iter().zip(edges).map(|(at, (object, chunk))| at * (object / chunk));
        self.has_object(stored).then(|| first.collect())
    }

    /// Returns the coordinates of an object in its name.
    pub(super) fn stored_at<'a>(&self, coordinates: &'a [u64]) -> impl Iterator<Item = u64> + 'a {
        coordinates.iter().copied().chain(self.has_joined_axis.then_some(0))
    }

    /// Returns the objects along each axis.
    fn object_counts(&self) -> impl DoubleEndedIterator<Item = u64> {
        let axes = self.variable.axes.iter().zip(&self.object_shape);
        axes.map(|(axis, edge)| axis.len.div_ceil((*edge).max(1)))
    }

    /// Returns the number of objects; `None` if it has more than 64 bits.
    pub(super) fn objects(&self) -> Option<u64> {
        self.object_counts().try_fold(1_u64, u64::checked_mul)
    }

    /// Returns the number of an object in the grid, whose last axis counts first; `None` outside of the grid.
    pub(super) fn object_number(&self, coordinates: &[u64]) -> Option<u64> {
        if coordinates.len() != self.object_shape.len() {
            return None;
        }
        self.object_counts().zip(coordinates).try_fold(0_u64, |number, (count, at)| {
            let number = number.checked_mul(count)?.checked_add(*at)?;
            (*at < count).then_some(number)
        })
    }

    /// Explains why no chunk of the array was found, from the paths of some objects in its folder. `None` if chunks are there.
    ///
    /// # Errors
    /// `Corrupt` if the chunks have other names than the metadata sets; `Unsupported` for references in Parquet.
    pub fn explain_absence(&self, found: &[String]) -> Result<Option<String>> {
        let path = &self.variable.path;
        let named = |at: &[u64]| self.key.object("", at.iter().copied());
        let rank = self.variable.axes.len() + usize::from(self.has_joined_axis);
        let mut others = vec![];
        for name in found {
            if is_parquet_references(name) {
                return Err(parquet_references().in_file(path));
            }
            let Some(at) = coordinates_in(name) else { continue };
            let at = if rank == 0 && at == [0] { vec![] } else { at };
            match at.len() == rank && named(&at) == *name {
                true if self.is_in_array(&at) => return Ok(None),
                true => {}
                false => others.push((name, at)),
            }
        }
        // Names of a group inside the array's folder may look like those of chunks of another rank.
        if let Some((name, at)) = others.iter().find(|(_, at)| at.len() == rank) {
            let message = format!(
                "the metadata says that chunks have names such as \"{}\", and none has; there is \"{name}\"; correct the \
                 separator in the metadata (\"dimension_separator\" or \"chunk_key_encoding\")",
                named(at)
            );
            return Err(Error::corrupt_region("names of chunks", message).in_file(path));
        }
        Ok(Some(format!(
            "no chunk of \"{path}\" is stored, so all of its cells have the fill value; if that is wrong, the store is \
             incomplete"
        )))
    }

    /// Whether an object of this name, relative to the array, holds cells of the array.
    pub fn is_object(&self, name: &str) -> bool {
        let rank = self.object_shape.len() + usize::from(self.has_joined_axis);
        let Some(at) = coordinates_in(name) else { return false };
        let at = if rank == 0 && at == [0] { vec![] } else { at };
        let is_named = self.key.object("", at.iter().copied()) == name;
        is_named && at.len() == rank && self.is_in_array(&at)
    }

    /// Whether an object with these coordinates holds cells of the array.
    fn is_in_array(&self, at: &[u64]) -> bool {
        let mut axes = self.variable.axes.iter().zip(&self.object_shape).zip(at);
        axes.all(|((axis, edge), at)| at.saturating_mul(*edge) < axis.len)
    }

    /// Returns a chunk that is stored at `place`, which may be absent or not.
    pub(super) fn stored(
        &self,
        chunk: &[u64],
        place: ObjectPlace,
        may_be_absent: bool,
    ) -> StoredChunk {
        let nowhere = Location::new(NOTHING, 0..0);
        let mut payload = Payload::new(nowhere, self.chunk_bytes, self.encoding.codec.clone());
        place.fill(&mut payload);
        payload.byte_order = self.encoding.byte_order;
        let placement = self.placement(chunk);
        let layer =
            Layer::whole(payload).with_placement(placement).with_may_be_absent(may_be_absent);
        StoredChunk::new(vec![layer])
    }

    /// Returns how the stored tile becomes the chunk. Chunks at the end of an axis are stored whole.
    fn placement(&self, chunk: &[u64]) -> Option<Placement> {
        let shape = &self.variable.chunk_shape;
        let axes = self.variable.axes.iter().zip(shape).zip(chunk);
        let extents = axes
            .map(|((axis, edge), at)| axis.len.saturating_sub(at.saturating_mul(*edge)).min(*edge));
        let extents: Vec<u64> = extents.collect();
        let is_whole = extents == *shape && self.encoding.order == StorageOrder::RowMajor;
        (!is_whole).then(|| {
            Placement::new(extents.iter().map(|len| 0..*len).collect(), shape.clone())
                .with_order(self.encoding.order.clone())
        })
    }

    /// Returns the index of a shard if it was read before; the inner `None` stands for an absent shard.
    pub(super) fn known_index(&self, shard: &[u64]) -> Option<Option<Arc<ShardIndex>>> {
        self.indexes().shards.get(shard).cloned()
    }

    /// Keeps the index of a shard.
    pub(super) fn keep_index(&self, shard: Vec<u64>, index: Option<Arc<ShardIndex>>) {
        /// Bytes of an entry of the table, besides the index itself.
        const ENTRY: usize = 128;
        let mut known = self.indexes();
        let bytes = index.as_ref().map_or(0, |index| index.memory()) + ENTRY;
        if known.bytes + bytes > MAX_KNOWN {
            *known = KnownIndexes::default();
        }
        if known.shards.insert(shard, index).is_none() {
            known.bytes += bytes;
        }
    }

    fn indexes(&self) -> MutexGuard<'_, KnownIndexes> {
        self.indexes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
