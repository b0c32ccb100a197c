//! Reads the cells of a variable that repeats along some axes.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, UInt64Array, new_empty_array};
use arrow::compute::{concat, take};
use datafusion::common::{internal_err, plan_err};
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use futures::TryStreamExt;

use super::coordinate::Coordinate;
use super::plane::offsets;
use crate::array::{ColumnSource, GridArray, VariableCells};
use crate::exec::GridScanExec;
use crate::exec::waiting::wait;
use crate::grid::{AxisSelection, ChunkTask, Selection};
use crate::plan::{ScanPlan, ScanRequest};

/// Returns the cells of a variable along its own axes, row-major. Reads them, unless the array has kept them. If cells repeat
/// within files, reads those of each file that `selection` touches.
///
/// # Errors
/// If a chunk cannot be read, or if files have other cells. Then the variable has all axes from now on.
pub(super) async fn read_cells(
    array: &Arc<GridArray>,
    value: usize,
    selection: &Selection,
    context: Arc<TaskContext>,
) -> Result<ArrayRef> {
    let coordinate = Coordinate::new(array, value);
    let known = array.known_cells(value);
    let mut files = if known.is_some() { array.known_files(value) } else { BTreeSet::new() };
    let unread = match &coordinate.in_files {
        Some(in_files) => match Coordinate::unknown_files(in_files, &files, selection) {
            touched if touched.is_empty() && known.is_none() => in_files.starts[..1].to_vec(),
            touched => touched,
        },
        None => vec![],
    };
    if let Some(known) = known.as_ref().filter(|_| unread.is_empty()) {
        return Ok(Arc::clone(known));
    }
    files.extend(unread.iter().copied());
    let reading = Reading::try_new(array, coordinate, &unread)?;
    let cells = reading.read(known, context).await?;
    let mut objects = vec![];
    if array.objects().are_rewritten() {
        let stored = array.locate(&reading.tasks(), &[value]).await?;
        let payloads = stored.iter().flatten().flat_map(|chunk| chunk.payloads());
        objects.extend(payloads.map(|it| (it.at.member, Arc::clone(&it.at.object))));
    }
    array.keep_cells(VariableCells { value, cells: Arc::clone(&cells), objects, files });
    Ok(cells)
}

/// A scan that reads the cells of a coordinate, once per file.
struct Reading<'a> {
    array: &'a Arc<GridArray>,
    coordinate: Coordinate,
    plan: Arc<ScanPlan>,
}

impl<'a> Reading<'a> {
    /// Prepares to read the files that begin at `files`, if there are several.
    fn try_new(array: &'a Arc<GridArray>, coordinate: Coordinate, files: &[u64]) -> Result<Self> {
        let of_files = coordinate.in_files.as_ref().map(|in_files| in_files.axis);
        let mut request = ScanRequest::all(array.grid());
        for (axis, &len) in array.grid().shape().iter().enumerate() {
            if coordinate.axes.contains(&axis) {
                continue;
            }
            let first = match of_files == Some(axis) {
                true => AxisSelection::from_ranges(len, files.iter().map(|at| *at..*at + 1)),
                false => AxisSelection::from_range(len, 0..1),
            };
            request.selection.restrict(axis, &first);
        }
        let plan = Arc::new(ScanPlan::new(array.grid().clone(), request)?);
        Ok(Self { array, coordinate, plan })
    }

    /// Returns the chunks, in the order in which they are read.
    fn tasks(&self) -> Vec<ChunkTask> {
        self.plan.tasks(0).map(|task| self.plan.task(task)).collect()
    }

    /// Returns the cells, row-major. All files must have `known`, or the cells of the first one.
    async fn read(&self, known: Option<ArrayRef>, context: Arc<TaskContext>) -> Result<ArrayRef> {
        let Coordinate { value, axes, in_files } = &self.coordinate;
        let source = ColumnSource::Value(*value);
        let Some(column) = self.array.columns().iter().position(|it| *it == source) else {
            return internal_err!("a variable without a column");
        };
        let field = self.array.schema().field(column);
        let len = self.coordinate.len(self.array) as usize;
        if len == 0 {
            return Ok(new_empty_array(field.data_type()));
        }
        let mut tasks = self.tasks();
        if let (Some(in_files), Some(first)) = (in_files, tasks.first()) {
            // Files come one after the other, and each has the same chunks.
            let first = first.coordinates[in_files.axis];
            tasks.retain(|task| task.coordinates[in_files.axis] == first);
        }
        let scan =
            GridScanExec::try_new(Arc::clone(self.array), Arc::clone(&self.plan), vec![column])?;
        let mut batches = scan.execute(0, context)?;
        let (mut cells, mut parts, mut missing) = (known, vec![], len);
        while let Some(batch) = batches.try_next().await? {
            let mut rest = Arc::clone(batch.column(0));
            while !rest.is_empty() {
                let count = rest.len().min(missing);
                parts.push(rest.slice(0, count));
                rest = rest.slice(count, rest.len() - count);
                missing -= count;
                if missing > 0 {
                    continue;
                }
                let whole = concat(&parts.iter().map(AsRef::as_ref).collect::<Vec<_>>())?;
                let of_file = row_major(self.array, axes, &tasks, whole)?;
                (parts, missing) = (vec![], len);
                if cells.get_or_insert_with(|| Arc::clone(&of_file)).as_ref() != of_file.as_ref() {
                    self.array.set_differs_in_files(*value);
                    return plan_err!("files have other cells of \"{}\"", field.name());
                }
            }
        }
        match cells {
            Some(cells) if missing == len => Ok(cells),
            // Another axis has no index at which cells could be read.
            _ => internal_err!("a coordinate of an array without cells"),
        }
    }
}

/// As [`read_cells`], for rules, which have no session: reads under no memory limit, and at most the cells of
/// [`plane_axes`](super::plane_axes).
///
/// # Errors
/// As there.
pub(in crate::exec) fn known_cells(
    array: &Arc<GridArray>,
    value: usize,
    selection: &Selection,
) -> Result<ArrayRef> {
    if Coordinate::new(array, value).cells_to_read(array, selection) == 0
        && let Some(known) = array.known_cells(value)
    {
        return Ok(known);
    }
    wait(read_cells(array, value, selection, Arc::new(TaskContext::default())))
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
