//! [`LineChunks`]: the chunks of a window's columns, in the order of lines.
//!
//! Lines are numbered in the order of the window, or against it. They are the positions along the axis, unless sort keys are NULL: NULL
//! comes before all keys or behind them, wherever the axis has it. Then positions with NULL are chunks of their own, at that end:
//!
//! ```text
//!   label       NULL  1   2 │ 3   4   5          NULLS LAST
//!   chunk            0      │     1     │  2
//!   line          5   0   1 │ 2   3   4          line 5 is of chunk 2, which is read from the chunk with labels 1 and 2
//! ```
//!
//! So a chunk with a NULL is read twice, and frames are ranges of lines as always.

use std::ops::Range;
use std::sync::Arc;

use crate::error::Result;
use crate::grid::AxisSelection;
use crate::plan::{ChunkColumns, ScanPlan, ScanRequest, TaskNumber};

/// The positions with NULL among those of an axis.
#[derive(Debug, Clone)]
pub(super) struct NullLines {
    pub(super) indices: AxisSelection,
    /// Whether their lines come before all others.
    pub(super) lead: bool,
}

/// The chunks of one plan, as columns.
#[derive(Debug)]
struct Stretch {
    plan: Arc<ScanPlan>,
    columns: ChunkColumns,
}

/// The chunks of columns along the axis of a window.
#[derive(Debug)]
pub(super) struct LineChunks {
    /// One stretch of lines after the other. All have the same columns.
    stretches: Vec<Stretch>,
}

impl LineChunks {
    /// Divides the chunks of `plan`. `None` if it leaves out chunks or cells.
    pub(super) fn try_new(
        plan: &Arc<ScanPlan>,
        axis: usize,
        nulls: Option<&NullLines>,
    ) -> Result<Option<Self>> {
        let Some(columns) = plan.chunk_columns(axis) else { return Ok(None) };
        let Some(nulls) = nulls else {
            let stretches = vec![Stretch { plan: Arc::clone(plan), columns }];
            return Ok(Some(Self { stretches }));
        };
        let mut parts = [nulls.indices.complement(), nulls.indices.clone()];
        if nulls.lead {
            parts.reverse();
        }
        let mut stretches = vec![];
        for indices in parts {
            let mut selection = plan.selection().clone();
            selection.restrict(axis, &indices);
            let request = ScanRequest { selection, ..ScanRequest::all(plan.grid()) };
            let plan = Arc::new(ScanPlan::new(plan.grid().clone(), request)?);
            let Some(columns) = plan.chunk_columns(axis) else { return Ok(None) };
            stretches.push(Stretch { plan, columns });
        }
        Ok(Some(Self { stretches }))
    }

    /// Returns the plans that tasks are of.
    pub(super) fn plans(&self) -> impl Iterator<Item = &Arc<ScanPlan>> {
        self.stretches.iter().map(|it| &it.plan)
    }

    /// Whether rows come in the order of the array.
    pub(super) fn are_in_order(&self) -> bool {
        self.stretches.len() == 1 && self.count() <= 1
    }

    /// Returns the number of columns.
    pub(super) fn count(&self) -> u64 {
        self.stretches.first().map_or(0, |it| it.columns.count())
    }

    /// Returns the number of chunks of each column.
    pub(super) fn len(&self) -> usize {
        self.stretches.iter().map(|it| it.columns.len()).sum()
    }

    /// Returns the lines of a chunk.
    pub(super) fn lines(&self, chunk: usize) -> Range<usize> {
        let (stretch, own, first) = self.place(chunk);
        let lines = self.stretches[stretch].columns.positions(own);
        first + lines.start as usize..first + lines.end as usize
    }

    /// Returns the chunk with a line.
    pub(super) fn chunk_at(&self, line: usize) -> usize {
        let (mut chunks, mut first) = (0, 0);
        let last = self.stretches.len().saturating_sub(1);
        for (number, Stretch { columns, .. }) in self.stretches.iter().enumerate() {
            let lines = lines_of(columns);
            if line < first + lines || number == last {
                return chunks + columns.chunk_at((line - first) as u64);
            }
            (chunks, first) = (chunks + columns.len(), first + lines);
        }
        chunks
    }

