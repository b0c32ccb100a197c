//! Reads the cells of a variable that repeats along some axes.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, UInt64Array, new_empty_array};
use arrow::compute::{concat, take};
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use futures::TryStreamExt;

use super::plane::offsets;
use crate::array::{ColumnSource, GridArray, VariableCells};
use crate::exec::GridScanExec;
use crate::exec::waiting::wait;
use crate::grid::{AxisSelection, ChunkTask};
use crate::plan::{ScanPlan, ScanRequest};

/// Returns the cells of a variable along its own axes, row-major. Reads them, unless the array has kept them.
///
/// # Errors
/// If a chunk cannot be read.
pub(super) async fn read_cells(
    array: &Arc<GridArray>,
    value: usize,
    context: Arc<TaskContext>,
) -> Result<ArrayRef> {
    if let Some(known) = array.known_cells(value) {
        return Ok(known);
    }
    let axes = array.axes_of(value);
    let mut request = ScanRequest::all(array.grid());
    for (axis, &len) in array.grid().shape().iter().enumerate() {
        if !axes.contains(&axis) {
            request.selection.restrict(axis, &AxisSelection::from_range(len, 0..1));
        }
    }
    let plan = Arc::new(ScanPlan::new(array.grid().clone(), request)?);
    let source = ColumnSource::Value(value);
    let Some(column) = array.columns().iter().position(|it| *it == source) else {
        return internal_err!("a variable without a column");
    };
    let scan = GridScanExec::try_new(Arc::clone(array), Arc::clone(&plan), vec![column])?;
    let batches: Vec<_> = scan.execute(0, context)?.try_collect().await?;
    let parts: Vec<&dyn Array> = batches.iter().map(|batch| batch.column(0).as_ref()).collect();
    let cells = match parts.as_slice() {
        [] => new_empty_array(array.schema().field(column).data_type()),
        parts => concat(parts)?,
    };
    let expected: u64 = axes.iter().map(|axis| array.grid().shape()[*axis]).product();
    if cells.len() as u64 != expected {
        // Another axis has no index at which cells could be read.
        return internal_err!("a coordinate of an array without cells");
    }
    let tasks: Vec<ChunkTask> = plan.tasks(0).map(|task| plan.task(task)).collect();
    let cells = row_major(array, &axes, &tasks, cells)?;
    let mut objects = vec![];
    if array.objects().are_rewritten() {
        let stored = array.locate(&tasks, &[value]).await?;
        let payloads = stored.iter().flatten().flat_map(|chunk| chunk.payloads());
        objects.extend(payloads.map(|it| (it.at.member, Arc::clone(&it.at.object))));
    }
    array.keep_cells(VariableCells { value, cells: Arc::clone(&cells), objects });
    Ok(cells)
}

/// As [`read_cells`], for rules, which have no session: reads under no memory limit, and at most the cells of
/// [`plane_axes`](super::plane_axes).
///
/// # Errors
/// As there.
pub(in crate::exec) fn known_cells(array: &Arc<GridArray>, value: usize) -> Result<ArrayRef> {
    match array.known_cells(value) {
        Some(known) => Ok(known),
        None => wait(read_cells(array, value, Arc::new(TaskContext::default()))),
    }
}

/// Puts cells, which come chunk by chunk, in the order of the axes `axes`.
fn row_major(
    array: &GridArray,
    axes: &[usize],
    tasks: &[ChunkTask],
    cells: ArrayRef,
) -> Result<ArrayRef> {
    let grid = array.grid();
    // Chunks that are cut along the first axis alone follow one another.
    if axes.iter().skip(1).all(|axis| grid.chunks_per_axis()[*axis] == 1) {
        return Ok(cells);
    }
    let strides = strides(axes.iter().map(|axis| grid.shape()[*axis]));
    let mut places = vec![0_u64; cells.len()];
    let mut row = 0;
    for task in tasks {
        let indices = axes
            .iter()
            .map(|&axis| grid.axis_range(axis, task.coordinates[axis]).collect::<Vec<u64>>());
        for place in offsets(indices.zip(strides.iter().copied())) {
            match places.get_mut(place as usize) {
                Some(of_place) => *of_place = row,
                None => return internal_err!("a cell beyond its axes"),
            }
            row += 1;
        }
    }
    Ok(take(&cells, &UInt64Array::from(places), None)?)
}

/// Returns the distance between neighbours on each axis, row-major.
pub(super) fn strides(lens: impl DoubleEndedIterator<Item = u64>) -> Vec<u64> {
    let mut cells = 1;
    let mut strides: Vec<u64> = lens
        .rev()
        .map(|len| {
            let stride = cells;
            cells *= len;
            stride
        })
        .collect();
    strides.reverse();
    strides
}
