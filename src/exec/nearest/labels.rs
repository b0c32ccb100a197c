//! [`NearestLabels`]: labels in ascending order, to be searched for the nearest ones.

use std::hash::{Hash, Hasher};
use std::ptr;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, UInt64Array};
use arrow::compute::{cast, filter, is_not_null, sort_to_indices, take};
use arrow::datatypes::{DataType, Float64Type, Int64Type, TimeUnit};
use datafusion::common::{not_impl_err, plan_err};
use datafusion::error::Result;

use crate::array::Labels;

/// The most labels that are searched, because they are held in memory twice.
const MOST_LABELS: u64 = 1 << 24;

/// The integer up to which doubles hold all integers.
const MOST_INTEGER: f64 = 9_007_199_254_740_992.0;

/// The labels of a dimension in ascending order, without NULL and NaN.
#[derive(Debug)]
pub(crate) struct NearestLabels {
    /// The labels, in their own type.
    labels: ArrayRef,
    keys: Keys,
}

/// The labels as numbers.
#[derive(Debug)]
enum Keys {
    Numbers(Vec<f64>),
    /// Times, and the nanoseconds of a step from one to the next.
    Times(Vec<i64>, i128),
}

/// The most that a label may be away from the value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Tolerance {
    Any,
    Number(f64),
    Nanoseconds(i128),
}

/// Labels are equal if they are the same in memory: comparing all of them would cost more than it saves.
impl PartialEq for NearestLabels {
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self, other)
    }
}

impl Eq for NearestLabels {}

impl Hash for NearestLabels {
    fn hash<H: Hasher>(&self, state: &mut H) {
        ptr::hash(self, state);
    }
}

impl NearestLabels {
    /// Sorts the labels of a dimension. Counts them first, because a dimension without labels may be of any length.
    ///
    /// # Errors
    /// As [`NearestLabels::try_new`]; `NotImplemented` for more than 16,777,216 labels.
    pub(crate) fn from_dimension(labels: &Labels) -> Result<Self> {
        if labels.len() > MOST_LABELS {
            return not_impl_err!(
                "nearest among more than {MOST_LABELS} labels; the dimension has {}",
                labels.len()
            );
        }
        Self::try_new(&labels.slice(0..labels.len())?)
    }

    /// Sorts labels.
    ///
    /// # Errors
    /// `Plan` for labels that are neither numbers nor times; `NotImplemented` for integers that doubles round.
    pub(crate) fn try_new(labels: &ArrayRef) -> Result<Self> {
        let known = filter(labels, &is_not_null(labels)?)?;
        let labels = take(&known, &sort_to_indices(&known, None, None)?, None)?;
        let data_type = labels.data_type();
        if data_type.is_numeric() {
            let numbers = cast(&labels, &DataType::Float64)?;
            let numbers = numbers.as_primitive::<Float64Type>().values();
            // Neighbours would be one number.
            if data_type.is_integer() && numbers.iter().any(|it| it.abs() > MOST_INTEGER) {
                return not_impl_err!("nearest among integers beyond {MOST_INTEGER}, 2^53");
            }
            // NaN is the greatest number.
            let count = numbers.partition_point(|it| !it.is_nan());
            let keys = Keys::Numbers(numbers[..count].to_vec());
            return Ok(Self { labels: labels.slice(0, count), keys });
        }
        let Some(step) = step(data_type) else {
            return plan_err!("nearest needs a dimension of numbers or times, not of {data_type}");
        };
        let keys = Keys::Times(times(&labels)?.values().to_vec(), step);
        Ok(Self { labels, keys })
    }

    /// The labels in ascending order.
    pub(crate) fn labels(&self) -> &ArrayRef {
        &self.labels
    }

    /// Returns for each value the nearest label, of two the lower one. It is NULL for NULL and NaN, and where none is near enough.
    pub(super) fn nearest(&self, values: &ArrayRef, tolerance: Tolerance) -> Result<ArrayRef> {
        let found: UInt64Array = match &self.keys {
            Keys::Numbers(keys) => {
                let most = if let Tolerance::Number(it) = tolerance { it } else { f64::INFINITY };
                let values = values.as_primitive::<Float64Type>().iter();
                values.map(|it| among_numbers(keys, it.filter(|it| !it.is_nan())?, most)).collect()
            }
            Keys::Times(keys, step) => {
                let most = if let Tolerance::Nanoseconds(it) = tolerance { it } else { i128::MAX };
                let values = times(values)?;
                values.iter().map(|it| among_times(keys, *step, it?, most)).collect()
            }
        };
        Ok(take(&self.labels, &found, None)?)
    }
}

fn among_numbers(keys: &[f64], value: f64, most: f64) -> Option<u64> {
    let distance = |at: usize| (keys[at] - value).abs();
    let at = nearer(keys.partition_point(|it| *it < value), keys.len(), distance)?;
    // Equal infinities have no difference.
    let is_near = distance(at) <= most || keys[at] == value;
    is_near.then_some(at as u64)
}

fn among_times(keys: &[i64], step: i128, value: i64, most: i128) -> Option<u64> {
    let distance = |at: usize| (i128::from(keys[at]) - i128::from(value)).abs();
    let at = nearer(keys.partition_point(|it| *it < value), keys.len(), distance)?;
    (distance(at).saturating_mul(step) <= most).then_some(at as u64)
}

