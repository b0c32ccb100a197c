//! [`Chunks`]: the chunks of a selection, located, fetched and decoded one after the other.
//!
//! ```text
//!   tasks ──locate──▶ 256 chunks ──fetch──▶ about 8 MiB of payloads ──decode──▶ a tile per variable
//! ```

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;

use crate::array::{FoundChunks, GridArray, Workspace};
use crate::error::{Error, Result};
use crate::format::{Location, Payload, StoredChunk};
use crate::grid::{ChunkTask, Selection};
use crate::plan::{ScanPlan, ScanRequest, TaskRange, TouchedCounts};
use crate::tile::{Request, Tile, leave_out_absent};

/// The number of chunks to locate at once.
const LOCATED_AT_ONCE: usize = 256;
/// The stored bytes that are fetched at once, unless a single chunk has more.
const FETCHED_AT_ONCE: u64 = 8 << 20;

/// A chunk that was fetched and decoded.
#[derive(Debug)]
pub(super) struct DecodedChunk {
    pub(super) task: ChunkTask,
    /// A tile per variable, with its number.
    tiles: Vec<(usize, Tile)>,
    locations: Vec<Location>,
}

impl DecodedChunk {
    pub(super) fn tile(&self, value: usize) -> Result<&Tile> {
        let tile = self.tiles.iter().find(|(number, _)| *number == value);
        tile.map(|(_, tile)| tile).ok_or_else(|| Error::internal("a variable was not read"))
    }
}

/// The chunks that hold a selected cell, in row-major order of the grid.
#[derive(Debug)]
pub(super) struct Chunks {
    array: Arc<GridArray>,
    plan: ScanPlan,
    tasks: TaskRange,
    values: Vec<usize>,
    located: VecDeque<(ChunkTask, Vec<StoredChunk>)>,
    fetched: VecDeque<(ChunkTask, Vec<StoredChunk>, Vec<Option<Bytes>>)>,
    workspace: Workspace,
    /// The objects that were read or found absent, by member, if objects may be written again.
    read: HashMap<u32, HashSet<Arc<str>>>,
    /// Whether chunks were stored.
    found: FoundChunks,
    /// The stored bytes of the chunks that were fetched.
    bytes: u64,
}

impl Chunks {
    /// Lists the chunks of a selection; `values` are the variables to decode.
    ///
    /// # Errors
    /// `Usage` for more chunks than a scan may read.
    pub(super) fn new(
        array: &Arc<GridArray>,
        selection: &Selection,
        values: Vec<usize>,
    ) -> Result<Self> {
        let (touched, most) = (TouchedCounts::new(array.grid(), selection), array.most_chunks());
        if touched.chunks() > most || touched.cells.is_none() {
            let message = format!(
                "the selection has {} chunks of \"{}\", and at most {most} with less than 2^64 cells are allowed; select less",
                touched.chunks(),
                array.name()
            );
            return Err(array.objects().named(Error::usage(message)));
        }
        let request =
            ScanRequest { selection: selection.clone(), ..ScanRequest::all(array.grid()) };
        let plan = ScanPlan::new(array.grid().clone(), request)?;
        Ok(Self {
            array: Arc::clone(array),
            tasks: plan.tasks(0),
            plan,
            values,
            located: VecDeque::new(),
            fetched: VecDeque::new(),
            workspace: Workspace::default(),
            read: HashMap::new(),
            found: FoundChunks::default(),
            bytes: 0,
        })
    }

    /// Returns the next chunk; `None` at the end, after a check that no object has changed meanwhile.
    ///
    /// # Errors
    /// If a chunk cannot be located, read or decoded. At the end, `Io` if an object was written since it was read, and
    /// `Corrupt` if the chunks have other names than the metadata sets.
    pub(super) async fn next(&mut self) -> Result<Option<DecodedChunk>> {
        if self.values.is_empty() {
            let Some(number) = self.tasks.next() else {
                return self.finish().await.map(|()| None);
            };
            let (task, tiles, locations) = (self.plan.task(number), vec![], vec![]);
            return Ok(Some(DecodedChunk { task, tiles, locations }));
        }
        if self.fetched.is_empty() {
            self.fetch().await?;
        }
        match self.fetched.pop_front() {
            Some((task, stored, payloads)) => self.decode(task, stored, payloads).map(Some),
            None => self.finish().await.map(|()| None),
        }
    }

