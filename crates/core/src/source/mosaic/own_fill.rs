//! [`OwnFill`]: an array whose fill value is another one than that of the table.
//!
//! The cells of a chunk that was never written have the fill value of their own file. The table knows only the fill value of
//! the first file. So the other one becomes a layer of one element, below all that is stored:
//!
//! ```text
//!   stored    chunk            absent            the table's fill value: 0
//!   layers    9 9 9, chunk     9 9 9             this file's: 9
//! ```

use std::sync::Arc;

use async_trait::async_trait;

use crate::array::{ChunkSource, GridArray, Value, ValueBounds};
use crate::error::Result;
use crate::format::{MemoryBudget, RepeatedCell, StoredChunk, Zones};
use crate::grid::{ChunkGrid, ChunkTask, Selection};
use crate::tile::{CellFormat, ObjectVersion, Objects};

/// Whether cells that were never written may differ between two formats that are alike otherwise.
pub(super) fn differs_in_fill_only(a: &CellFormat, b: &CellFormat) -> bool {
    let is_plain = |cells: &CellFormat| cells.width.is_some() && !cells.nullable;
    a.width == b.width && is_plain(a) && is_plain(b)
}

/// Returns the source of an array of a table that shows `shown`, which may have other fill values.
pub(super) fn with_own_fill(array: GridArray, shown: &[Value]) -> Arc<dyn ChunkSource> {
    let own = |(value, shown): (&Value, &Value)| {
        let fill = &value.cells.fill;
        // Another form of the variable has a fill value of its own.
        let is_shown = value.column == shown.column;
        let is_own = is_shown && !fill.is_empty() && *fill != shown.cells.fill;
        is_own.then(|| RepeatedCell::new(fill.clone()))
    };
    let fills: Vec<_> = array.values().iter().zip(shown).map(own).collect();
    let grid = array.grid().clone();
    over_fills(array.into_source(), grid, fills)
}

/// Returns a source with these cells below chunks that may be absent.
pub(super) fn over_fills(
    source: Arc<dyn ChunkSource>,
    grid: ChunkGrid,
    fills: Vec<Option<RepeatedCell>>,
) -> Arc<dyn ChunkSource> {
    match fills.iter().any(Option::is_some) {
        true => Arc::new(OwnFill { source, grid, fills }),
        false => source,
    }
}

/// A source of chunks with a fill value for some of its values.
#[derive(Debug)]
struct OwnFill {
    source: Arc<dyn ChunkSource>,
    grid: ChunkGrid,
    fills: Vec<Option<RepeatedCell>>,
}

impl OwnFill {
    /// Adds the fill value below a chunk that may be absent.
    fn filled(&self, task: &ChunkTask, value: usize, mut chunk: StoredChunk) -> StoredChunk {
        let may_be_absent = chunk.layers.is_empty()
            || chunk.layers.iter().any(|it| it.may_be_absent || it.placement.is_some());
        let Some(Some(fill)) = self.fills.get(value).filter(|_| may_be_absent) else {
            return chunk;
        };
        let member = chunk.layers.first().map_or(0, |layer| layer.values.at.member);
        let mut layer = fill.layer(self.grid.extents(&task.coordinates));
        layer.values.at.member = member;
        chunk.layers.insert(0, layer);
        chunk
    }
}

#[async_trait]
impl ChunkSource for OwnFill {
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
        let located = self.source.locate(tasks, values).await?;
        let of_task = |(task, chunks): (&ChunkTask, Vec<StoredChunk>)| {
            let of_value = |(value, chunk): (&usize, StoredChunk)| self.filled(task, *value, chunk);
            values.iter().zip(chunks).map(of_value).collect()
        };
        Ok(tasks.iter().zip(located).map(of_task).collect())
    }

    async fn zones(
        &self,
        value: usize,
        selection: &Selection,
        bytes_to_read: u64,
    ) -> Option<Arc<dyn Zones>> {
        self.source.zones(value, selection, bytes_to_read).await
    }

    async fn value_bounds(
        &self,
        value: usize,
        selection: &Selection,
    ) -> Option<Arc<dyn ValueBounds>> {
        self.source.value_bounds(value, selection).await
    }
}
