//! The machine that finds the places of chunks.
//!
//! A chunk that is an object needs no read: its name follows from its coordinates, and whether it is absent shows
//! when it is read. For chunks in shards, the machine reads the indexes of their shards in one step, and the array
//! keeps them. If objects are not under their own names, it first reads the tables that have their places.
//!
//! Listing a folder of a million chunks would take longer than the query. If all that a query needs is absent, it lists
//! some objects once (`explain_absence`).
//!
//! The chunks of a table are the inner chunks of shards. The array keeps indexes of shards within a bound of memory.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;

use super::array::ZarrArray;
use super::places::{KnownTable, ObjectPlace, ObjectPlaces, PlaceTable};
use super::shard::ShardIndex;
use gridfusion_core::format::{ByteRange, Location, Machine, Replies, Step, StoredChunk};
use gridfusion_core::{Error, Result};

/// A machine that returns the places of chunks, in the order of the request.
#[derive(Debug)]
pub struct LocateZarr {
    array: Arc<ZarrArray>,
    /// The coordinates of the chunks.
    chunks: Vec<Vec<u64>>,
    /// Where objects are that are not under their own names.
    places: Option<Arc<dyn ObjectPlaces>>,
    /// The tables with the places of each object, if `places` is there.
    tables: HashMap<Vec<u64>, Vec<KnownTable>>,
    /// Tables that were read, by where they are. `places` may forget them meanwhile.
    read: HashMap<Location, Arc<dyn PlaceTable>>,
    /// The indexes of the chunks' shards; `None` for an absent shard. The array may forget them meanwhile.
    indexes: HashMap<Vec<u64>, Option<Arc<ShardIndex>>>,
    requested: Requested,
}

/// The requests whose replies the machine waits for.
#[derive(Debug, Default)]
enum Requested {
    #[default]
    Nothing,
    Tables(Vec<Location>),
    /// The indexes of these shards, which are there.
    Indexes(Vec<(Vec<u64>, ObjectPlace)>),
}

impl LocateZarr {
    /// Makes a machine for the chunks at these coordinates, one per axis.
    pub fn new(array: Arc<ZarrArray>, chunks: Vec<Vec<u64>>) -> Self {
        let (tables, read, indexes) = (HashMap::new(), HashMap::new(), HashMap::new());
        Self { array, chunks, places: None, tables, read, indexes, requested: Requested::Nothing }
    }

    /// Finds objects where `places` has them.
    #[must_use]
    pub fn with_places(self, places: Arc<dyn ObjectPlaces>) -> Self {
        Self { places: Some(places), ..self }
    }

    /// Returns the coordinates of the object that holds a chunk: its own, or those of its shard.
    fn object_of(&self, chunk: &[u64]) -> Vec<u64> {
        match self.array.sharding() {
            Some(sharding) => self.array.place_in_shard(sharding, chunk).0,
            None => chunk.to_vec(),
        }
    }

    /// Finds the tables of all objects. Returns the locations of those that must be read first.
    fn unknown_tables(&mut self) -> Result<Vec<Location>> {
        let Some(places) = &self.places else { return Ok(vec![]) };
        let mut unknown = HashSet::new();
        for chunk in &self.chunks {
            let object = self.object_of(chunk);
            // Chunks of a shard are in one object.
            if self.tables.contains_key(&object) {
                continue;
            }
            let tables = places.tables(&self.array, &object)?;
            for table in &tables {
                if let KnownTable::At(at) = table {
                    unknown.insert(at.clone());
                }
            }
            self.tables.insert(object, tables);
        }
        let mut unknown: Vec<Location> = unknown.into_iter().collect();
        unknown.sort_unstable_by(|a, b| (&a.object, a.start()).cmp(&(&b.object, b.start())));
        Ok(unknown)
    }

    /// Parses the tables that were read.
    fn take_tables(&mut self, requested: Vec<Location>, replies: Replies) -> Result<()> {
        let places = self.places.as_ref().ok_or_else(|| Error::internal("tables of no store"))?;
        for (at, bytes) in requested.into_iter().zip(replies.into_bytes()) {
            let table = places.parse(&at, bytes).map_err(|error| error.in_file(&at.object))?;
            self.read.insert(at, table);
        }
        Ok(())
    }