    /// Returns the chunks that each plan reads.
    pub(super) fn chunks_of_plans(&self) -> impl Iterator<Item = Range<usize>> {
        self.stretches.iter().scan(0, |start, it| {
            let chunks = *start..*start + it.columns.len();
            *start = chunks.end;
            Some(chunks)
        })
    }

    /// Returns the number of the plan that reads a chunk.
    pub(super) fn plan_of(&self, chunk: usize) -> usize {
        self.place(chunk).0
    }

    /// Returns the plan that reads a chunk of a column, and its task there.
    pub(super) fn task(&self, column: u64, chunk: usize) -> (&Arc<ScanPlan>, TaskNumber) {
        let (stretch, own, _) = self.place(chunk);
        let Stretch { plan, columns } = &self.stretches[stretch];
        (plan, columns.task(column, own))
    }

    /// Returns the stretch of a chunk, its number there, and the first line of the stretch.
    fn place(&self, chunk: usize) -> (usize, usize, usize) {
        let (mut chunks, mut first) = (0, 0);
        let last = self.stretches.len().saturating_sub(1);
        for (number, Stretch { columns, .. }) in self.stretches.iter().enumerate() {
            if chunk < chunks + columns.len() || number == last {
                return (number, chunk - chunks, first);
            }
            (chunks, first) = (chunks + columns.len(), first + lines_of(columns));
        }
        (last, chunk, first)
    }
}

/// Returns the number of lines of a stretch.
fn lines_of(columns: &ChunkColumns) -> usize {
    columns.len().checked_sub(1).map_or(0, |last| columns.positions(last).end as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::{ChunkGrid, Selection};

    #[test]
    fn lines_with_null_are_chunks_of_their_own_at_one_end() {
        let grid = ChunkGrid::new(&[10, 5], &[3, 2]).unwrap();
        let mut selection = Selection::all(&[10, 5]);
        selection.restrict(0, &AxisSelection::from_range(10, 1..10));
        let request = ScanRequest { selection, ..ScanRequest::all(&grid) };
        let plan = Arc::new(ScanPlan::new(grid, request).unwrap());
        let indices = AxisSelection::from_ranges(10, [1..2, 4..5, 5..6]);
        for lead in [false, true] {
            let nulls = NullLines { indices: indices.clone(), lead };
            let chunks = LineChunks::try_new(&plan, 0, Some(&nulls)).unwrap().unwrap();
            assert_eq!((chunks.count(), chunks.len()), (3, 6));
            let expected = match lead {
                false => [2, 3, 6, 7, 8, 9, 1, 4, 5],
                true => [1, 4, 5, 2, 3, 6, 7, 8, 9],
            };
            for column in 0..3 {
                let mut found = vec![];
                for chunk in 0..chunks.len() {
                    let (plan, number) = chunks.task(column, chunk);
                    assert!(Arc::ptr_eq(plan, chunks.plans().nth(chunks.plan_of(chunk)).unwrap()));
                    let task = plan.task(number);
                    assert_eq!(task.coordinates[1], column);
                    let start = task.coordinates[0] * 3;
                    let lines = chunks.lines(chunk);
                    assert_eq!(lines.start, found.len());
                    let own = task.selection[0].ranges().iter().cloned().flatten();
                    found.extend(own.map(|index| start + index));
                    assert_eq!(lines.end, found.len());
                    assert!(lines.clone().all(|line| chunks.chunk_at(line) == chunk));
                }
                assert_eq!(found, expected);
            }
        }
        let whole = LineChunks::try_new(&plan, 0, None).unwrap().unwrap();
        assert_eq!((whole.len(), whole.lines(3), whole.are_in_order()), (4, 8..9, false));
    }
}
