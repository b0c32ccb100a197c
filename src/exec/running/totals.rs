//! [`Total`]: aggregates of frames, as [`Sliding`] states of all partitions of a column of chunks.
//!
//! A frame without values gives NULL, except for `count`. So with NULLs among the arguments, values are counted too.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Float64Array, Int64Array, UInt64Array};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow::datatypes::{ArrowNativeType, DataType};
use datafusion::error::Result;

use super::frames::Frames;
use super::running_state::{ColumnShape, Running};
use crate::exec::order_keys::{of_order_keys, order_keys};
use crate::reduce::{
    FloatSum, Fold, Greatest, IntegerSum, Least, Moments, Sliding, Spread, ValueCount,
};

/// An aggregate function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Total {
    Count,
    FloatSum,
    IntegerSum,
    Average,
    Least,
    Greatest,
    Variance { is_sample: bool, is_root: bool },
}

impl Total {
    /// Returns the bytes that a cell takes: its argument, the aggregate of a suffix, and the counts of both.
    pub(super) fn bytes_per_cell(self) -> usize {
        match self {
            Self::Count => 8,
            Self::Variance { .. } => 2 * (size_of::<Moments>() + 4),
            _ => 2 * (8 + 4),
        }
    }
}

/// The state of an aggregate function.
struct Totals<F: Fold, S> {
    shape: ColumnShape,
    frames: Arc<Frames>,
    /// One per block of rows.
    sliding: Vec<Sliding<F>>,
    /// The numbers of values that are not NULL, from the first NULL on.
    counts: Option<Vec<Sliding<ValueCount>>>,
    steps: S,
}

/// The steps of an aggregate function before and after frames.
trait Steps: Send {
    type Fold: Fold;

    /// Whether NULLs make the result NULL where a frame has no other values.
    const COUNTS: bool = true;

    /// Returns the arguments as cells, with the identity for NULL.
    fn cells<'a>(&self, values: &'a dyn Array) -> Result<Cow<'a, [<Self::Fold as Fold>::Item]>>;

    /// Returns the results of aggregates, and the numbers of values that they are of.
    fn results(
        &self,
        aggregates: Vec<<Self::Fold as Fold>::Item>,
        counts: &[u32],
    ) -> Result<ArrayRef>;
}

/// Returns the state of an aggregate function with results of `data_type`, before line number `first`.
pub(super) fn totals(
    total: &Total,
    data_type: &DataType,
    frames: Arc<Frames>,
    shape: ColumnShape,
    first: usize,
) -> Box<dyn Running> {
    fn of<S: Steps + 'static>(
        steps: S,
        frames: Arc<Frames>,
        shape: ColumnShape,
        first: usize,
    ) -> Box<dyn Running> {
        let sliding = (0..shape.outer).map(|_| Sliding::new(shape.width, first)).collect();
        Box::new(Totals::<S::Fold, S> { shape, frames, sliding, counts: None, steps })
    }
    let is_signed = *data_type != DataType::UInt64;
    match *total {
        Total::Count => of(Counted, frames, shape, first),
        Total::FloatSum => of(Summed { is_average: false }, frames, shape, first),
        Total::Average => of(Summed { is_average: true }, frames, shape, first),
        Total::IntegerSum => of(SummedIntegers { is_signed }, frames, shape, first),
        Total::Least => of(Extreme::<Least>::of(data_type), frames, shape, first),
        Total::Greatest => of(Extreme::<Greatest>::of(data_type), frames, shape, first),
        Total::Variance { is_sample, is_root } => {
            of(Variance { is_sample, is_root }, frames, shape, first)
        }
    }
}

impl<S: Steps> Running for Totals<S::Fold, S> {
    fn push(&mut self, values: &ArrayRef, lines: Range<usize>) -> Result<()> {
        let nulls = values.logical_nulls().filter(|nulls| nulls.null_count() > 0);
        if nulls.is_some() && S::COUNTS && self.counts.is_none() {
            // All values so far count.
            let counted = self.sliding.iter().map(|it| it.with_same_cells(|count| count as u32));
            self.counts = Some(counted.collect());
        }
        let cells = self.steps.cells(values)?;
        let block = lines.len() * self.shape.width;
        for (outer, sliding) in self.sliding.iter_mut().enumerate() {
            sliding.push(cells[outer * block..(outer + 1) * block].iter().copied());
        }
        for (outer, counts) in self.counts.iter_mut().flatten().enumerate() {
            match &nulls {
                None => counts.push(std::iter::repeat_n(1, block)),
                Some(nulls) => {
                    let nulls = nulls.slice(outer * block, block);
                    counts.push(nulls.iter().map(u32::from));
                }
            }
        }
        Ok(())
    }

    fn values(&mut self, lines: Range<usize>) -> Result<ArrayRef> {
        let ColumnShape { outer, width } = self.shape;
        let rows = outer * lines.len() * width;
        let mut aggregates = vec![S::Fold::IDENTITY; rows];
        let mut counts = vec![0; if S::COUNTS { rows } else { 0 }];
        let mut start = 0;
        for outer in 0..outer {
            for line in lines.clone() {
                let (frame, end) = (self.frames.at(line), start + width);
                self.sliding[outer].aggregate(&frame, &mut aggregates[start..end]);
                match &mut self.counts {
                    Some(counted) => counted[outer].aggregate(&frame, &mut counts[start..end]),
                    None if S::COUNTS => counts[start..end].fill(frame.len() as u32),
                    None => {}
                }
                start = end;
            }
        }
        self.steps.results(aggregates, &counts)
    }

    fn forget(&mut self, next: usize) {
        let needed = self.frames.needed_from(next);
        self.sliding.iter_mut().for_each(|it| it.forget(needed));
        self.counts.iter_mut().flatten().for_each(|it| it.forget(needed));
    }

