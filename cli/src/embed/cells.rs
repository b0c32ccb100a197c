//! The cells of a query that shows a box of an array: in one piece per variable, without rows.
//!
//! ```text
//!   SELECT time, lat, t2m FROM … WHERE lat > 30      ProjectionExec of columns
//!                                                     └ GridScanExec: all cells of a box
//!   threads   ├── part 0 ──┤├── part 1 ──┤            parts of the first axis, each into its own part of the memory
//! ```

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use datafusion::arrow::array::{Array, ArrayRef, ArrowPrimitiveType, PrimitiveArray};
use datafusion::arrow::buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use datafusion::arrow::compute::{partition, sort};
use datafusion::arrow::datatypes::{
    DataType, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType,
    DurationSecondType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimeUnit, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use gridfusion::GridScanExec;
use gridfusion::array::{ColumnSource, GridArray};
use gridfusion::core::read::ArrayReader;
use gridfusion::grid::{AxisSelection, Selection};
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

use crate::reads::Reads;

/// The cells of a box of an array, row-major.
#[derive(Debug)]
pub struct GridCells {
    /// Per axis the column of the query that shows it, and the selected labels.
    pub labels: Vec<(usize, ArrayRef)>,
    /// The columns that show variables, with their cells.
    pub variables: Vec<(usize, ArrayRef)>,
}

/// A plan that shows each cell of a box once.
#[derive(Debug)]
pub(super) struct GridBox {
    array: Arc<GridArray>,
    selection: Selection,
    /// What each column of the query shows.
    columns: Vec<ColumnSource>,
}

/// What reading a box has counted so far.
#[derive(Debug, Default)]
pub(super) struct ReadCounts {
    /// The chunks of the array, and those of the box.
    all: u64,
    of_box: u64,
    variables: u64,
    /// The chunks of variables that were read, and their stored bytes.
    chunks: AtomicU64,
    bytes: AtomicU64,
}

impl ReadCounts {
    pub(super) fn of(it: &GridBox) -> Self {
        let grid = it.array.grid();
        let axes = it.selection.axes().iter().enumerate();
        let of_box = axes.map(|(axis, selected)| grid.chunks_of(axis, selected).count());
        let variables = it.columns.iter().filter(|it| it.value().is_some()).count() as u64;
        Self { all: grid.chunks(), of_box: of_box.product(), variables, ..Self::default() }
    }

    /// Returns the chunks that were read, all of them, and the bytes.
    pub(super) fn progress(&self) -> (u64, u64, u64) {
        let read = self.chunks.load(Ordering::Relaxed);
        (read, self.of_box * self.variables, self.bytes.load(Ordering::Relaxed))
    }

    /// Returns the counts as those of a scan, where a chunk has all variables.
    pub(super) fn reads(&self) -> Reads {
        let read = if self.variables > 0 { self.of_box } else { 0 };
        let pruned = self.all - read;
        let bytes = self.bytes.load(Ordering::Relaxed);
        Reads { chunks: self.all, pruned, pruned_by_plan: pruned, answered: 0, read, bytes }
    }
}

impl GridBox {
    /// Returns the box that a plan shows; `None` unless it does nothing else, in any order of the rows.
    pub(super) fn from_plan(plan: &Arc<dyn ExecutionPlan>) -> Option<Self> {
        if let Some(scan) = plan.downcast_ref::<GridScanExec>() {
            let selection = scan.whole_box()?.clone();
            return Some(Self {
                array: Arc::clone(scan.array()),
                selection,
                columns: scan.columns(),
            });
        }
        if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
            let below = Self::from_plan(projection.input())?;
            let shown = projection.expr().iter().map(|it| {
                let column = it.expr.downcast_ref::<Column>()?;
                below.columns.get(column.index()).copied()
            });
            let columns = shown.collect::<Option<_>>()?;
            return Some(Self { columns, ..below });
        }
        let only_moves = plan.is::<CoalescePartitionsExec>()
            || plan.is::<SortExec>()
            || plan.is::<SortPreservingMergeExec>();
        match plan.children().as_slice() {
            [input] if only_moves && plan.fetch().is_none() => Self::from_plan(input),
            _ => None,
        }
    }

    /// The number of cells.
    pub(super) fn cells(&self) -> usize {
        usize::try_from(self.selection.cells()).unwrap_or(usize::MAX)
    }

    /// Whether the columns `dims` of the query tell the place of each cell, and all others are numbers or times.
    ///
    /// # Errors
    /// If labels cannot be made.
    pub(super) fn is_dense(&self, dims: &[usize]) -> Result<bool> {
        let mut shown = vec![0; self.selection.axes().len()];
        for (at, column) in self.columns.iter().enumerate() {
            let is_known = match (column, column.axis().and_then(|axis| shown.get_mut(axis))) {
                (ColumnSource::Label(_) | ColumnSource::Index(_), Some(shown)) => {
                    *shown += 1;
                    dims.contains(&at)
                }
                (ColumnSource::Value(value), _) => {
                    !dims.contains(&at) && is_number(&self.array.value(*value).data_type())
                }
                _ => false,
            };
            if !is_known {
                return Ok(false);
            }
        }
        let counts = self.selection.axes().iter().map(AxisSelection::count);
        if !shown.iter().zip(counts).all(|(shown, len)| *shown == 1 || *shown == 0 && len == 1) {
            return Ok(false);
        }
        for (_, _, labels) in self.labels()? {
            // Labels that repeat or are NULL tell no place.
            let runs = partition(&[sort(&labels, None)?])?.len();
            if labels.null_count() > 0 || runs != labels.len() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the labels that the query shows, with their axis and column, in the order of the axes.
    fn labels(&self) -> Result<Vec<(usize, usize, ArrayRef)>> {
        let mut shown = vec![];
        for (at, column) in self.columns.iter().enumerate() {
            if let (Some(axis), Some(labels)) = (column.axis(), self.array.labels_of(*column)) {
                shown.push((axis, at, labels.select(&self.selection.axes()[axis], 0)?));
            }
        }
        shown.sort_by_key(|(axis, ..)| *axis);
        Ok(shown)
    }

    /// Reads the cells. They count towards the memory limit meanwhile.
    pub(super) async fn read(
        self,
        threads: usize,
        keeps_nulls: bool,
        pool: &Arc<dyn MemoryPool>,
        counts: Arc<ReadCounts>,
    ) -> Result<GridCells> {
        let labels = self.labels()?;
        let columns = self.columns.iter().enumerate();
        let variables = columns.filter_map(|(at, column)| Some((at, column.value()?))).collect();
        let reservation = MemoryConsumer::new("result").register(pool);
        let stop = Stop(Arc::new(AtomicBool::new(false)));
        let job = Job {
            array: self.array,
            selection: self.selection,
            threads,
            keeps_nulls,
            counts,
            stop: Arc::clone(&stop.0),
            handle: Handle::current(),
        };
        let read = move || job.read_all(variables, &reservation);
        let read = spawn_blocking(read).await.map_err(|it| DataFusionError::External(it.into()))?;
        Ok(GridCells {
            labels: labels.into_iter().map(|(_, at, labels)| (at, labels)).collect(),
            variables: read?,
        })
    }
}

/// Ends the threads of a query that is dropped.
struct Stop(Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Reads the cells of variables, on threads of its own.
struct Job {
    array: Arc<GridArray>,
    selection: Selection,
    threads: usize,
    /// Whether NULL stays NULL in floats too.
    keeps_nulls: bool,
    counts: Arc<ReadCounts>,
    stop: Arc<AtomicBool>,
    handle: Handle,
}

/// Calls a function with the Arrow type of numbers and times.
macro_rules! for_number {
    ($data_type:expr, $T:ident => $call:expr, $other:expr) => {{
        macro_rules! with {
            ($type:ty) => {{
                type $T = $type;
                $call
            }};
        }
        match $data_type {
            DataType::Int8 => with!(Int8Type),
            DataType::Int16 => with!(Int16Type),
            DataType::Int32 => with!(Int32Type),
            DataType::Int64 => with!(Int64Type),
            DataType::UInt8 => with!(UInt8Type),
            DataType::UInt16 => with!(UInt16Type),
            DataType::UInt32 => with!(UInt32Type),
            DataType::UInt64 => with!(UInt64Type),
            DataType::Float32 => with!(Float32Type),
            DataType::Float64 => with!(Float64Type),
            DataType::Timestamp(TimeUnit::Second, None) => with!(TimestampSecondType),
            DataType::Timestamp(TimeUnit::Millisecond, None) => with!(TimestampMillisecondType),
            DataType::Timestamp(TimeUnit::Microsecond, None) => with!(TimestampMicrosecondType),
            DataType::Timestamp(TimeUnit::Nanosecond, None) => with!(TimestampNanosecondType),
            DataType::Duration(TimeUnit::Second) => with!(DurationSecondType),
            DataType::Duration(TimeUnit::Millisecond) => with!(DurationMillisecondType),
            DataType::Duration(TimeUnit::Microsecond) => with!(DurationMicrosecondType),
            DataType::Duration(TimeUnit::Nanosecond) => with!(DurationNanosecondType),
            _ => $other,
        }
    }};
}

fn is_number(data_type: &DataType) -> bool {
    for_number!(data_type, T => T::DATA_TYPE == *data_type, false)
}

/// A value that stands for NULL in arrays of numpy: NaN. Others have none.
trait Missing: Copy {
    const MISSING: Option<Self> = None;
}

macro_rules! missing {
    ($($native:ty = $value:expr),*) => { $(impl Missing for $native { const MISSING: Option<Self> = $value; })* };
}

missing!(
    i8 = None,
    i16 = None,
    i32 = None,
    i64 = None,
    u8 = None,
    u16 = None,
    u32 = None,
    u64 = None,
    f32 = Some(f32::NAN),
    f64 = Some(f64::NAN)
);

impl Job {
    fn read_all(
        &self,
        variables: Vec<(usize, usize)>,
        reservation: &MemoryReservation,
    ) -> Result<Vec<(usize, ArrayRef)>> {
        let mut read = vec![];
        for (at, value) in variables {
            let data_type = self.array.value(value).data_type();
            let missing =
                || Err(DataFusionError::Internal(format!("cells of the type {data_type}")));
            let column =
                self.array.columns().iter().position(|it| *it == ColumnSource::Value(value));
            let Some(column) = column else { return missing() };
            let name = self.array.schema().field(column).name();
            let cells: ArrayRef = for_number!(data_type, T => Arc::new(self.read::<T>(name, reservation)?), return missing());
            read.push((at, cells));
        }
        Ok(read)
    }

    /// Reads a variable: each thread takes the next part until none is left.
    fn read<T: ArrowPrimitiveType<Native: Missing>>(
        &self,
        name: &str,
        reservation: &MemoryReservation,
    ) -> Result<PrimitiveArray<T>> {
        let cells = usize::try_from(self.selection.cells()).unwrap_or(usize::MAX);
        reservation.try_grow(cells.saturating_mul(size_of::<T::Native>()))?;
        let mut values = vec![T::Native::default(); cells];
        let (parts, cells_of) = self.parts();
        let mut marks: Vec<(usize, Vec<bool>)> = vec![];
        let mut rest = values.as_mut_slice();
        let mut jobs = vec![];
        let mut start = 0;
        for part in parts {
            let (own, others) = rest.split_at_mut(cells_of(&part));
            rest = others;
            jobs.push((start, part, own));
            start += jobs.last().map_or(0, |job| job.2.len());
        }
        let count = self.threads.min(jobs.len()).max(1);
        let jobs = Mutex::new(jobs);
        let next = || jobs.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let work = || -> Result<Vec<(usize, Vec<bool>)>> {
            let mut marks = vec![];
            while let Some((start, part, own)) = next() {
                if self.stop.load(Ordering::Relaxed) {
                    break;
                }
                let reader = ArrayReader::of_selection(Arc::clone(&self.array), part);
                let mut valid = vec![];
                let read = reader.cells_into::<T>(name, own, &mut valid);
                let (chunks, bytes) = self.handle.block_on(read)?;
                self.counts.chunks.fetch_add(chunks, Ordering::Relaxed);
                self.counts.bytes.fetch_add(bytes, Ordering::Relaxed);
                match T::Native::MISSING {
                    Some(missing) if !valid.is_empty() && !self.keeps_nulls => {
                        let marked = own.iter_mut().zip(&valid).filter(|(_, valid)| !**valid);
                        marked.for_each(|(value, _)| *value = missing);
                    }
                    _ if !valid.is_empty() => marks.push((start, valid)),
                    _ => {}
                }
            }
            Ok(marks)
        };
        let outcomes: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (1..count).map(|_| scope.spawn(work)).collect();
            let own = work();
            let others = threads.into_iter().map(|thread| {
                let lost = |_| Err(DataFusionError::Internal("a thread ended early".to_owned()));
                thread.join().unwrap_or_else(lost)
            });
            std::iter::once(own).chain(others).collect()
        });
        for outcome in outcomes {
            marks.extend(outcome?);
        }
        let nulls = (!marks.is_empty()).then(|| {
            let mut valid = vec![true; cells];
            for (start, part) in marks {
                valid[start..start + part.len()].copy_from_slice(&part);
            }
            NullBuffer::new(BooleanBuffer::from(valid))
        });
        Ok(PrimitiveArray::new(ScalarBuffer::from(values), nulls))
    }

    /// Divides the box along the first axis with several selected indices, at the borders of chunks. Also returns how many cells a part has.
    fn parts(&self) -> (Vec<Selection>, impl Fn(&Selection) -> usize + use<>) {
        let cells_of = |part: &Selection| part.cells() as usize;
        let axes = self.selection.axes();
        let grid = self.array.grid();
        let Some(axis) = axes.iter().position(|it| it.count() > 1) else {
            return (vec![self.selection.clone()], cells_of);
        };
        // Parts of many chunks fetch many at once; as few as these keep all threads busy to the end.
        let chunks = grid.chunks_of(axis, &axes[axis]);
        let step = chunks.count().div_ceil(self.threads as u64 * 4).max(1);
        let mut parts = vec![];
        let (mut start, mut taken) = (0, 0);
        for range in chunks.ranges() {
            for chunk in range.clone() {
                taken += 1;
                if taken == step {
                    let end = grid.axis_range(axis, chunk).end;
                    parts.push(start..end);
                    (start, taken) = (end, 0);
                }
            }
        }
        parts.push(start..grid.shape()[axis]);
        let parts = parts.into_iter().map(|range| {
            let mut part = self.selection.clone();
            part.restrict(axis, &AxisSelection::from_range(grid.shape()[axis], range));
            part
        });
        (parts.filter(|part| part.cells() > 0).collect(), cells_of)
    }
}
