//! Checking an index of chunks: a machine that walks through all of it, and looks up each chunk that it finds.

use std::sync::Arc;

use super::blocks::Replay;
use super::file_bytes::FileBytes;
use super::index::{ChunkIndex, Indexed, Walk, lookup};
use super::inner::Inner;
use super::stored_variable::ChunkPlace;
use gridfusion_core::format::{Machine, Replies, Step};
use gridfusion_core::{Error, Result};

/// The bytes of an index after which its blocks are forgotten.
const MOST_BYTES: u64 = 32 << 20;

/// A machine that returns the number of chunks in the index of a variable; `None` for a variable without an index.
///
/// The index must count as many chunks as it has, and a query must find each of them.
#[derive(Debug)]
pub struct CheckIndex {
    file: Arc<Inner>,
    variable: usize,
    replay: Replay,
    walk: Walk,
    /// Chunks of the index that were not looked up yet, sorted.
    unchecked: Vec<Indexed>,
    chunks: u64,
}

impl CheckIndex {
    pub(super) fn new(file: Arc<Inner>, variable: usize) -> Self {
        let replay = Replay::new(file.blocks.fork());
        Self { file, variable, replay, walk: Walk::default(), unchecked: vec![], chunks: 0 }
    }

    /// Goes on as far as blocks are known. Returns whether the walk is at its end.
    fn go_on(&mut self) -> Result<bool> {
        let file = Arc::clone(&self.file);
        let Some(index) = index_of(&file, self.variable) else { return Ok(true) };
        loop {
            let bytes = FileBytes { blocks: Arc::clone(self.replay.blocks()), widths: file.widths };
            self.look_up(&bytes, index)?;
            if self.replay.fetched() > MOST_BYTES {
                self.replay = Replay::new(file.blocks.fork());
                continue;
            }
            let next = self.walk.next(&bytes, index)?;
            if bytes.blocks.has_missed() {
                return Ok(false);
            }
            let Some(mut chunks) = next else { return Ok(true) };
            self.chunks += chunks.len() as u64;
            chunks.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
            self.unchecked = chunks;
        }
    }

    /// Looks up the chunks of the last step.
    fn look_up(&mut self, bytes: &FileBytes, index: &ChunkIndex) -> Result<()> {
        let wanted: Vec<Vec<u64>> = self.unchecked.iter().map(|(chunk, _)| chunk.clone()).collect();
        let found = lookup(bytes, index, &wanted)?;
        for ((chunk, entry), found) in self.unchecked.drain(..).zip(found) {
            self.file.place(entry.address, index.stored_len(&entry))?;
            let Some(found) = found else {
                let message =
                    format!("chunk {chunk:?} is in the index, but a search does not find it");
                return Err(Error::corrupt("chunk index", index.address, message));
            };
            if found.address != entry.address {
                let (first, second) = (found.address, entry.address);
                let message = format!("chunk {chunk:?} is there twice, at {first} and {second}");
                return Err(Error::corrupt("chunk index", index.address, message));
            }
        }
        Ok(())
    }
}

fn index_of(file: &Inner, variable: usize) -> Option<&ChunkIndex> {
    match &file.stored.get(variable)?.place {
        ChunkPlace::Chunked { index, .. } => Some(index),
        ChunkPlace::Nowhere
        | ChunkPlace::Contiguous(_)
        | ChunkPlace::Inline(_)
        | ChunkPlace::External(_)
        | ChunkPlace::Virtual(_) => None,
    }
}

impl Machine for CheckIndex {
    type Output = Option<u64>;

    fn subject(&self) -> &'static str {
        "chunk index"
    }

    fn step(&mut self, replies: Replies) -> Result<Step<Option<u64>>> {
        self.replay.supply_replies(replies)?;
        let is_done = self.go_on();
        let request = self.replay.request()?;
        if !request.is_empty() {
            return Ok(Step::read(request));
        }
        let is_done = is_done.map_err(|error| {
            let variable = self.file.hierarchy.variables.get(self.variable);
            variable.map_or(error.clone(), |it| error.about(&format!("dataset {:?}", it.path)))
        });
        match is_done? {
            true => Ok(Step::Done(index_of(&self.file, self.variable).map(|_| self.chunks))),
            false => Err(Error::internal("an index that misses nothing and does not end")),
        }
    }
}
