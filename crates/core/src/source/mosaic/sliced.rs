//! [`GridArray::sliced`]: a range of each axis of an array, as an array of its own.
//!
//! ```text
//!   stored    0 ─── 4 ─── 8 ─── 12 ── 16      chunks of 4
//!   slice         3 ──────────── 12           its chunks 0..1, 1..5, 5..9: borders of stored ones, and both ends
//! ```

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;

use super::overlap::{Overlap, axis_overlaps};
use crate::array::{ChunkSource, Dimension, GridArray};
use crate::error::{Error, Result};
use crate::format::{MemoryBudget, StoredChunk};
use crate::grid::{ChunkGrid, ChunkTask};
use crate::tile::{ObjectVersion, Objects};

impl GridArray {
    /// Returns the cells in a range of each axis. The array has no chunk statistics unless it is whole.
    ///
    /// # Errors
    /// `Internal` for ranges of other axes, or beyond them.
    pub(super) fn sliced(self, ranges: &[Range<u64>]) -> Result<Self> {
        let shape = self.grid().shape();
        if ranges.len() != shape.len() || ranges.iter().zip(shape).any(|(it, len)| it.end > *len) {
            return Err(Error::internal("a slice of axes that an array does not have"));
        }
        if ranges.iter().zip(shape).all(|(range, len)| *range == (0..*len)) {
            return Ok(self);
        }
        let of_axis = |(chunks, (range, len)): (&crate::grid::AxisChunks, (&Range<u64>, &u64))| {
            chunks.sliced(range, *len)
        };
        let axes = self.grid().axis_chunks().iter().zip(ranges.iter().zip(shape));
        let axes = axes.map(of_axis).collect();
        let lens: Vec<u64> = ranges.iter().map(|range| range.end - range.start).collect();
        let grid = ChunkGrid::with_axis_chunks(&lens, axes)?;
        let dim = |(dim, range): (&Dimension, &Range<u64>)| {
            Ok(dim.with_labels(dim.labels().part(range.clone())?))
        };
        let dims = self.dims().iter().zip(ranges).map(dim).collect::<Result<_>>()?;
        let (name, values, of) =
            (self.name().to_owned(), self.values().to_vec(), self.grid().clone());
        let source = SlicedChunks {
            source: self.into_source(),
            grid: of,
            of_slice: grid.clone(),
            ranges: ranges.to_vec(),
        };
        Ok(Self::new(name, Arc::new(source), grid, dims, values, false))
    }
}

/// The chunks of a slice.
#[derive(Debug)]
struct SlicedChunks {
    source: Arc<dyn ChunkSource>,
    /// The chunk grid of `source`.
    grid: ChunkGrid,
    /// The chunk grid of the slice.
    of_slice: ChunkGrid,
    /// Per axis, the indices of `source`.
    ranges: Vec<Range<u64>>,
}

impl SlicedChunks {
    /// Returns the stored chunk that holds a chunk of the slice.
    fn overlap(&self, task: &ChunkTask) -> Result<Overlap> {
        let mut axes = vec![];
        for (axis, slice) in self.ranges.iter().enumerate() {
            let range = self.of_slice.axis_range(axis, task.coordinates[axis]);
            let range = range.start + slice.start..range.end + slice.start;
            let first = axis_overlaps(&self.grid, axis, &range, None).into_iter().next();
            axes.push(first.ok_or_else(|| Error::internal("a chunk of a slice without cells"))?);
        }
        Ok(Overlap::new(axes.iter()))
    }
}

#[async_trait]
impl ChunkSource for SlicedChunks {
    fn objects(&self) -> &Arc<Objects> {
        self.source.objects()
    }

    fn versions(&self) -> Vec<ObjectVersion> {
        self.source.versions()
    }

    fn contents(&self) -> Result<Vec<ObjectVersion>> {
        self.source.contents()
    }

    fn memory_budget(&self) -> MemoryBudget {
        self.source.memory_budget()
    }

    fn most_chunks(&self) -> u64 {
        self.source.most_chunks()
    }

    fn axes_of(&self, value: usize) -> Option<Vec<usize>> {
        self.source.axes_of(value)
    }

    async fn explain_absence(&self, value: usize, member: u32) -> Result<Option<String>> {
        self.source.explain_absence(value, member).await
    }

    async fn locate(&self, tasks: &[ChunkTask], values: &[usize]) -> Result<Vec<Vec<StoredChunk>>> {
        let overlaps = tasks.iter().map(|task| self.overlap(task)).collect::<Result<Vec<_>>>()?;
        let stored: Vec<ChunkTask> = overlaps.iter().map(|it| it.task(&self.grid)).collect();
        let located = self.source.locate(&stored, values).await?;
        let place = |(overlap, chunks): (&Overlap, Vec<StoredChunk>)| {
            chunks.into_iter().map(|chunk| overlap.place(chunk)).collect()
        };
        Ok(overlaps.iter().zip(located).map(place).collect())
    }
}
