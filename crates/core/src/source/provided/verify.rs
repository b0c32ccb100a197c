//! The default verification of a group: opens each array, and locates, reads and decodes each chunk.
//!
//! ```text
//!   per array    chunks 0 … 255, 256 … 511, …    chunk_locations
//!                  │ locate: one call for 256 chunks; if it fails, one per chunk
//!                  ▼
//!                ArrayChunk per chunk and value ──▶ Decoding: batches, in parallel    chunk_decode
//! ```
//!
//! Nothing is known about stored statistics of unknown formats, so they are not compared.

use std::sync::Arc;

use bytes::Bytes;

use super::NamedGrid;
use crate::array::GridArray;
use crate::error::{Error, ErrorKind, Result};
use crate::format::{Scratch, StoredChunk};
use crate::grid::ChunkTask;
use crate::tile::layers::Undecodable;
use crate::tile::{Request, leave_out_absent};
use crate::verify::{
    Check, Decodable, Decoding, Depth, Finding, Findings, Progress, Report, counted,
};

/// The number of chunks to locate with one call.
const LOCATED_AT_ONCE: u64 = 256;

/// Verifies the arrays at `location`, and decodes their chunks at [`Depth::Cells`].
pub(crate) async fn verify_arrays(
    location: &str,
    arrays: Vec<NamedGrid>,
    left_out: &[Error],
    depth: Depth,
    progress: &Arc<Progress>,
) -> Report {
    let mut report = Report::new(depth);
    let (mut opened, mut check) = (Vec::new(), Check::new("arrays"));
    for (name, array) in arrays {
        match array {
            Ok(array) => opened.push(Arc::new(array)),
            Err(error) => check.add(finding_of(&error).in_dataset(&name)),
        }
    }
    check.extend(left_out.iter().map(finding_of));
    for array in &opened {
        check.extend(absence_of(array).await);
    }
    report.add(check.with_detail(counted(opened.len() as u64, "array")));
    if depth == Depth::Cells {
        verify_cells(&opened, progress).await.into_iter().for_each(|check| report.add(check));
    }
    report.relative_to(location)
}

/// Returns a finding if no chunk of an array is stored, or if its chunks have other names than the metadata sets. An error
/// here is the one that queries of the array end with, so it is never a warning only.
async fn absence_of(array: &GridArray) -> Option<Finding> {
    let finding = match array.explain_absence(0, 0).await {
        Ok(warning) => Finding::warning(warning?),
        Err(error) => Finding::from_error(&error),
    };
    Some(finding.in_dataset(array.name()))
}

/// Converts an error to a finding. An unsupported feature is a warning, because the file may be correct.
fn finding_of(error: &Error) -> Finding {
    match error.kind() {
        ErrorKind::Unsupported => Finding::from_error(error).into_warning(),
        _ => Finding::from_error(error),
    }
}

async fn verify_cells(arrays: &[Arc<GridArray>], progress: &Arc<Progress>) -> Vec<Check> {
    let Some(first) = arrays.first() else { return vec![] };
    for array in arrays {
        progress.expect(payloads(array));
    }
    let mut cells = CellsVerification {
        located: Check::new("chunk_locations"),
        decoding: Decoding::new(first.shared_objects(), progress, "chunk_decode", &[]),
        progress,
        chunks: 0,
    };
    // An error that is no finding: a task of the decoding has failed, so its findings are lost.
    let mut died = None;
    for array in arrays {
        if let Err(error) = cells.each_chunk(array).await {
            died = Some(error);
            break;
        }
    }
    let located = cells.located.with_detail(counted(cells.chunks, "chunk"));
    let finished = match died {
        Some(error) => Err(error),
        None => cells.decoding.finish("chunk").await,
    };
    let decoded = finished.map(|(payloads, _)| payloads);
    let failed = |error| Check::new("chunk_decode").with(Finding::from_error(&error));
    vec![located, decoded.unwrap_or_else(failed)]
}

/// Returns the number of chunks of an array, counted once for each value.
fn payloads(array: &GridArray) -> u64 {
    array.grid().chunks().saturating_mul(array.values().len() as u64)
}

/// The most chunks of an array to verify. A small header may declare any number of chunks that do not exist.
const MOST_CHUNKS: u64 = 1 << 24;

/// The state of verifying the cells of several arrays.
struct CellsVerification<'a> {
    located: Check,
    decoding: Decoding<ArrayChunk>,
    progress: &'a Progress,
    /// The number of located chunks, counted once for each value.
    chunks: u64,
}

