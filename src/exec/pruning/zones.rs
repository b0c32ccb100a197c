//! Decides whether reading zone maps costs less than reading the payloads that they save.
//!
//! The measure is the bytes of payloads that the query would read without zone maps. Each kind of source
//! compares the cost of its zone maps with these bytes ([`GridArray::zones`]):
//!
//! ```text
//!   chunks that a plan reads, whole:  cells × bytes per cell  ──▶  source: cheaper?  ──▶  zones, or none
//! ```

use std::sync::Arc;

use crate::array::GridArray;
use crate::format::Zones;
use crate::grid::{ChunkGrid, Selection};
use crate::plan::{ScanPlan, touched_chunks};

/// The extent of the chunks that a query would read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadExtent<'a> {
    /// The cells that the query needs of them.
    pub(super) selection: &'a Selection,
    /// The number of their cells, selected or not, because chunks are read whole.
    cells: u64,
}

impl<'a> ReadExtent<'a> {
    /// Counts the chunks that a selection touches.
    pub(super) fn from_selection(grid: &ChunkGrid, selection: &'a Selection) -> Self {
        Self { selection, cells: touched_cells(grid, selection).1 }
    }

    /// Counts the chunks of a plan. If masks or a limit leave some out, the others count with average
    /// size.
    pub(crate) fn from_plan(plan: &'a ScanPlan) -> Self {
        let (chunks, cells) = touched_cells(plan.grid(), plan.selection());
        // The share of the chunks that are left, of the cells of all touched chunks.
        let share = u128::from(cells) * u128::from(plan.chunks()) / u128::from(chunks.max(1));
        Self { selection: plan.selection(), cells: u64::try_from(share).unwrap_or(u64::MAX) }
    }
}

/// Returns how many chunks a selection touches, and the number of their cells.
fn touched_cells(grid: &ChunkGrid, selection: &Selection) -> (u64, u64) {
    let (mut chunks, mut cells) = (1_u64, 1_u64);
    for axis in 0..grid.rank() {
        let touched = touched_chunks(grid, selection, axis);
        let extents = touched.iter().map(|&chunk| {
            let range = grid.axis_range(axis, chunk);
            range.end - range.start
        });
        chunks = chunks.saturating_mul(touched.len() as u64);
        cells = cells.saturating_mul(extents.sum());
    }
    (chunks, cells)
}

/// Reads the zone maps of the variable `value`. Returns `None` if there are none to use, or if they cost a
/// query of `chunks` more than they may save.
pub(crate) async fn worthwhile_zones(
    array: &GridArray,
    value: usize,
    chunks: ReadExtent<'_>,
) -> Option<Arc<dyn Zones>> {
    let bytes = chunks.cells.saturating_mul(array.value(value).cell_bytes());
    array.zones(value, chunks.selection, bytes).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::AxisSelection;
    use crate::plan::{ChunkMask, ScanRequest};

    /// A selection and its plan count the same cells; masks and limits reduce the count.
    #[test]
    fn chunks_count_whole_and_only_those_that_are_read() {
        let grid = ChunkGrid::new(&[10, 6], &[4, 3]).unwrap();
        let mut request = ScanRequest::all(&grid);
        let cells = |request: &ScanRequest| {
            let plan = ScanPlan::new(grid.clone(), request.clone()).unwrap();
            ReadExtent::from_plan(&plan).cells
        };
        assert_eq!(cells(&request), 60);
        // One index of each of two chunks on axis 0, and one index on axis 1.
        request.selection.restrict(0, &AxisSelection::from_range(10, 3..5));
        request.selection.restrict(1, &AxisSelection::from_range(6, 0..1));
        assert_eq!(cells(&request), 2 * 12);
        assert_eq!(ReadExtent::from_selection(&grid, &request.selection).cells, 2 * 12);
        request.masks = vec![ChunkMask { axes: vec![0], keep: vec![true, false], by_zones: false }];
        assert_eq!(cells(&request), 12);
        let limited = ScanRequest { limit: Some(1), ..ScanRequest::all(&grid) };
        assert_eq!(cells(&limited), 10);
        request.selection.restrict(1, &AxisSelection::from_range(6, 0..0));
        request.masks.clear();
        assert_eq!(cells(&request), 0);
    }
}
