//! [`most_bytes`]: the memory that a partition of the plan takes, at most. It is known at planning.
//!
//! ```text
//!   tiles      ▣ ▣           chunks whose rows wait for later cells
//!   states     ▤▤▤▤▤▤        lines of arguments that frames may still hold, and aggregates of the longest frame
//!   columns    ▥             arguments, or values of functions, in all rows of one chunk
//! ```
//!
//! Columns of labels do not count, because they are made for a block of rows at a time.

use datafusion::physical_expr::expressions::Column as PhysicalColumn;

use super::call::Call;
use super::function::{Function, width};
use super::grid_window::GridWindow;
use crate::exec::blocks::values_of;
use crate::grid::AxisChunks;

/// Returns the most bytes that a column of chunks takes at a time.
pub(super) fn most_bytes(window: &GridWindow) -> u64 {
    let (chunks, calls) = (&window.chunks, window.calls.as_slice());
    let rows_per_line = rows_per_line(window);
    let tile = cells_per_chunk(window).saturating_mul(bytes_per_cell(window));
    let longest = (0..chunks.len()).map(|chunk| chunks.lines(chunk).len()).max().unwrap_or(0);
    let columns = rows_per_line.saturating_mul(longest as u64);
    let columns = columns.saturating_mul(bytes_per_row(window));
    let suffixes: Vec<u64> = calls.iter().map(|call| call.function.suffixes() as u64).collect();
    let mut most = 0;
    for chunk in 0..chunks.len() {
        let lines = chunks.lines(chunk);
        let reach = calls.iter().map(|call| call.function.reach(lines.end - 1)).max().unwrap_or(0);
        // Cells come by whole chunks, and rows wait until those behind them are there.
        let last_chunk = chunks.chunk_at(reach.max(lines.end) - 1);
        let end = chunks.lines(last_chunk).end;
        let of_call = |(call, suffixes): (&Call, &u64)| {
            let kept = end.saturating_sub(kept_from(window, call, lines.start)) as u64;
            let cells = kept.saturating_add(kept.min(*suffixes));
            cells.saturating_mul(call.function.bytes_per_cell(call.field.data_type()) as u64)
        };
        let states = calls.iter().zip(&suffixes).map(of_call).fold(0, u64::saturating_add);
        let states = states.saturating_mul(rows_per_line);
        let waiting = (last_chunk + 1 - chunk) as u64;
        // Vectors of states have up to a quarter more room than they need.
        let states = states.saturating_add(states / 4);
        most = most.max(states.saturating_add(waiting.saturating_mul(tile)));
    }
    most.saturating_add(columns)
}

/// Returns the first line that the state of a function keeps when the lines before `line` have their values.
fn kept_from(window: &GridWindow, call: &Call, line: usize) -> usize {
    let from = call.function.kept_from(line);
    match call.function {
        // Lines that are picked are kept by whole chunks.
        Function::Pick(_) if from != usize::MAX => {
            window.chunks.lines(window.chunks.chunk_at(from)).start
        }
        _ => from,
    }
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
