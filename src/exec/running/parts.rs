//! [`WindowPart`]: the chunks that a partition of the plan reads, and those whose rows it returns.
//!
//! Columns of chunks are divided among partitions. If there are fewer columns than partitions, each is cut along the axis.
//! The chunks that frames hold over a border are then read on both sides of it:
//!
//! ```text
//!   chunks along the axis     0   1   2   3   4   5
//!   partition 0               ├───────────┤
//!   partition 1                       (2) ├───────────┤     reads chunk 2 too, and returns no rows of it
//! ```

use std::ops::Range;

use super::call::Call;
use crate::plan::ChunkColumns;

/// The part of a window that a partition of the plan returns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowPart {
    /// The columns of chunks.
    pub columns: Range<u64>,
    /// The chunks of each column, along the axis.
    pub chunks: Range<usize>,
}

impl WindowPart {
    /// No rows.
    pub const EMPTY: Self = Self { columns: 0..0, chunks: 0..0 };
}

/// Chunks that may be read twice, as a share of all.
const READ_AGAIN: f64 = 0.5;

/// Divides the columns among at most so many partitions.
pub(super) fn parts(columns: &ChunkColumns, calls: &[Call], partitions: usize) -> Vec<WindowPart> {
    let count = columns.count();
    let most = partitions.max(1) as u64;
    if count >= most || columns.is_empty() {
        let border = |number: u64| number * count / most;
        let part = |number| WindowPart {
            columns: border(number)..border(number + 1),
            chunks: 0..columns.len(),
        };
        return (0..most).map(part).collect();
    }
    let len = columns.len();
    let cuts = (1..=(most / count.max(1)) as usize).rev();
    let mut cut = cuts.map(|cuts| -> Vec<Range<usize>> {
        let border = |number: usize| number * len / cuts;
        (0..cuts).map(|number| border(number)..border(number + 1)).collect()
    });
    let is_cheap = |cuts: &Vec<Range<usize>>| {
        let all: usize =
            cuts.iter().map(|chunks| chunks_to_read(columns, calls, chunks).len()).sum();
        all - len <= (len as f64 * READ_AGAIN) as usize
    };
    let cuts = cut.find(is_cheap).unwrap_or_else(|| vec![0..len]);
    (0..count)
        .flat_map(|column| {
            cuts.iter().map(move |chunks| WindowPart {
                columns: column..column + 1,
                chunks: chunks.clone(),
            })
        })
        .collect()
}

/// Returns the chunks along the axis whose cells are needed for the rows of `chunks`.
pub(super) fn chunks_to_read(
    columns: &ChunkColumns,
    calls: &[Call],
    chunks: &Range<usize>,
) -> Range<usize> {
    let mut read = chunks.clone();
    if chunks.is_empty() {
        return read;
    }
    let first = columns.positions(chunks.start).start;
    let last = columns.positions(chunks.end - 1).end - 1;
    for call in calls {
        let from = call.function.first_line(first as usize);
        read.start = read.start.min(columns.chunk_at(from as u64));
        if let Some(last) = call.function.reach(last as usize).checked_sub(1) {
            read.end = read.end.max(columns.chunk_at(last as u64) + 1);
        }
    }
    read
}

/// Returns the most bytes that the cells of a column of chunks take at a time, for lines of so many rows of
/// `bytes_per_row`.
pub(super) fn bytes(
    columns: &ChunkColumns,
    calls: &[Call],
    rows_per_line: u64,
    bytes_per_row: u64,
) -> u64 {
    let mut most = 0;
    for chunk in 0..columns.len() {
        let positions = columns.positions(chunk);
        let (first, last) = (positions.start as usize, positions.end as usize - 1);
        let reach = calls.iter().map(|call| call.function.reach(last)).max().unwrap_or(0);
        // Cells come by whole chunks, and rows wait until those behind them are there.
        let end = columns.positions(columns.chunk_at(reach.max(last + 1) as u64 - 1)).end;
        let kept = calls.iter().map(|call| {
            let lines = end.saturating_sub(call.function.kept_from(first) as u64);
            lines.saturating_mul(call.function.bytes_per_cell() as u64)
        });
        let waiting = (end - positions.start).saturating_mul(bytes_per_row);
        most = most.max(kept.sum::<u64>().saturating_add(waiting));
    }
    most.saturating_mul(rows_per_line)
}
