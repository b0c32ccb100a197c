//! The machine that finds the places of chunks.
//!
//! A chunk that is an object needs no read: its name follows from its coordinates, and whether it is absent shows
//! when it is read. For chunks in shards, the machine reads the indexes of their shards in one step, and the array
//! keeps them.
//!
//! Listing a folder of a million chunks would take longer than the query. If all that a query needs is absent, it lists
//! some objects once (`explain_absence`).
//!
//! The chunks of a table are the inner chunks of shards. The array keeps indexes of shards within a bound of memory.

use std::collections::HashMap;
use std::sync::Arc;

use super::array::ZarrArray;
use super::shard::ShardIndex;
use gridfusion_core::format::{ByteRange, Location, Machine, Replies, Step, StoredChunk};
use gridfusion_core::{Error, Result};

/// A machine that returns the places of chunks, in the order of the request.
#[derive(Debug)]
pub struct LocateZarr {
    array: Arc<ZarrArray>,
    /// The coordinates of the chunks.
    chunks: Vec<Vec<u64>>,
    /// The indexes of the chunks' shards; `None` for an absent shard. The array may forget them meanwhile.
    indexes: HashMap<Vec<u64>, Option<Arc<ShardIndex>>>,
    /// The shards whose indexes were requested.
    requested: Vec<Vec<u64>>,
}

impl LocateZarr {
    /// Makes a machine for the chunks at these coordinates, one per axis.
    pub fn new(array: Arc<ZarrArray>, chunks: Vec<Vec<u64>>) -> Self {
        Self { array, chunks, indexes: HashMap::new(), requested: vec![] }
    }

    /// Returns the locations of the indexes that the array does not know, and remembers their shards.
    fn unknown_indexes(&mut self) -> Result<Vec<Location>> {
        let Some(sharding) = self.array.sharding() else { return Ok(vec![]) };
        let range = sharding.index.range(self.array.chunks_per_shard())?;
        for chunk in &self.chunks {
            let (shard, _) = self.array.place_in_shard(sharding, chunk);
            if self.indexes.contains_key(&shard) {
                continue;
            }
            match self.array.known_index(&shard) {
                Some(index) => {
                    self.indexes.insert(shard, index);
                }
                None => self.requested.push(shard),
            }
        }
        self.requested.sort_unstable();
        self.requested.dedup();
        let at = |shard: &Vec<u64>| Location::new(self.array.object(shard), range.clone());
        Ok(self.requested.iter().map(at).collect())
    }

    /// Parses the indexes that were read.
    fn take_indexes(&mut self, replies: Replies) -> Result<()> {
        let Some(sharding) = self.array.sharding() else { return Ok(()) };
        let chunks = self.array.chunks_per_shard();
        for (shard, bytes) in self.requested.drain(..).zip(replies.into_present()) {
            let parse = |bytes: bytes::Bytes| {
                let index = sharding.index.parse(&bytes, chunks);
                index.map(Arc::new).map_err(|error| error.in_file(&self.array.object(&shard)))
            };
            let index = bytes.map(parse).transpose()?;
            self.array.keep_index(shard.clone(), index.clone());
            self.indexes.insert(shard, index);
        }
        Ok(())
    }

    fn located(&self, chunk: &[u64]) -> Result<StoredChunk> {
        let Some(sharding) = self.array.sharding() else {
            let object = self.array.object(chunk);
            return Ok(self.array.stored(chunk, object, ByteRange::Whole));
        };
        let (shard, number) = self.array.place_in_shard(sharding, chunk);
        let index = self.indexes.get(&shard);
        let index = index.ok_or_else(|| Error::internal("a shard index that was not read"))?;
        let object = self.array.object(&shard);
        let range = index.as_ref().map(|index| index.chunk(number)).transpose();
        let range = range.map_err(|error| error.in_file(&object))?.flatten();
        Ok(match range {
            Some(range) => self.array.stored(chunk, object, range.into()),
            None => StoredChunk::default(),
        })
    }
}

impl Machine for LocateZarr {
    type Output = Vec<StoredChunk>;

    fn subject(&self) -> &'static str {
        "shard index"
    }

    fn step(&mut self, replies: Replies) -> Result<Step<Self::Output>> {
        if matches!(replies, Replies::Start) {
            let unknown = self.unknown_indexes()?;
            if !unknown.is_empty() {
                return Ok(Step::ReadIfPresent(unknown));
            }
        } else {
            self.take_indexes(replies)?;
        }
        self.chunks.iter().map(|chunk| self.located(chunk)).collect::<Result<_>>().map(Step::Done)
    }
}