    fn size(&self) -> usize {
        let counts = self.counts.iter().flatten().map(Sliding::size).sum::<usize>();
        self.sliding.iter().map(Sliding::size).sum::<usize>() + counts
    }
}

/// Returns the numbers of an array, with `of_null` for NULL.
fn numbers<T: ArrowNativeType>(values: &dyn Array, of_null: T) -> Cow<'_, [T]> {
    let data = values.to_data();
    let numbers = &data.buffer::<T>(0)[..values.len()];
    Cow::Owned(match values.nulls().filter(|nulls| nulls.null_count() > 0) {
        None => numbers.to_vec(),
        Some(nulls) => {
            let number = |(number, is_valid): (&T, bool)| if is_valid { *number } else { of_null };
            numbers.iter().zip(nulls).map(number).collect()
        }
    })
}

/// Returns which frames have at least `least` values; `None` if all have.
fn enough(counts: &[u32], least: u32) -> Option<NullBuffer> {
    if counts.iter().all(|count| *count >= least) {
        return None;
    }
    let enough = BooleanBuffer::collect_bool(counts.len(), |at| counts[at] >= least);
    Some(NullBuffer::new(enough))
}

/// `count`.
struct Counted;

impl Steps for Counted {
    type Fold = ValueCount;
    const COUNTS: bool = false;

    fn cells<'a>(&self, values: &'a dyn Array) -> Result<Cow<'a, [u32]>> {
        Ok(match values.logical_nulls() {
            None => Cow::Owned(vec![1; values.len()]),
            Some(nulls) => nulls.iter().map(u32::from).collect(),
        })
    }

    fn results(&self, aggregates: Vec<u32>, _: &[u32]) -> Result<ArrayRef> {
        let counts = aggregates.into_iter().map(i64::from).collect::<Vec<_>>();
        Ok(Arc::new(Int64Array::from(counts)))
    }
}

/// `sum` and `avg` of floats.
struct Summed {
    is_average: bool,
}

impl Steps for Summed {
    type Fold = FloatSum;

    fn cells<'a>(&self, values: &'a dyn Array) -> Result<Cow<'a, [f64]>> {
        Ok(numbers(values, 0.0))
    }

    fn results(&self, mut aggregates: Vec<f64>, counts: &[u32]) -> Result<ArrayRef> {
        if self.is_average {
            for (sum, count) in aggregates.iter_mut().zip(counts) {
                *sum /= f64::from(*count);
            }
        }
        Ok(Arc::new(Float64Array::new(aggregates.into(), enough(counts, 1))))
    }
}

/// `sum` of integers.
struct SummedIntegers {
    is_signed: bool,
}

impl Steps for SummedIntegers {
    type Fold = IntegerSum;

    fn cells<'a>(&self, values: &'a dyn Array) -> Result<Cow<'a, [i64]>> {
        Ok(numbers(values, 0))
    }

    fn results(&self, aggregates: Vec<i64>, counts: &[u32]) -> Result<ArrayRef> {
        let nulls = enough(counts, 1);
        if self.is_signed {
            return Ok(Arc::new(Int64Array::new(aggregates.into(), nulls)));
        }
        // Sums that wrap around have the same bits.
        let sums = ScalarBuffer::from(Buffer::from_vec(aggregates));
        Ok(Arc::new(UInt64Array::new(sums, nulls)))
    }
}

/// `min` and `max`.
struct Extreme<F> {
    data_type: DataType,
    fold: PhantomData<F>,
}

impl<F> Extreme<F> {
    fn of(data_type: &DataType) -> Self {
        Self { data_type: data_type.clone(), fold: PhantomData }
    }
}

impl<F: Fold<Item = i64> + Send> Steps for Extreme<F> {
    type Fold = F;

    fn cells<'a>(&self, values: &'a dyn Array) -> Result<Cow<'a, [i64]>> {
        Ok(Cow::Owned(order_keys(values, F::IDENTITY)?))
    }

    fn results(&self, aggregates: Vec<i64>, counts: &[u32]) -> Result<ArrayRef> {
        of_order_keys(&aggregates, enough(counts, 1), &self.data_type)
    }
}

/// `var`, `stddev` and the like.
struct Variance {
    is_sample: bool,
    is_root: bool,
}

impl Steps for Variance {
    type Fold = Spread;

    fn cells<'a>(&self, values: &'a dyn Array) -> Result<Cow<'a, [Moments]>> {
        // The spread of a single infinite value is NaN.
        let spread = |value: &f64| if value.is_finite() { 0.0 } else { f64::NAN };
        let moments = |value: &f64| Moments { count: 1, mean: *value, m2: spread(value) };
        let numbers = numbers(values, 0.0);
        Ok(match values.nulls() {
            None => numbers.iter().map(moments).collect(),
            Some(nulls) => {
                let cell = |(number, is_valid): (&f64, bool)| match is_valid {
                    true => moments(number),
                    false => Spread::IDENTITY,
                };
                numbers.iter().zip(nulls).map(cell).collect()
            }
        })
    }

    fn results(&self, aggregates: Vec<Moments>, counts: &[u32]) -> Result<ArrayRef> {
        let less = u64::from(self.is_sample);
        let variance = |moments: &Moments| {
            let variance = match moments.count.saturating_sub(less) {
                // DataFusion takes the spread of a single value for 0, even if it is infinite.
                1 if less == 0 => 0.0,
                count => moments.m2 / count as f64,
            };
            if self.is_root { variance.sqrt() } else { variance }
        };
        let variances: Vec<f64> = aggregates.iter().map(variance).collect();
        Ok(Arc::new(Float64Array::new(variances.into(), enough(counts, 1 + less as u32))))
    }
}
