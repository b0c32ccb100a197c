//! [`most_bytes`]: the memory that a partition of the plan takes, at most. It is known at planning.
//!
//! ```text
//!   tiles      ▣ ▣           chunks whose rows wait for later cells
//!   states     ▤▤▤▤▤▤        lines of arguments that frames may still hold, and aggregates of the longest frame
//!   columns    ▥             arguments, or values of functions, in all rows of one chunk
//! ```
//!
//! Columns of labels do not count, because they are made for a block of rows at a time. Nor do letters of texts, and the stored
//! bytes of chunks that are compressed: the budget is half of a limited pool.

use std::ops::Range;

use datafusion::physical_expr::expressions::Column as PhysicalColumn;

use super::call::Call;
use super::function::{Function, width};
use super::grid_window::GridWindow;
use super::parts::chunks_to_read;
use crate::exec::blocks::values_of;
use crate::grid::AxisChunks;

/// Returns the most bytes that a column of chunks takes at a time, of which a part may return only some chunks.
pub(super) fn most_bytes(window: &GridWindow, part: &Range<usize>) -> u64 {
    let rows_per_line = rows_per_line(window);
    let tile = cells_per_chunk(window).saturating_mul(bytes_per_cell(window));
    let read = chunks_to_read(&window.chunks, &window.calls, part);
    let longest = longest(window);
    let columns = rows_per_line.saturating_mul(longest).saturating_mul(bytes_per_row(window));
    // Vectors keep the room that they once needed, so the most of each function counts, not the most of all at a time.
    let states = window.calls.iter().map(|call| most_of_states(window, call, &read, part, longest));
    let states = states.fold(0, u64::saturating_add).saturating_mul(rows_per_line);
    // Each plan has a reader, which keeps what it has reserved.
    let plans = window.chunks.chunks_of_plans();
    let waiting = plans.map(|of_plan| most_waiting(window, part, &of_plan)).sum::<u64>();
    states.saturating_add(waiting.saturating_mul(tile)).saturating_add(columns)
}

/// Returns the most lines of any chunk.
fn longest(window: &GridWindow) -> u64 {
    let lines = (0..window.chunks.len()).map(|chunk| window.chunks.lines(chunk).len());
    lines.max().unwrap_or(0) as u64
}

/// Returns the last chunk whose cells must be there before the rows of `chunk` have their values.
fn last_needed(window: &GridWindow, chunk: usize) -> usize {
    let end = window.chunks.lines(chunk).end;
    let reach = window.calls.iter().map(|call| call.function.reach(end - 1)).max().unwrap_or(0);
    window.chunks.chunk_at(reach.max(end) - 1)
}

/// Returns the most chunks among those of a plan whose rows wait at a time for cells behind them.
fn most_waiting(window: &GridWindow, part: &Range<usize>, of_plan: &Range<usize>) -> u64 {
    let waiting = part.clone().map(|chunk| {
        let end = of_plan.end.min(last_needed(window, chunk) + 1);
        end.saturating_sub(of_plan.start.max(chunk)) as u64
    });
    // A chunk whose cells are added to the states is there even if its rows do not wait.
    waiting.max().unwrap_or(0).max(1)
}

/// Returns the most bytes of the state of a function, per row of a line.
fn most_of_states(
    window: &GridWindow,
    call: &Call,
    read: &Range<usize>,
    part: &Range<usize>,
    longest: u64,
) -> u64 {
    let function = &call.function;
    let (chunks, suffixes) = (&window.chunks, function.suffixes() as u64);
    let mut most = 0;
    for chunk in part.clone() {
        let (first, end) =
            (chunks.lines(chunk).start, chunks.lines(last_needed(window, chunk)).end);
        // Nothing is forgotten before the first rows are returned.
        let is_first = chunk == part.start;
        let from =
            if is_first { chunks.lines(read.start).start } else { function.kept_from(first) };
        let kept = match function {
            Function::OfAxis(_) => 0,
            // Lines that are picked are kept by whole chunks. One line that all pick keeps its chunk.
            Function::Pick(_) => {
                let lone = if from == usize::MAX { longest } else { 0 };
                let from = chunks.lines(chunks.chunk_at(from.min(first))).start;
                lone + (end - from) as u64
            }
            Function::Total(..) => end.saturating_sub(from) as u64,
        };
        most = most.max(kept.saturating_add(kept.min(suffixes)));
    }
    // Vectors have up to a quarter more room than they need, and a running aggregate is one line more.
    let lines = most.saturating_add(most / 4).saturating_add(u64::from(most > 0));
    lines.saturating_mul(function.bytes_per_cell(call.field.data_type()) as u64)
}

/// Returns the selected rows per line of the largest column of chunks.
fn rows_per_line(window: &GridWindow) -> u64 {
    let selected = window.scan.plan().selection().axes();
    product(window, |axis, chunks| match axis == window.axis {
        true => 1,
        false => chunks.edge().min(selected[axis].count()),
    })
}

/// Returns the cells of the largest chunk, selected or not.
fn cells_per_chunk(window: &GridWindow) -> u64 {
    let shape = window.scan.array().grid().shape();
    product(window, |axis, chunks| chunks.edge().min(shape[axis]))
}

fn product(window: &GridWindow, of_axis: impl Fn(usize, &AxisChunks) -> u64) -> u64 {
    let axes = window.scan.array().grid().axis_chunks().iter().enumerate();
    axes.map(|(axis, chunks)| of_axis(axis, chunks)).fold(1, u64::saturating_mul)
}

/// Returns the bytes of a cell of all variables.
fn bytes_per_cell(window: &GridWindow) -> u64 {
    let array = window.scan.array();
    let values = values_of(&window.scan.columns());
    values.iter().map(|&value| array.value(value).cell_bytes()).sum()
}

/// Returns the bytes of a row of the columns that are made for a whole chunk: first the arguments, then the values of functions.
fn bytes_per_row(window: &GridWindow) -> u64 {
    let GridWindow { scan, calls, argument_columns, schema, .. } = window;
    let columns = argument_columns.iter();
    let columns: usize = columns.map(|&it| width(schema.field(it).data_type())).sum();
    let of_scan = scan.schema_ref().project(argument_columns);
    let computed = |call: &Call| {
        let argument = call.argument.as_ref().filter(|it| !it.is::<PhysicalColumn>())?;
        Some(
            of_scan
                .as_ref()
                .ok()
                .and_then(|it| argument.data_type(it).ok())
                .map_or(16, |it| width(&it)),
        )
    };
    let arguments = columns + calls.iter().filter_map(computed).sum::<usize>();
    let values: usize = calls.iter().map(|call| width(call.field.data_type())).sum();
    // One function after the other adds its arguments, or makes its values from aggregates.
    let cells = calls.iter().map(|call| call.function.bytes_per_cell(call.field.data_type()));
    (arguments.max(values) + cells.max().unwrap_or(0)) as u64
}
