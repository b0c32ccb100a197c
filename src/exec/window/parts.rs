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
use super::lines::LineChunks;

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

/// Divides a part into at most so many. Columns that are cut along the axis must not read too many chunks again.
pub(super) fn divided(
    whole: &WindowPart,
    line_chunks: &LineChunks,
    calls: &[Call],
    pieces: usize,
) -> Vec<WindowPart> {
    let count = whole.columns.end.saturating_sub(whole.columns.start);
    let (most, len) = (pieces.max(1) as u64, whole.chunks.len());
    if count == 0 || len == 0 {
        return vec![];
    }
    if count >= most {
        let border = |number: u64| whole.columns.start + number * count / most;
        let part = |number| WindowPart {
            columns: border(number)..border(number + 1),
            chunks: whole.chunks.clone(),
        };
        return (0..most).map(part).collect();
    }
    let cuts = cuts(whole, line_chunks, calls, ((most / count) as usize).min(len));
    let of_column = |column| {
        let part = move |chunks: &Range<usize>| WindowPart {
            columns: column..column + 1,
            chunks: chunks.clone(),
        };
        cuts.iter().map(part)
    };
    whole.columns.clone().flat_map(of_column).collect()
}

/// Cuts the chunks of a column into at most `most` ranges of about equal length.
fn cuts(
    whole: &WindowPart,
    line_chunks: &LineChunks,
    calls: &[Call],
    most: usize,
) -> Vec<Range<usize>> {
    let len = whole.chunks.len();
    let into = |count: usize| -> Vec<Range<usize>> {
        let border = |number: usize| whole.chunks.start + number * len / count;
        (0..count).map(|number| border(number)..border(number + 1)).collect()
    };
    let is_cheap = |cuts: &Vec<Range<usize>>| {
        let read = cuts.iter().map(|chunks| chunks_to_read(line_chunks, calls, chunks).len());
        read.sum::<usize>().saturating_sub(len) <= (len as f64 * READ_AGAIN) as usize
    };
    let counts = std::iter::successors(Some(most), |count| (*count > 1).then(|| count.div_ceil(2)));
    counts.map(into).find(is_cheap).unwrap_or_else(|| vec![whole.chunks.clone()])
}

/// Returns the chunks along the axis whose cells are needed for the rows of `chunks`.
pub(super) fn chunks_to_read(
    line_chunks: &LineChunks,
    calls: &[Call],
    chunks: &Range<usize>,
) -> Range<usize> {
    let mut read = chunks.clone();
    if chunks.is_empty() {
        return read;
    }
    let (first, last) =
        (line_chunks.lines(chunks.start).start, line_chunks.lines(chunks.end - 1).end - 1);
    for call in calls {
        read.start = read.start.min(line_chunks.chunk_at(call.function.first_line(first)));
        if let Some(last) = call.function.reach(last).checked_sub(1) {
            read.end = read.end.max(line_chunks.chunk_at(last) + 1);
        }
    }
    read
}
