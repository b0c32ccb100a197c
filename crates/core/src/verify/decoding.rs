//! Parallel decoding of chunks, to check their payloads and their stored statistics.
//!
//! ```text
//!   add(chunk) ──▶ batch ──full──▶ Pool: a task per batch ──▶ Outcome ──▶ checks
//!                                  read all, then decode one after the other
//! ```
//!
//! `add` waits while a task per core is running, so memory is bounded by the cores and the batch size.

use std::sync::Arc;

use bytes::Bytes;
use futures::stream::{self, StreamExt};

use super::check::{Check, counted};
use super::finding::Finding;
use super::pool::Pool;
use super::progress::Progress;
use crate::error::{ErrorKind, Result};
use crate::format::Scratch;
use crate::tile::{Objects, Request};

/// A chunk or tile that can be decoded, or several tiles that are checked together.
pub trait Decodable: Send + Sync + 'static {
    /// Returns the number of chunks or tiles.
    fn count(&self) -> u64 {
        1
    }

    /// Returns requests for the payloads.
    fn requests(&self) -> Vec<Request>;

    /// Decodes the payloads into `memory`; a payload is `None` if it is absent and may be. Returns what is
    /// wrong, and the memory for reuse.
    fn decode(
        &self,
        payloads: Vec<Option<Bytes>>,
        memory: Vec<u8>,
        scratch: &mut Scratch,
    ) -> Result<(Findings, Vec<u8>)>;

    /// Adds the position of this chunk or tile to `finding`.
    fn located(&self, finding: Finding) -> Finding;
}

/// The findings about a chunk that was decoded, or about several tiles.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Findings {
    /// A finding for each of several tiles that could not be decoded.
    pub undecodable: Vec<Finding>,
    /// Findings about the cells, each with the name of its check.
    pub cells: Vec<(&'static str, Finding)>,
    /// Whether the chunk has no stored cell, because its objects are absent.
    pub is_absent: bool,
}

impl Findings {
    /// Returns no findings about a chunk that turned out to be absent.
    pub(crate) fn absent() -> Self {
        Self { is_absent: true, ..Self::default() }
    }

    /// Returns findings of the check with this name.
    pub fn with(check: &'static str, findings: impl IntoIterator<Item = Finding>) -> Self {
        let mut all = Self::default();
        all.extend(check, findings);
        all
    }

    /// Adds findings of the check with this name.
    pub fn extend(&mut self, check: &'static str, findings: impl IntoIterator<Item = Finding>) {
        self.cells.extend(findings.into_iter().map(|finding| (check, finding)));
    }
}

/// The stored bytes and the chunks that are read at once. Batches save small chunks a request each.
const BATCH_BYTES: u64 = 4 << 20;
const BATCH_CHUNKS: usize = 256;
/// The chunks of a failed batch that are read at the same time.
const READS_AT_ONCE: usize = 32;

/// The decoding of chunks in batches, with its checks.
#[derive(Debug)]
pub struct Decoding<T> {
    objects: Arc<Objects>,
    progress: Arc<Progress>,
    pool: Pool<Outcome>,
    /// Chunks that wait for a full batch, and their stored bytes.
    batch: Vec<T>,
    bytes: u64,
    /// The number of chunks decoded so far.
    decoded: u64,
    /// The number of chunks whose objects are absent.
    absent: u64,
    /// The check of payloads.
    payloads: Check,
    /// The checks of the cells.
    cells: Vec<Check>,
}

