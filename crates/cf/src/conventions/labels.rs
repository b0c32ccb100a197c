//! Dimensions and their labels, which coordinate variables hold.

use std::sync::Arc;

use arrow::array::{ArrayRef, new_empty_array};
use arrow::compute::concat;

use super::chunks::VariableChunks;
use super::options::HierarchyView;
use super::store::VariableStore;
use super::values::{label_column, texts};
use crate::hierarchy::Variable;
use gridfusion_core::array::{Dimension, GridArray, Labels, Remarks, failed_to};
use gridfusion_core::format::{Scratch, StoredChunk};
use gridfusion_core::grid::{AxisSelection, ChunkGrid, ChunkTask};
use gridfusion_core::tile::layers::Undecodable;
use gridfusion_core::tile::{Request, Tile, leave_out_absent};
use gridfusion_core::{Error, Result};

/// The least bytes that a chunk of labels counts for, because asking for an absent one takes time.
const CHUNK_COST: u64 = 1024;

/// The chunks of labels that are read at once.
const CHUNKS_AT_ONCE: u64 = 256;

/// Reads the labels of a coordinate variable.
///
/// Returns `None`, with a remark, if the labels would take much more memory than the store has bytes for them: most
/// chunks of a damaged or unwritten coordinate are absent.
pub(super) async fn read_labels(
    store: &Arc<dyn VariableStore>,
    number: usize,
    view: &HierarchyView,
    remarks: &mut Remarks,
) -> Result<Option<Labels>> {
    let variable = variable(&**store, number)?;
    let column = label_column(variable, view, remarks)?;
    let grid = grid(variable)?;
    let source = VariableChunks {
        store: Arc::clone(store),
        variable: number,
        cell: variable.cell.clone(),
        missing: None,
    };
    let dims = vec![Dimension::indexed("index", grid.cells())];
    let array =
        GridArray::new(variable.path.clone(), Arc::new(source), grid, dims, vec![column], false);
    let Some(values) = read_line(&array).await? else {
        let (name, len) = (variable.name(), array.grid().cells());
        let message =
            format!("the coordinate is ignored: it has {len} elements, but few are stored");
        remarks.odd.push(format!("\"{name}\": {message}"));
        return Ok(None);
    };
    let attributes = match view.read.decode_times {
        true => texts(&variable.attributes),
        false => Default::default(),
    };
    Labels::from_values(values, &attributes, remarks).map(Some)
}

/// Returns a variable by its number.
pub(super) fn variable(store: &dyn VariableStore, number: usize) -> Result<&Variable> {
    let variable = store.hierarchy().variables.get(number);
    variable.ok_or_else(|| Error::internal("a variable that does not exist"))
}

/// Planning lists the chunks of an axis, and a damaged shape may have any number of them.
const MAX_CHUNKS_PER_AXIS: u64 = 1 << 24;

/// Returns the chunk grid of a variable.
///
/// # Errors
/// `Unsupported` if an axis has too many chunks.
pub(super) fn grid(variable: &Variable) -> Result<ChunkGrid> {
    let grid = ChunkGrid::new(&variable.shape(), &variable.chunk_shape)?;
    match grid.chunks_per_axis().iter().find(|chunks| **chunks > MAX_CHUNKS_PER_AXIS) {
        None => Ok(grid),
        Some(chunks) => Err(Error::unsupported(format!(
            "an axis of {chunks} chunks; the most is {MAX_CHUNKS_PER_AXIS}"
        ))),
    }
}

/// Reads all values of an array of one axis; `None` if they take too much memory for what is stored.
pub(super) async fn read_line(array: &GridArray) -> Result<Option<ArrayRef>> {
    let (column, mut parts) = (array.value(0), vec![]);
    let decode = |tile: Tile, cells: u64| {
        parts.push(column.decode(&tile, &[AxisSelection::all(cells)], true)?);
        Ok(())
    };
    if !read_tiles(array, 0, decode).await? {
        return Ok(None);
    }
    let parts: Vec<&dyn arrow::array::Array> = parts.iter().map(AsRef::as_ref).collect();
    match parts.as_slice() {
        [] => Ok(Some(new_empty_array(&column.data_type()))),
        parts => concat(parts).map(Some).map_err(failed_to("join the chunks of labels")),
    }
}

/// Reads all tiles of a value of an array of one axis, and gives them to `take` with the number of their cells, in order.
/// Returns whether there was memory for them: false if they take too much for what is stored.
pub(super) async fn read_tiles(
    array: &GridArray,
    value: usize,
    mut take: impl FnMut(Tile, u64) -> Result<()> + Send,
) -> Result<bool> {
    let (grid, mut next) = (array.grid(), 0);
    let mut memory = Memory::default();
    let mut scratch = Scratch::default();
    while next < grid.chunks() {
        let end = next.saturating_add(CHUNKS_AT_ONCE).min(grid.chunks());
        let tasks: Vec<ChunkTask> = (next..end).map(|it| ChunkTask::whole(grid, it)).collect();
        next = end;
        let located = array.locate(&tasks, &[value]).await?.into_iter().flatten();
        let mut stored: Vec<StoredChunk> = located.collect();
        let payloads = array.objects().fetch_metadata(&Request::for_chunks(&stored)).await?;
        let payloads = leave_out_absent(&mut stored, payloads);
        let read = payloads.iter().map(|payload| payload.len() as u64).sum();
        let cells = tasks.iter().map(ChunkTask::cells).sum::<u64>();
        let bytes = cells.saturating_mul(array.value(value).cell_bytes());
        if !memory.is_plausible(bytes.max(tasks.len() as u64 * CHUNK_COST), read) {
            return Ok(false);
        }
        let mut payloads = payloads.into_iter();
        for (task, stored) in tasks.iter().zip(&stored) {
            let tile = array.decode_value(task, value, stored, &mut payloads, vec![], &mut scratch);
            let named = |failed: Undecodable| array.objects().named_in(failed.member, failed.error);
            take(tile.map_err(named)?, task.cells())?;
        }
    }
    Ok(true)
}

/// The bytes of labels that were made, and the stored bytes that they came from.
#[derive(Debug, Default)]
struct Memory {
    made: u64,
    read: u64,
}

impl Memory {
    /// Adds labels, and tells whether they may be honest: labels compress well, but not endlessly.
    fn is_plausible(&mut self, made: u64, read: u64) -> bool {
        /// Any coordinate may have up to this many bytes of labels.
        const ALWAYS: u64 = 1 << 26;
        /// The most bytes of labels per stored byte.
        const RATIO: u64 = 1024;
        self.made = self.made.saturating_add(made);
        self.read = self.read.saturating_add(read);
        self.made <= self.read.saturating_mul(RATIO).max(ALWAYS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_must_come_from_stored_bytes() {
        let mut memory = Memory::default();
        assert!(memory.is_plausible(1 << 26, 0));
        assert!(!memory.is_plausible(1, 0));
        assert!(memory.is_plausible(1 << 20, 1 << 17));
    }
}