impl CellsVerification<'_> {
    /// Locates all chunks of an array and queues them for decoding. Errors of chunks are findings; an error
    /// here ends the verification.
    async fn each_chunk(&mut self, array: &Arc<GridArray>) -> Result<()> {
        self.decoding.set_objects(array.shared_objects()).await?;
        let grid = array.grid();
        if grid.chunks() > MOST_CHUNKS {
            let message = format!(
                "{} chunks are too many to verify; the limit is {MOST_CHUNKS}",
                grid.chunks()
            );
            self.located.add(Finding::warning(message).in_dataset(array.name()));
            self.progress.advance(payloads(array), 0);
            return Ok(());
        }
        let mut next = 0;
        while next < grid.chunks() {
            let end = next.saturating_add(LOCATED_AT_ONCE).min(grid.chunks());
            let tasks: Vec<ChunkTask> =
                (next..end).map(|number| ChunkTask::whole(grid, number)).collect();
            next = end;
            match locate(array, &tasks).await {
                Ok(chunks) => self.add(array, tasks, chunks).await?,
                // One bad chunk fails the call for all 256.
                Err(_) => self.each_alone(array, tasks).await?,
            }
        }
        Ok(())
    }

    /// Locates the chunks one by one, so that each failing chunk gets its own finding.
    async fn each_alone(&mut self, array: &Arc<GridArray>, tasks: Vec<ChunkTask>) -> Result<()> {
        for task in tasks {
            match locate(array, std::slice::from_ref(&task)).await {
                Ok(chunks) => self.add(array, vec![task], chunks).await?,
                Err(error) => {
                    let finding = finding_of(&array.objects().named(error));
                    self.located.add(finding.in_dataset(array.name()).of_chunk(&task.coordinates));
                    self.progress.advance(array.values().len() as u64, 0);
                }
            }
        }
        Ok(())
    }

    /// Queues the values of located chunks for decoding, and skips values that are not stored.
    async fn add(
        &mut self,
        array: &Arc<GridArray>,
        tasks: Vec<ChunkTask>,
        chunks: Vec<Vec<StoredChunk>>,
    ) -> Result<()> {
        for (task, values) in tasks.into_iter().zip(chunks) {
            let task = Arc::new(task);
            for (value, stored) in values.into_iter().enumerate() {
                self.chunks += 1;
                if stored.layers.is_empty() {
                    self.progress.advance(1, 0);
                    continue;
                }
                let (array, task) = (Arc::clone(array), Arc::clone(&task));
                self.decoding.add(ArrayChunk { array, task, value, stored }).await?;
            }
        }
        Ok(())
    }
}

/// Locates all values of chunks.
async fn locate(array: &GridArray, tasks: &[ChunkTask]) -> Result<Vec<Vec<StoredChunk>>> {
    let values: Vec<usize> = (0..array.values().len()).collect();
    array.locate(tasks, &values).await
}

/// One value of one chunk, to be decoded.
#[derive(Debug)]
struct ArrayChunk {
    array: Arc<GridArray>,
    task: Arc<ChunkTask>,
    /// The number of the value in the array.
    value: usize,
    stored: StoredChunk,
}

impl Decodable for ArrayChunk {
    fn requests(&self) -> Vec<Request> {
        Request::for_chunks(std::slice::from_ref(&self.stored))
    }

    fn decode(
        &self,
        payloads: Vec<Option<Bytes>>,
        memory: Vec<u8>,
        scratch: &mut Scratch,
    ) -> Result<(Findings, Vec<u8>)> {
        let Self { array, task, value, stored } = self;
        // Layers whose objects are absent are left out. A chunk without any other layer is all fill, which
        // needs no decoding.
        let mut present = [stored.clone()];
        let mut payloads = leave_out_absent(&mut present, payloads).into_iter();
        let [stored] = present;
        if stored.layers.is_empty() {
            return Ok((Findings::absent(), memory));
        }
        let tile = array.decode_value(task, *value, &stored, &mut payloads, memory, scratch);
        let named = |failed: Undecodable| array.objects().named_in(failed.member, failed.error);
        Ok((Findings::default(), tile.map_err(named)?.into_spare()))
    }

    fn located(&self, finding: Finding) -> Finding {
        finding.in_dataset(self.array.name()).of_chunk(&self.task.coordinates)
    }
}
