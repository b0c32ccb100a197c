//! [`Steps`]: an aggregate function before and after frames: cells of its arguments, and results of aggregates.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array, UInt64Array};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow::datatypes::{ArrowPrimitiveType, DataType, Float64Type, Int64Type, UInt64Type};
use datafusion::common::internal_err;
use datafusion::error::Result;

use crate::exec::nans::one_nan;
use crate::exec::order_keys::{of_order_keys, value_keys};
use crate::reduce::{FloatSum, Fold, IntegerSum, Moments, Spread, ValueCount};

/// The steps of an aggregate function before and after frames.
pub(in crate::exec) trait Steps: Send {
    type Fold: Fold;

    /// Whether NULLs make the result NULL where a frame has no other values.
    const COUNTS: bool = true;

    /// Returns the arguments as cells, with the identity for NULL.
    ///
    /// # Errors
    /// `Internal` for arguments of another type than planned.
    fn cells<'a>(&self, values: &'a dyn Array) -> Result<Cow<'a, [<Self::Fold as Fold>::Item]>>;

    /// Returns the results of aggregates, and the numbers of values that they are of.
    fn results(
        &self,
        aggregates: Vec<<Self::Fold as Fold>::Item>,
        counts: &[u32],
    ) -> Result<ArrayRef>;
}

/// Returns the numbers of an array, with `of_null` for NULL. Numbers without NULLs are not copied.
///
/// # Errors
/// `Internal` for numbers of another type.
fn numbers<T: ArrowPrimitiveType>(
    values: &dyn Array,
    of_null: T::Native,
) -> Result<Cow<'_, [T::Native]>> {
    let Some(numbers) = values.as_primitive_opt::<T>() else {
        return internal_err!("an argument has type {}, not {}", values.data_type(), T::DATA_TYPE);
    };
    Ok(match numbers.nulls().filter(|nulls| nulls.null_count() > 0) {
        None => Cow::Borrowed(numbers.values()),
        Some(_) => numbers.iter().map(|number| number.unwrap_or(of_null)).collect(),
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
pub(super) struct CountStep;

impl Steps for CountStep {
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
pub(in crate::exec) struct SumStep {
    pub(in crate::exec) is_average: bool,
}

impl Steps for SumStep {
    type Fold = FloatSum;

    fn cells<'a>(&self, values: &'a dyn Array) -> Result<Cow<'a, [f64]>> {
        numbers::<Float64Type>(values, 0.0)
    }

    fn results(&self, mut aggregates: Vec<f64>, counts: &[u32]) -> Result<ArrayRef> {
        if self.is_average {
            for (sum, count) in aggregates.iter_mut().zip(counts) {
                *sum /= f64::from(*count);
            }
        }
        Ok(one_nan(Arc::new(Float64Array::new(aggregates.into(), enough(counts, 1)))))
    }
}

/// `sum` of integers.
pub(super) struct SummedIntegers {
    pub(super) is_signed: bool,
}

impl Steps for SummedIntegers {
    type Fold = IntegerSum;

    fn cells<'a>(&self, values: &'a dyn Array) -> Result<Cow<'a, [i64]>> {
        if self.is_signed {
            return numbers::<Int64Type>(values, 0);
        }
        Ok(numbers::<UInt64Type>(values, 0)?.iter().map(|number| *number as i64).collect())
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
pub(in crate::exec) struct Extreme<F> {
    data_type: DataType,
    fold: PhantomData<F>,
}

impl<F> Extreme<F> {
    /// Returns results of `data_type`.
    pub(in crate::exec) fn new(data_type: &DataType) -> Self {
        Self { data_type: data_type.clone(), fold: PhantomData }
    }
}

impl<F: Fold<Item = i64> + Send> Steps for Extreme<F> {
    type Fold = F;

    fn cells<'a>(&self, values: &'a dyn Array) -> Result<Cow<'a, [i64]>> {
        Ok(Cow::Owned(value_keys(values, F::IDENTITY)?))
    }

    fn results(&self, aggregates: Vec<i64>, counts: &[u32]) -> Result<ArrayRef> {
        of_order_keys(&aggregates, enough(counts, 1), &self.data_type)
    }
}

/// `var`, `stddev` and the like.
pub(in crate::exec) struct Variance {
    pub(in crate::exec) is_sample: bool,
    pub(in crate::exec) is_root: bool,
}

impl Steps for Variance {
    type Fold = Spread;

    fn cells<'a>(&self, values: &'a dyn Array) -> Result<Cow<'a, [Moments]>> {
        // The spread of a single infinite value is NaN.
        let spread = |value: &f64| if value.is_finite() { 0.0 } else { f64::NAN };
        let moments = |value: &f64| Moments { count: 1, mean: *value, m2: spread(value) };
        let numbers = numbers::<Float64Type>(values, 0.0)?;
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
        let nulls = enough(counts, 1 + less as u32);
        Ok(one_nan(Arc::new(Float64Array::new(variances.into(), nulls))))
    }
}