    /// Returns the place of an object; `None` if it is known to be absent.
    fn place(&self, object: &[u64]) -> Result<Option<ObjectPlace>> {
        if self.places.is_none() {
            let at = Location::new(self.array.object(object), ByteRange::Whole);
            return Ok(Some(ObjectPlace::At(at)));
        }
        let tables = self.tables.get(object);
        for table in tables.ok_or_else(|| Error::internal("an object that was not looked up"))? {
            let table = match table {
                KnownTable::Here(table) => table,
                KnownTable::At(at) => {
                    let read = self.read.get(at);
                    read.ok_or_else(|| Error::internal("a table of places that was not read"))?
                }
            };
            if let Some(place) = table.place(&self.array, object)? {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    /// Returns the locations of the indexes that the array does not know, and remembers their shards.
    fn unknown_indexes(&mut self) -> Result<Vec<Location>> {
        let Some(sharding) = self.array.sharding() else { return Ok(vec![]) };
        let range = sharding.index.range(self.array.chunks_per_shard())?;
        let mut shards: BTreeSet<Vec<u64>> =
            self.chunks.iter().map(|chunk| self.object_of(chunk)).collect();
        shards.retain(|shard| match self.array.known_index(shard) {
            Some(index) => {
                self.indexes.insert(shard.clone(), index);
                false
            }
            None => true,
        });
        let (mut requested, mut locations) = (vec![], vec![]);
        for shard in shards {
            let place = self.place(&shard)?.map(|place| place.part(range.clone())).transpose()?;
            match place {
                Some(ObjectPlace::Here(bytes)) => self.take_index(shard, Some(bytes))?,
                Some(place) => {
                    locations.extend(place.location().cloned());
                    requested.push((shard, place));
                }
                None => self.take_index(shard, None)?,
            }
        }
        self.requested = Requested::Indexes(requested);
        Ok(locations)
    }

    /// Parses the index of a shard; `None` for an absent shard.
    fn take_index(&mut self, shard: Vec<u64>, bytes: Option<Bytes>) -> Result<()> {
        let Some(sharding) = self.array.sharding() else { return Ok(()) };
        let parse = |bytes: Bytes| {
            let index = sharding.index.parse(&bytes, self.array.chunks_per_shard());
            index.map(Arc::new).map_err(|error| error.in_file(&self.array.object(&shard)))
        };
        let index = bytes.map(parse).transpose()?;
        self.array.keep_index(shard.clone(), index.clone());
        self.indexes.insert(shard, index);
        Ok(())
    }

    fn located(&self, chunk: &[u64]) -> Result<StoredChunk> {
        let (shard, number) = match self.array.sharding() {
            Some(sharding) => self.array.place_in_shard(sharding, chunk),
            None => (chunk.to_vec(), 0),
        };
        let range = match self.array.sharding() {
            None => ByteRange::Whole,
            Some(_) => {
                let index = self.indexes.get(&shard);
                let index =
                    index.ok_or_else(|| Error::internal("a shard index that was not read"))?;
                let range = index.as_ref().map(|index| index.chunk(number)).transpose();
                match range.map_err(|error| error.in_file(&self.array.object(&shard)))?.flatten() {
                    Some(range) => range.into(),
                    None => return Ok(StoredChunk::default()),
                }
            }
        };
        // A chunk in a shard is there, because the index lists it, and so is one that has a place.
        let may_be_absent = range == ByteRange::Whole && self.places.is_none();
        Ok(match self.place(&shard)? {
            Some(place) => self.array.stored(chunk, place.part(range)?, may_be_absent),
            None => StoredChunk::default(),
        })
    }

    /// Requests the indexes of shards, or ends.
    fn step_of_indexes(&mut self) -> Result<Step<Vec<StoredChunk>>> {
        let unknown = self.unknown_indexes()?;
        match unknown.is_empty() {
            true => self.done(),
            false => Ok(Step::ReadIfPresent(unknown)),
        }
    }

    fn done(&self) -> Result<Step<Vec<StoredChunk>>> {
        self.chunks.iter().map(|chunk| self.located(chunk)).collect::<Result<_>>().map(Step::Done)
    }
}

impl Machine for LocateZarr {
    type Output = Vec<StoredChunk>;

    fn subject(&self) -> &'static str {
        match self.requested {
            Requested::Tables(_) => "places of chunks",
            Requested::Nothing | Requested::Indexes(_) => "shard index",
        }
    }

    fn step(&mut self, replies: Replies) -> Result<Step<Self::Output>> {
        match std::mem::take(&mut self.requested) {
            Requested::Nothing => {
                let unknown = self.unknown_tables()?;
                if unknown.is_empty() {
                    return self.step_of_indexes();
                }
                self.requested = Requested::Tables(unknown.clone());
                Ok(Step::Read(unknown))
            }
            Requested::Tables(requested) => {
                self.take_tables(requested, replies)?;
                self.step_of_indexes()
            }
            Requested::Indexes(shards) => {
                for ((shard, place), bytes) in shards.into_iter().zip(replies.into_present()) {
                    let bytes = bytes.map(|bytes| place.bytes(bytes)).transpose()?;
                    self.take_index(shard, bytes)?;
                }
                self.done()
            }
        }
    }
}
