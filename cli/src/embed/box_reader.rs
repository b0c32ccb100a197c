//! Reading the cells of a box of an array on several threads, each into its own part of the memory.
//!
//! ```text
//!   first axis   ├── part 0 ──┤├── part 1 ──┤├── part 2 ──┤      at borders of chunks
//!   threads      0             1             0                   each takes the next part until none is left
//! ```

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Builder};

use bytemuck::Pod;
use datafusion::arrow::array::{ArrayRef, ArrowPrimitiveType, PrimitiveArray};
use datafusion::arrow::buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use datafusion::arrow::datatypes::{
    DataType, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType,
    DurationSecondType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimeUnit, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use datafusion::common::internal_datafusion_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryReservation;
use gridfusion::array::{ColumnSource, GridArray};
use gridfusion::core::read::ArrayReader;
use gridfusion::grid::{AxisSelection, Selection};
use tokio::runtime::Handle;

use super::cells::ReadCounts;
use super::zeros::Zeros;

/// The stack of a thread. Long expressions are deep, and code without optimization needs more.
const STACK: usize = if cfg!(debug_assertions) { 32 << 20 } else { 8 << 20 };

/// Ends the threads of a query that is dropped.
pub(super) struct Stop(pub(super) Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Reads the cells of variables, on threads of its own.
pub(super) struct BoxReader {
    pub(super) array: Arc<GridArray>,
    pub(super) selection: Selection,
    pub(super) threads: usize,
    /// Whether NULL stays NULL in floats too.
    pub(super) keeps_nulls: bool,
    pub(super) counts: Arc<ReadCounts>,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) handle: Handle,
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

/// Whether cells are of a type that a reader places.
pub(super) fn is_number(data_type: &DataType) -> bool {
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

fn other_type<T>(name: &str) -> Result<T> {
    Err(internal_datafusion_err!("the cells of \"{name}\" are neither numbers nor times"))
}

impl BoxReader {
    /// The number of cells.
    pub(super) fn cells(&self) -> usize {
        usize::try_from(self.selection.cells()).unwrap_or(usize::MAX)
    }

    /// Reads variables, each with the column of the query that shows it.
    pub(super) fn read_all(
        &self,
        variables: Vec<(usize, usize)>,
        reservation: &MemoryReservation,
    ) -> Result<Vec<(usize, ArrayRef)>> {
        let mut read = vec![];
        for (at, value) in variables {
            let name = self.name(value)?;
            let cells: ArrayRef = for_number!(self.array.value(value).data_type(), T => Arc::new(self.read::<T>(name, reservation)?), return other_type(name));
            read.push((at, cells));
        }
        Ok(read)
    }

    /// Reads a variable of a part of the box. NULL stays NULL.
    pub(super) fn read_part_of(
        &self,
        value: usize,
        part: &Selection,
        reservation: &MemoryReservation,
    ) -> Result<ArrayRef> {
        let (name, cells) = (self.name(value)?, part.cells() as usize);
        for_number!(self.array.value(value).data_type(), T => {
            let bytes = cells.saturating_mul(size_of::<<T as ArrowPrimitiveType>::Native>());
            let mut values = Zeros::try_new(bytes, name, reservation)?;
            let valid = self.read_part::<T>(name, part, values.numbers_mut()?)?;
            let nulls = (!valid.is_empty()).then(|| NullBuffer::from(valid));
            let values = ScalarBuffer::new(values.into_buffer(), 0, cells);
            Ok(Arc::new(PrimitiveArray::<T>::new(values, nulls)))
        }, other_type(name))
    }

    fn name(&self, value: usize) -> Result<&str> {
        let mut columns = self.array.columns().iter();
        let column = columns.position(|it| *it == ColumnSource::Value(value));
        let column = column.ok_or_else(|| internal_datafusion_err!("no variable {value}"))?;
        Ok(self.array.schema().field(column).name())
    }

    /// Reads a variable: each thread takes the next part until none is left.
    fn read<T: ArrowPrimitiveType<Native: Missing + Pod>>(
        &self,
        name: &str,
        reservation: &MemoryReservation,
    ) -> Result<PrimitiveArray<T>> {
        let cells = self.cells();
        let bytes = cells.saturating_mul(size_of::<T::Native>());
        let mut values = Zeros::try_new(bytes, name, reservation)?;
        let mut rest = values.numbers_mut::<T::Native>()?;
        let mut jobs = vec![];
        let mut start = 0;
        for part in self.parts() {
            let (own, others) = rest.split_at_mut(part.cells() as usize);
            rest = others;
            jobs.push((start, part, own));
            start += jobs.last().map_or(0, |job| job.2.len());
        }
        let marks = self.on_threads(jobs, |(start, part, own)| {
            let valid = self.read_part::<T>(name, &part, own)?;
            Ok(match T::Native::MISSING {
                Some(missing) if !valid.is_empty() && !self.keeps_nulls => {
                    let marked = own.iter_mut().zip(&valid).filter(|(_, valid)| !**valid);
                    marked.for_each(|(value, _)| *value = missing);
                    None
                }
                _ => (!valid.is_empty()).then_some((start, valid)),
            })
        })?;
        let mut all: Option<Vec<bool>> = None;
        for (start, part) in marks.into_iter().flatten() {
            let all = all.get_or_insert_with(|| vec![true; cells]);
            all[start..start + part.len()].copy_from_slice(&part);
        }
        let nulls = all.map(|valid| NullBuffer::new(BooleanBuffer::from(valid)));
        Ok(PrimitiveArray::new(ScalarBuffer::new(values.into_buffer(), 0, cells), nulls))
    }

    /// Reads a part of a variable to its place. If cells are NULL, returns a mark per cell, which is false for these.
    fn read_part<T: ArrowPrimitiveType>(
        &self,
        name: &str,
        part: &Selection,
        own: &mut [T::Native],
    ) -> Result<Vec<bool>> {
        let reader = ArrayReader::of_selection(Arc::clone(&self.array), part.clone());
        let mut valid = vec![];
        let read = reader.cells_into::<T>(name, own, &mut valid);
        let (chunks, bytes) = self.handle.block_on(read)?;
        self.counts.add(chunks, bytes);
        Ok(valid)
    }

    /// Calls a function with each job, on several threads. The results are in no order. After [`Stop`], some are missing.
    pub(super) fn on_threads<J: Send, R: Send>(
        &self,
        jobs: Vec<J>,
        run: impl Fn(J) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        let count = self.threads.min(jobs.len()).max(1);
        let jobs = Mutex::new(jobs);
        let next = || jobs.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let work = || -> Result<Vec<R>> {
            let mut results = vec![];
            while let Some(job) = next() {
                if self.stop.load(Ordering::Relaxed) {
                    break;
                }
                let result = run(job);
                if result.is_err() {
                    jobs.lock().unwrap_or_else(PoisonError::into_inner).clear();
                }
                results.push(result?);
            }
            Ok(results)
        };
        let outcomes: Vec<Result<Vec<R>>> = thread::scope(|scope| {
            let begin = |_| Builder::new().stack_size(STACK).spawn_scoped(scope, work);
            // With fewer threads than wished for, the others do the work.
            let threads: Vec<_> = (1..count).filter_map(|it| begin(it).ok()).collect();
            let own = work();
            let others = threads.into_iter().map(|thread| {
                let lost = |_| Err(DataFusionError::Internal("a thread ended early".to_owned()));
                thread.join().unwrap_or_else(lost)
            });
            std::iter::once(own).chain(others).collect()
        });
        let all = outcomes.into_iter().collect::<Result<Vec<_>>>()?;
        Ok(all.into_iter().flatten().collect())
    }

    /// Divides the box along the first axis with several selected indices, at the borders of chunks.
    pub(super) fn parts(&self) -> Vec<Selection> {
        let axes = self.selection.axes();
        let grid = self.array.grid();
        let Some(axis) = axes.iter().position(|it| it.count() > 1) else {
            return vec![self.selection.clone()];
        };
        // Parts of many chunks fetch many at once. Parts of few keep all threads busy to the end, and end soon after an interrupt.
        let chunks = grid.chunks_of(axis, &axes[axis]);
        let step = chunks.count().div_ceil(self.threads as u64 * 16).max(1);
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
        parts.filter(|part| part.cells() > 0).collect()
    }
}