    /// The stored bytes of the chunks that were fetched.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes a chunk back to reuse its memory.
    ///
    /// # Errors
    /// `Io` if a file of the chunk was written since it was opened.
    pub(super) fn release(&mut self, chunk: DecodedChunk) -> Result<()> {
        self.workspace.reclaim(chunk.tiles.into_iter().map(|(_, tile)| tile));
        self.array.objects().used(&chunk.locations, false)
    }

    async fn locate(&mut self) -> Result<()> {
        let numbers = self.tasks.by_ref().take(LOCATED_AT_ONCE);
        let tasks: Vec<ChunkTask> = numbers.map(|number| self.plan.task(number)).collect();
        if !tasks.is_empty() {
            let stored = self.array.locate(&tasks, &self.values).await?;
            self.located.extend(tasks.into_iter().zip(stored));
        }
        Ok(())
    }

    async fn fetch(&mut self) -> Result<()> {
        if self.located.is_empty() {
            self.locate().await?;
        }
        let (mut chunks, mut bytes) = (vec![], 0_u64);
        while bytes < FETCHED_AT_ONCE
            && let Some(chunk) = self.located.pop_front()
        {
            let stored = payloads(&chunk.1).map(Payload::stored_len);
            bytes = stored.fold(bytes, u64::saturating_add);
            chunks.push(chunk);
        }
        let requests: Vec<Request> =
            chunks.iter().flat_map(|(_, stored)| Request::for_chunks(stored)).collect();
        let mut fetched = self.array.objects().fetch(&requests).await?.into_iter();
        self.bytes = self.bytes.saturating_add(bytes);
        for (task, stored) in chunks {
            let own = fetched.by_ref().take(payloads(&stored).count()).collect();
            self.fetched.push_back((task, stored, own));
        }
        Ok(())
    }

    fn decode(
        &mut self,
        task: ChunkTask,
        mut stored: Vec<StoredChunk>,
        fetched: Vec<Option<Bytes>>,
    ) -> Result<DecodedChunk> {
        self.found.note_requested(&stored);
        if self.array.objects().are_rewritten() {
            for Location { member, object, .. } in payloads(&stored).map(|payload| &payload.at) {
                self.read.entry(*member).or_default().insert(Arc::clone(object));
            }
        }
        let present = leave_out_absent(&mut stored, fetched);
        self.found.note_found(&stored);
        let locations: Vec<Location> = payloads(&stored).map(|it| it.at.clone()).collect();
        let Self { array, values, workspace, .. } = self;
        match array.decode(&task, values, &stored, present, workspace) {
            Ok(tiles) => {
                let tiles = values.iter().copied().zip(tiles).collect();
                Ok(DecodedChunk { task, tiles, locations })
            }
            Err(error) => {
                // A file that is being written looks damaged. If it has changed, that is the error.
                array.objects().used(&locations, false)?;
                Err(error)
            }
        }
    }

    /// Proves that what was not found is absent, and that no object has changed since it was read, labels among them.
    async fn finish(&mut self) -> Result<()> {
        self.found.explain(&self.array, &self.values).await?;
        let objects = self.array.objects();
        let mut read = std::mem::take(&mut self.read);
        if objects.are_rewritten() && read.is_empty() {
            // Labels are metadata, which each check of a member includes.
            read.insert(0, HashSet::new());
        }
        for (member, read) in read {
            let read: Vec<_> = read.into_iter().collect();
            objects.check_read(member, &read).await?;
        }
        Ok(())
    }
}

fn payloads(stored: &[StoredChunk]) -> impl Iterator<Item = &Payload> {
    stored.iter().flat_map(StoredChunk::payloads)
}