/// The result of decoding a batch.
#[derive(Debug, Default)]
struct Outcome {
    /// The number of chunks that could be decoded.
    decoded: u64,
    /// The number of chunks whose objects are absent.
    absent: u64,
    /// Findings about payloads.
    payloads: Vec<Finding>,
    /// Findings about the cells, each with the name of its check.
    cells: Vec<(&'static str, Finding)>,
}

impl<T: Decodable> Decoding<T> {
    /// Begins checks with the given names: one of `payloads`, and some of the decoded `cells`.
    pub fn new(
        objects: &Arc<Objects>,
        progress: &Arc<Progress>,
        payloads: &'static str,
        cells: &[&'static str],
    ) -> Self {
        Self {
            objects: Arc::clone(objects),
            progress: Arc::clone(progress),
            pool: Pool::new(),
            batch: vec![],
            bytes: 0,
            decoded: 0,
            absent: 0,
            payloads: Check::new(payloads),
            cells: cells.iter().copied().map(Check::new).collect(),
        }
    }

    /// Reads chunks from `objects` from now on. Chunks that wait are first started with the old objects.
    pub(crate) async fn set_objects(&mut self, objects: &Arc<Objects>) -> Result<()> {
        self.start().await?;
        self.objects = Arc::clone(objects);
        Ok(())
    }

    /// Adds a chunk to the batch, and starts decoding the batch if it is full.
    pub async fn add(&mut self, chunk: T) -> Result<()> {
        self.bytes = self.bytes.saturating_add(stored_bytes(&chunk));
        self.batch.push(chunk);
        if self.bytes >= BATCH_BYTES || self.batch.len() >= BATCH_CHUNKS {
            self.start().await?;
        }
        Ok(())
    }

    /// Starts decoding the batch, in parallel with the batches before.
    async fn start(&mut self) -> Result<()> {
        if self.batch.is_empty() {
            return Ok(());
        }
        self.bytes = 0;
        let batch = std::mem::take(&mut self.batch);
        let (objects, progress) = (Arc::clone(&self.objects), Arc::clone(&self.progress));
        let ended = self.pool.start(decode(objects, progress, batch)).await?;
        ended.into_iter().for_each(|ended| self.note(ended));
        Ok(())
    }

    /// Adds the result of a batch to the checks.
    fn note(&mut self, outcome: Outcome) {
        self.decoded += outcome.decoded;
        self.absent += outcome.absent;
        self.payloads.extend(outcome.payloads);
        for (name, finding) in outcome.cells {
            // A finding of a check without a place in the report still makes the verification fail.
            let check = self.cells.iter_mut().find(|check| check.name() == name);
            check.unwrap_or(&mut self.payloads).add(finding);
        }
    }

    /// Waits for all batches, and returns the check of payloads and those of the cells. `what` is the noun
    /// for what was decoded, such as `chunk`.
    pub async fn finish(mut self, what: &str) -> Result<(Check, Vec<Check>)> {
        self.start().await?;
        while let Some(ended) = self.pool.next().await? {
            self.note(ended);
        }
        let mut detail = counted(self.decoded, what);
        if self.absent > 0 {
            detail += &format!(", and {} without an object", self.absent);
        }
        Ok((self.payloads.with_detail(detail), self.cells))
    }
}

fn stored_bytes(chunk: &impl Decodable) -> u64 {
    chunk.requests().iter().map(|it| it.expected).fold(0, u64::saturating_add)
}

/// Decodes the chunks of a batch one after the other.
async fn decode<T: Decodable>(
    objects: Arc<Objects>,
    progress: Arc<Progress>,
    batch: Vec<T>,
) -> Outcome {
    let requests: Vec<Vec<Request>> = batch.iter().map(T::requests).collect();
    let (mut scratch, mut memory) = (Scratch::default(), vec![]);
    let mut outcome = Outcome::default();
    for (chunk, payloads) in batch.iter().zip(read_each(&objects, &requests).await) {
        let spare = std::mem::take(&mut memory);
        match payloads.and_then(|payloads| chunk.decode(payloads, spare, &mut scratch)) {
            Ok((Findings { undecodable, cells, is_absent }, spare)) => {
                let present = if is_absent { 0 } else { chunk.count() };
                outcome.absent += u64::from(is_absent);
                outcome.decoded += present.saturating_sub(undecodable.len() as u64);
                outcome.payloads.extend(undecodable);
                outcome.cells.extend(cells);
                memory = spare;
            }
            Err(error) => {
                let finding = Finding::from_error(&error);
                // The file may be correct.
                let is_warning = error.kind() == ErrorKind::Unsupported;
                let finding = if is_warning { finding.into_warning() } else { finding };
                outcome.payloads.push(chunk.located(finding));
            }
        }
        progress.advance(chunk.count(), stored_bytes(chunk));
    }
    outcome
}

/// Reads the payloads of all chunks at once. If that fails, reads each chunk alone, to find the one
/// that fails. They are read side by side, because each may wait for a server until its time is over.
async fn read_each(objects: &Objects, chunks: &[Vec<Request>]) -> Vec<Result<Vec<Option<Bytes>>>> {
    if let Ok(read) = objects.fetch(&chunks.concat()).await {
        let mut read = read.into_iter();
        return chunks.iter().map(|of| Ok(read.by_ref().take(of.len()).collect())).collect();
    }
    let each: Vec<_> = chunks.iter().map(|requests| objects.fetch(requests)).collect();
    stream::iter(each).buffered(READS_AT_ONCE).collect().await
}