/// Returns the nearer of the label before the place `at` and the one there.
fn nearer<D: PartialOrd>(at: usize, len: usize, distance: impl Fn(usize) -> D) -> Option<usize> {
    match (at.checked_sub(1), at < len) {
        (None, false) => None,
        (None, true) => Some(at),
        (Some(before), false) => Some(before),
        (Some(before), true) => Some(if distance(before) <= distance(at) { before } else { at }),
    }
}

/// Returns the nanoseconds between a time and the next one of a type; `None` for other types.
fn step(data_type: &DataType) -> Option<i128> {
    Some(match data_type {
        DataType::Date32 => 86_400_000_000_000,
        DataType::Date64 => 1_000_000,
        DataType::Timestamp(unit, _) | DataType::Duration(unit) => match unit {
            TimeUnit::Second => 1_000_000_000,
            TimeUnit::Millisecond => 1_000_000,
            TimeUnit::Microsecond => 1000,
            TimeUnit::Nanosecond => 1,
        },
        _ => return None,
    })
}

/// Returns times as the numbers that are stored.
fn times(values: &ArrayRef) -> Result<Int64Array> {
    let numbers = match values.data_type() {
        DataType::Date32 => cast(&cast(values, &DataType::Int32)?, &DataType::Int64)?,
        _ => cast(values, &DataType::Int64)?,
    };
    Ok(numbers.as_primitive::<Int64Type>().clone())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Float32Array, Float64Array, TimestampMicrosecondArray};
    use datafusion::common::ScalarValue;

    use super::*;
    use crate::array::Dimension;

    fn texts(array: &ArrayRef) -> Vec<String> {
        let text = |row| ScalarValue::try_from_array(array, row).unwrap().to_string();
        (0..array.len()).map(text).collect()
    }

    /// All labels against all values, compared with a search of each pair.
    #[test]
    fn the_nearest_label_has_no_nearer_one() {
        for labels in [
            vec![],
            vec![1.5],
            vec![3.0, -2.0, 7.5, 0.0],
            vec![90.0, 60.0, 30.0],
            vec![f64::NAN, 1.0, f64::INFINITY, 1.0],
        ] {
            let array: ArrayRef = Arc::new(Float64Array::from(labels.clone()));
            let nearest = NearestLabels::try_new(&array).unwrap();
            for value in [-1e6, -3.0, -1.0, 0.0, 1.5, 5.25, 45.0, 1e6, f64::INFINITY] {
                for most in [0.0, 1.0, 15.0, f64::INFINITY] {
                    let distance =
                        |label: f64| if label == value { 0.0 } else { (label - value).abs() };
                    let known = labels.iter().copied().filter(|it| !it.is_nan());
                    // All finite labels are infinitely far from infinity: the greatest is on its side.
                    let sign = if value.is_infinite() { -1.0 } else { 1.0 };
                    let expected = known.filter(|it| distance(*it) <= most).min_by(|a, b| {
                        let tie = (a * sign).total_cmp(&(b * sign));
                        distance(*a).total_cmp(&distance(*b)).then(tie)
                    });
                    let values: ArrayRef = Arc::new(Float64Array::from(vec![value]));
                    let found = nearest.nearest(&values, Tolerance::Number(most)).unwrap();
                    let found = found.as_primitive::<Float64Type>();
                    let found = found.iter().next().unwrap();
                    assert_eq!(found, expected, "{labels:?} {value} {most}");
                }
            }
        }
    }

    /// Integers that are equal as doubles have no nearest one, and long dimensions are not listed.
    #[test]
    fn labels_that_cannot_be_searched_are_refused() {
        for (last, is_searched) in [(1_i64 << 53, true), ((1 << 53) + 2, false)] {
            let integers: ArrayRef = Arc::new(Int64Array::from(vec![1, last]));
            let made = NearestLabels::try_new(&integers);
            assert_eq!(made.is_ok(), is_searched, "{last}");
            if let Err(error) = made {
                assert!(error.to_string().contains("integers beyond"), "{error}");
            }
        }
        let long = Dimension::indexed("cell", 1 << 40);
        let error = NearestLabels::from_dimension(long.labels()).unwrap_err().to_string();
        assert!(error.contains("the dimension has 1099511627776"), "{error}");
    }

    #[test]
    fn labels_keep_their_type_and_null_has_none() {
        let singles: ArrayRef = Arc::new(Float32Array::from(vec![50.1, 49.9]));
        let nearest = NearestLabels::try_new(&singles).unwrap();
        let values: ArrayRef =
            Arc::new(Float64Array::from(vec![Some(50.09), None, Some(f64::NAN)]));
        let found = nearest.nearest(&values, Tolerance::Any).unwrap();
        assert_eq!(
            (found.data_type(), texts(&found)),
            (&DataType::Float32, vec!["50.1".into(), "NULL".into(), "NULL".into()])
        );
        let hours: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![0, 3_600_000_000]));
        let nearest = NearestLabels::try_new(&hours).unwrap();
        let values: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![
            1_800_000_000,
            1_800_000_001,
            i64::MIN,
            i64::MAX,
        ]));
        let any = nearest.nearest(&values, Tolerance::Any).unwrap();
        assert_eq!(times(&any).unwrap().values(), &[0, 3_600_000_000, 0, 3_600_000_000]);
        let hour = nearest.nearest(&values, Tolerance::Nanoseconds(1_800_000_000_000)).unwrap();
        assert_eq!((hour.null_count(), hour.is_valid(1)), (2, true));
    }
}
