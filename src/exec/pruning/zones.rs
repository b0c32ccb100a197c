//! Decides whether reading zone maps costs less than the payloads it spares.
//!
//! Reading zone maps takes time, and spares payloads. Both are counted in bytes of payloads that the query
//! would read without them, and each kind of source knows what its zone maps cost beside that many
//! ([`GridArray::zones`]):
//!
//! ```text
//!   chunks that a plan reads, whole:  cells × bytes per cell  ──▶  source: cheaper?  ──▶  zones, or none
//! ```

use std::sync::Arc;

use crate::array::GridArray;
use crate::format::Zones;
use crate::grid::{ChunkGrid, Selection};
use crate::plan::{ScanPlan, touched_chunks};

/// Chunks that are to be read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChunksToRead<'a> {
    /// Whose cells they hold.
    pub(super) selection: &'a Selection,
    /// Their cells, selected or not: of chunks that are cut, all is read.
    cells: u64,
}

impl<'a> ChunksToRead<'a> {
    /// The chunks that a selection touches.
    pub(super) fn of_selection(grid: &ChunkGrid, selection: &'a Selection) -> Self {
        Self { selection, cells: touched_cells(grid, selection).1 }
    }

    /// The chunks of a plan. Where masks or a limit leave some out, the rest count as chunks of average size.
    pub(crate) fn of_plan(plan: &'a ScanPlan) -> Self {
        let (chunks, cells) = touched_cells(plan.grid(), plan.selection());
        let share = u128::from(cells) * u128::from(plan.chunks()) / u128::from(chunks.max(1));
        Self { selection: plan.selection(), cells: u64::try_from(share).unwrap_or(u64::MAX) }
    }
}

/// How many chunks a selection touches, and the cells of these chunks.
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

/// Reads the zone maps of `value`; `None` if that costs a query of these chunks more than it may spare.
pub(crate) async fn worthwhile_zones(
    array: &GridArray,
    value: usize,
    chunks: ChunksToRead<'_>,
) -> Option<Arc<dyn Zones>> {
    let bytes = chunks.cells.saturating_mul(array.value(value).cell_bytes());
    array.zones(value, chunks.selection, bytes).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::AxisSelection;
    use crate::plan::{ChunkMask, ScanRequest};

    /// A selection and its plan cost the same; masks and limits take their share off.
    #[test]
    fn chunks_count_whole_and_only_those_that_are_read() {
        let grid = ChunkGrid::new(&[10, 6], &[4, 3]).unwrap();
        let mut request = ScanRequest::all(&grid);
        let cells = |request: &ScanRequest| {
            let plan = ScanPlan::new(grid.clone(), request.clone()).unwrap();
            ChunksToRead::of_plan(&plan).cells
        };
        assert_eq!(cells(&request), 60);
        // One row of the first two chunks, one column of each.
        request.selection.restrict(0, &AxisSelection::from_range(10, 3..5));
        request.selection.restrict(1, &AxisSelection::from_range(6, 0..1));
        assert_eq!(cells(&request), 2 * 12);
        assert_eq!(ChunksToRead::of_selection(&grid, &request.selection).cells, 2 * 12);
        request.masks = vec![ChunkMask { axes: vec![0], keep: vec![true, false], by_zones: false }];
        assert_eq!(cells(&request), 12);
        let limited = ScanRequest { limit: Some(1), ..ScanRequest::all(&grid) };
        assert_eq!(cells(&limited), 10);
        request.selection.restrict(1, &AxisSelection::from_range(6, 0..0));
        request.masks.clear();
        assert_eq!(cells(&request), 0);
    }
}
