//! The interface that every format offers to scans: where the chunks of an array are stored.
//!
//! ```text
//!   ChunkTask ──locate──▶ StoredChunk: layers, oldest first ──fetch──▶ payloads ──▶ Tile
//!                           each: where, how encoded, in which order, which cells
//! ```
//!
//! A source returns locations and never reads the chunks. It need not know whether their bytes exist,
//! or how many there are:
//!
//! - A chunk that was never written has no layers, if the source knows this. Otherwise it has a layer
//!   that [may be absent](crate::format::Layer::may_be_absent). In both cases, its cells get the fill
//!   value of the variable's [`CellFormat`](crate::tile::CellFormat), which must have one.
//! - An object that is one chunk has the range [`ByteRange::Whole`](crate::format::ByteRange::Whole).
//!   Memory is then planned with the decoded length.
//! - Cells that are not in row-major order, or are only a part of the chunk, have a
//!   [`Placement`](crate::format::Placement). Words that are not little-endian have a
//!   [`ByteOrder`](crate::format::ByteOrder).
//! - [`Zones`] give stored chunk statistics. A format without statistics returns `None`; chunks are
//!   then pruned by labels alone.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;

use super::value_bounds::ValueBounds;
use crate::error::Result;
use crate::format::{MemoryBudget, StoredChunk, Zones};
use crate::grid::{ChunkGrid, ChunkTask, Selection};
use crate::tile::{ObjectVersion, Objects};

/// The source of an array's chunks, which locates them in objects. Variables are numbered as in the
/// array's columns.
#[async_trait]
pub trait ChunkSource: Debug + Send + Sync {
    /// Returns the objects that the array is stored in.
    fn objects(&self) -> &Arc<Objects>;

    /// Returns the versions of the objects that opening the array has read, so that another process can tell whether it
    /// opens the same. Empty if nothing tells versions apart. Objects that are chunks need not be among them.
    fn versions(&self) -> Vec<ObjectVersion> {
        self.objects().versions()
    }

    /// Returns the versions of the objects that are chunks, as one digest per array. Only plans that travel to other processes
    /// ask for them, because finding them may take a listing. Empty if they cannot be written again, or are too many.
    ///
    /// # Errors
    /// `Io` if the objects cannot be listed, or one was written since it was read.
    fn contents(&self) -> Result<Vec<ObjectVersion>> {
        Ok(vec![])
    }

    /// Returns the memory budget that the writer suggests.
    fn memory_budget(&self) -> MemoryBudget {
        MemoryBudget::default()
    }

    /// Returns the most chunks that a scan may read. An array may have far more chunks than are written, as a
    /// domain of 2⁶³ cells has, and a plan lists those that it reads.
    fn most_chunks(&self) -> u64 {
        u64::MAX
    }

    /// Returns the axes along which the cells of `value` differ, ascending: along the others they repeat. `None` if they may
    /// differ along all.
    fn axes_of(&self, value: usize) -> Option<Vec<usize>> {
        let _ = value;
        None
    }

    /// Returns how the cells of `value` repeat within each of several files; `None` if they do not. Files may have other cells.
    fn repeated_in_files(&self, value: usize) -> Option<Arc<RepeatedInFiles>> {
        let _ = value;
        None
    }

    /// Returns the same cells over `grid`, which is longer along `axis`. `None` unless cells repeat along this axis.
    fn stretched(&self, grid: &ChunkGrid, axis: usize) -> Option<Arc<dyn ChunkSource>> {
        let _ = (grid, axis);
        None
    }

    /// Locates `values` of the chunks of `tasks`. The result has one list per task, with one entry per
    /// value, in the order of the arguments.
    ///
    /// A call covers many chunks, so that a single request can read their part of an index. Keep what
    /// is read: each partition of each query calls this method again.
    async fn locate(&self, tasks: &[ChunkTask], values: &[usize]) -> Result<Vec<Vec<StoredChunk>>>;

    /// Explains why a query has found no chunk of `value` among the objects of `member`. The first time, returns a warning if
    /// none is stored, and nothing if others are. Only formats whose index does not tell which chunks are stored need this.
    ///
    /// # Errors
    /// If chunks are stored under other names than those that were tried.
    async fn explain_absence(&self, value: usize, member: u32) -> Result<Option<String>> {
        let _ = (value, member);
        Ok(None)
    }

    /// Returns the stored statistics of `value` for the chunks that hold a cell of `selection`. They
    /// count the same elements as NULL as the table does.
    ///
    /// `None` if there are none, if they are not trusted, or if reading them costs too much compared
    /// with `bytes_to_read` of payloads.
    async fn zones(
        &self,
        value: usize,
        selection: &Selection,
        bytes_to_read: u64,
    ) -> Option<Arc<dyn Zones>> {
        let _ = (value, selection, bytes_to_read);
        None
    }

    /// Returns the least and the greatest value of the chunks of `value` that hold a cell of `selection`. `None` if the source
    /// would have to read these chunks.
    async fn value_bounds(
        &self,
        value: usize,
        selection: &Selection,
    ) -> Option<Arc<dyn ValueBounds>> {
        let _ = (value, selection);
        None
    }
}

/// The places of cells that repeat along the axis on which files follow one another, as long as a file lasts.
///
/// ```text
///   time       0 1 2 3 │ 4 5 6 7        starts  0 4
///   lat(y, x)  a a a a │ b b b b        b is mostly equal to a
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepeatedInFiles {
    /// The axes along which the cells differ, ascending, all behind `axis`.
    pub axes: Vec<usize>,
    /// The axis on which files follow one another.
    pub axis: usize,
    /// The index at which each file begins, ascending.
    pub starts: Vec<u64>,
}

/// Arrays whose [`ChunkSource::contents`] may be needed later.
#[derive(Debug, Clone, Default)]
pub struct Contents(pub Vec<Arc<dyn ChunkSource>>);

impl Contents {
    /// Returns the versions of all chunks.
    ///
    /// # Errors
    /// As [`ChunkSource::contents`].
    pub fn versions(&self) -> Result<Vec<ObjectVersion>> {
        let mut all: Vec<ObjectVersion> = vec![];
        for source in &self.0 {
            for version in source.contents()? {
                if !all.contains(&version) {
                    all.push(version);
                }
            }
        }
        Ok(all)
    }
}

/// Always equal: the versions of the metadata tell arrays apart.
impl PartialEq for Contents {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Contents {}
