//! [`OpenColumn`]: a column of chunks whose rows are being returned.
//!
//! ```text
//!   chunk read ──▶ arguments ──▶ states        if the frames of a chunk's rows are complete
//!             └──▶ waiting  ───────────────────────────────▶ its rows, with the values of all functions
//! ```

use std::collections::VecDeque;
use std::ops::Range;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::SchemaRef;
use datafusion::common::internal_err;
use datafusion::error::Result;

use super::call::Call;
use super::function::Function;
use super::grid_window::GridWindow;
use super::window_state::{ColumnShape, WindowState};
use crate::exec::chunks::OpenChunk;
use crate::grid::{AxisSelection, ChunkTask};

/// The chunks of a column: those to read, and those whose rows to return.
#[derive(Debug, Clone)]
pub(super) struct ColumnRange {
    pub(super) column: u64,
    pub(super) read: Range<usize>,
    pub(super) returned: Range<usize>,
}

/// The state of a column of chunks.
pub(super) struct OpenColumn {
    /// The chunks that are left.
    left: ColumnRange,
    shape: ColumnShape,
    /// One per function with an argument.
    states: Vec<Option<Box<dyn WindowState>>>,
    /// Chunks that are read, and whose rows are not returned yet.
    waiting: VecDeque<OpenChunk>,
}

impl OpenColumn {
    /// Opens a column, of which `first` is the first chunk to read.
    pub(super) fn new(window: &GridWindow, range: ColumnRange, first: &ChunkTask) -> Self {
        let counts = |axes: &[AxisSelection]| -> usize {
            axes.iter().map(|axis| axis.count() as usize).product()
        };
        let shape = ColumnShape {
            outer: counts(&first.selection[..window.axis]),
            width: counts(&first.selection[window.axis + 1..]),
        };
        let line = window.chunks.lines(range.read.start).start;
        let state = |call: &Call| call.function.running(call.field.data_type(), shape, line);
        Self {
            left: range,
            shape,
            states: window.calls.iter().map(state).collect(),
            waiting: VecDeque::new(),
        }
    }

    /// Whether all rows are returned.
    pub(super) fn is_done(&self) -> bool {
        self.left.returned.is_empty()
    }

    /// Returns the chunk to read next; `None` if all are read.
    pub(super) fn next_to_read(&self) -> Option<usize> {
        self.left.read.clone().next()
    }

    /// Returns the chunk whose rows are returned next.
    pub(super) fn next_to_return(&self) -> usize {
        self.left.returned.start
    }

    /// Whether all chunks are read.
    pub(super) fn is_read(&self) -> bool {
        self.left.read.is_empty()
    }

    /// Adds the next chunk, with the arguments of all functions that have one. Returns the chunk if it has no rows to return.
    pub(super) fn push(
        &mut self,
        window: &GridWindow,
        open: OpenChunk,
        arguments: &[Option<ArrayRef>],
    ) -> Result<Option<OpenChunk>> {
        let Some(chunk) = self.left.read.next() else {
            return internal_err!("a column has more chunks than the plan");
        };
        let lines = window.chunks.lines(chunk);
        for (state, argument) in self.states.iter_mut().zip(arguments) {
            if let (Some(state), Some(argument)) = (state, argument) {
                state.push(argument, lines.clone())?;
            }
        }
        if !self.left.returned.contains(&chunk) {
            return Ok(Some(open));
        }
        self.waiting.push_back(open);
        Ok(None)
    }

    /// Returns the next chunk, and the values of all functions in its rows. `None` if frames of its rows are not complete.
    pub(super) fn next_chunk(
        &mut self,
        window: &GridWindow,
    ) -> Result<Option<(OpenChunk, Vec<ArrayRef>)>> {
        let lines = window.chunks.lines(self.left.returned.start);
        let last = lines.end - 1;
        let reach = window.calls.iter().map(|call| call.function.reach(last)).max().unwrap_or(0);
        let read = window.chunks.lines(self.left.read.start.max(1) - 1).end;
        if self.waiting.is_empty() || !self.is_read() && read < reach {
            return Ok(None);
        }
        let mut values = Vec::with_capacity(self.states.len());
        for (state, call) in self.states.iter_mut().zip(&window.calls) {
            values.push(match (state, &call.function) {
                (Some(state), _) => {
                    let values = state.values(lines.clone())?;
                    state.forget(lines.end);
                    values
                }
                (None, Function::OfAxis(values)) => {
                    repeated(&values.slice(lines.start, lines.len()), self.shape)?
                }
                (None, _) => return internal_err!("a function of a window has no state"),
            });
        }
        self.left.returned.start += 1;
        Ok(self.waiting.pop_front().map(|open| (open, values)))
    }

    /// Returns the bytes that the states take.
    pub(super) fn size(&self) -> usize {
        self.states.iter().flatten().map(|state| state.size()).sum()
    }
}

/// Repeats the values of lines for all rows of a chunk.
fn repeated(values: &ArrayRef, shape: ColumnShape) -> Result<ArrayRef> {
    let line = |line: u32| std::iter::repeat_n(line, shape.width);
    let block = || (0..values.len() as u32).flat_map(line);
    let rows: Vec<u32> = (0..shape.outer).flat_map(|_| block()).collect();
    Ok(take(values, &UInt32Array::from(rows), None)?)
}

/// Evaluates the arguments of all functions in a batch of all rows of a chunk.
pub(super) fn arguments(
    window: &GridWindow,
    schema: &SchemaRef,
    columns: Vec<ArrayRef>,
    rows: usize,
) -> Result<Vec<Option<ArrayRef>>> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let batch = RecordBatch::try_new_with_options(SchemaRef::clone(schema), columns, &options)?;
    let evaluate = |call: &Call| {
        let Some(argument) = &call.argument else { return Ok(None) };
        argument.evaluate(&batch)?.into_array(rows).map(Some)
    };
    window.calls.iter().map(evaluate).collect()
}
