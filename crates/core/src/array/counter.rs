//! Labels that count up by one, computed on request instead of kept in memory.

use std::ops::Range;

use arrow::array::{ArrayRef, ArrowNativeTypeOp, UInt32Array};
use arrow::buffer::Buffer;
use arrow::compute::take;
use arrow::datatypes::{ArrowNativeType, DataType};

use super::arrow_error::failed_to;
use super::element::{Element, for_element_type};
use super::values::Scalar;
use crate::error::{Error, Result};
use crate::format::ElementType;

/// The labels `start`, `start + 1`, … of an axis: its indices, or a dimension of whole numbers or
/// dates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counter {
    /// The label at index 0, as stored. An `i128` holds every `i64` and every `u64`.
    start: i128,
    /// The length of the axis.
    len: u64,
    /// The type of the labels; neither a float nor a boolean.
    scalar: Scalar,
}

impl Counter {
    /// Returns the 0-based indices of an axis.
    pub fn indices(len: u64) -> Self {
        Self { start: 0, len, scalar: Scalar::Number(ElementType::I64) }
    }

    /// Counts whole numbers or dates from `start` on.
    ///
    /// # Errors
    /// `Unsupported` if the type cannot hold the first or the last label, or if it is a float or a
    /// boolean.
    pub fn new(start: i128, len: u64, scalar: Scalar) -> Result<Self> {
        let countable = match scalar {
            Scalar::Number(element) => element.is_integer(),
            Scalar::Temporal(_) => true,
            Scalar::Boolean => false,
        };
        if !countable {
            return Err(Error::unsupported(format!(
                "type {} is not supported for dimensions",
                scalar.data_type()
            )));
        }
        let counter = Self { start, len, scalar };
        if len > 0 {
            counter.slice(0..1)?;
            counter.slice(len - 1..len)?;
        }
        Ok(counter)
    }

    /// Appends `next` if it continues the count, as 13, 14 continue 10, 11, 12; otherwise `None`.
    pub fn joined(&self, next: &Self) -> Option<Self> {
        let goes_on = self.scalar == next.scalar && next.start == self.start + i128::from(self.len);
        let len = self.len.checked_add(next.len).filter(|_| goes_on)?;
        Some(Self { len, ..*self })
    }

    /// Returns `len` labels that count on from the one at index `start`, which may lie beyond the last.
    ///
    /// # Errors
    /// As [`Counter::new`].
    pub(crate) fn part(&self, start: u64, len: u64) -> Result<Self> {
        Self::new(self.start + i128::from(start), len, self.scalar)
    }

    /// Returns the number of labels.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are no labels.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the labels' type.
    pub fn data_type(&self) -> DataType {
        self.scalar.data_type()
    }

    /// Returns the labels at the indices in `range`.
    pub(crate) fn slice(&self, range: Range<u64>) -> Result<ArrayRef> {
        let len = range.end.saturating_sub(range.start);
        let first = self.start + i128::from(range.start);
        // A type that holds both ends holds all labels between them: no check per label.
        self.array(first, first + i128::from(len.max(1) - 1), 0..len)
    }

    /// Returns the label at each index; NULL for each `None`.
    ///
    /// Only the known indices become labels. For the indices 7, NULL, 3 of a count from 10, these are
    /// 17 and 13. The places 0, NULL, 1 then put them beside the NULL.
    pub(crate) fn at(&self, elements: impl Iterator<Item = Option<u64>>) -> Result<ArrayRef> {
        let mut known = Vec::new();
        let places: UInt32Array = elements
            .map(|element| {
                known.push(element?);
                Some(known.len() as u32 - 1)
            })
            .collect();
        let least = self.start + i128::from(known.iter().copied().min().unwrap_or(0));
        let greatest = self.start + i128::from(known.iter().copied().max().unwrap_or(0));
        let steps = known.iter().map(|at| (self.start + i128::from(*at) - least) as u64);
        let labels = self.array(least, greatest, steps)?;
        if places.len() == labels.len() {
            return Ok(labels);
        }
        take(&labels, &places, None).map_err(failed_to("repeat counted labels"))
    }

    /// Returns the labels `least + step` for each of `steps`. None of them may exceed `greatest`.
    fn array(
        &self,
        least: i128,
        greatest: i128,
        steps: impl Iterator<Item = u64>,
    ) -> Result<ArrayRef> {
        let element = match self.scalar {
            Scalar::Number(element) => element,
            Scalar::Temporal(_) | Scalar::Boolean => ElementType::I64,
        };
        let labels = for_element_type!(element, T => counted::<T>(least, greatest, steps));
        let labels = labels.ok_or_else(|| {
            Error::unsupported(format!(
                "labels from {least} to {greatest} do not fit type {element}"
            ))
        })?;
        self.scalar.array(labels, None)
    }
}

/// Returns the elements `least + step` for each of `steps`; `None` if type `T` cannot hold `least` or
/// `greatest`.
///
/// A step may exceed `T`, as the step 255 from -128 to 127 exceeds an `i8`. Its conversion wraps to -1, and
/// so does the addition, to 127.
fn counted<T: Element>(
    least: i128,
    greatest: i128,
    steps: impl Iterator<Item = u64>,
) -> Option<Buffer> {
    let (least, _) = T::from_integer(least).zip(T::from_integer(greatest))?;
    let labels = steps.map(|step| least.add_wrapping(T::Native::usize_as(step as usize)));
    Some(Buffer::from_vec(labels.collect::<Vec<T::Native>>()))
}

#[cfg(test)]
mod tests {
    use arrow::array::AsArray;
    use arrow::datatypes::{Date32Type, Int64Type, UInt64Type};

    use super::*;
    use crate::array::Temporal;
    use crate::format::TimeUnit;

    #[test]
    fn labels_are_made_where_they_are_wanted() {
        let unsigned = Scalar::Number(ElementType::U64);
        let top = Counter::new(i128::from(u64::MAX) - 1, 2, unsigned).unwrap();
        let labels = top.slice(0..2).unwrap();
        assert_eq!(labels.as_primitive::<UInt64Type>().values(), &[u64::MAX - 1, u64::MAX]);
        assert!(Counter::new(i128::from(u64::MAX) - 1, 3, unsigned).is_err());

        let months = Scalar::Temporal(Temporal::Point(TimeUnit::Month));
        let months = Counter::new(-1, 1 << 20, months).unwrap();
        let labels = months.at([Some(2), None, Some(0)].into_iter()).unwrap();
        let days: Vec<_> = labels.as_primitive::<Date32Type>().iter().collect();
        assert_eq!(days, [Some(31), None, Some(-31)]);
        let far = Scalar::Temporal(Temporal::Point(TimeUnit::Day));
        assert!(Counter::new(i128::from(i64::MAX) - 5, 3, far).is_err());

        let indices = Counter::indices(u64::MAX).slice(7..9).unwrap();
        assert_eq!(indices.as_primitive::<Int64Type>().values(), &[7, 8]);
    }
    #[test]
    fn what_goes_on_counting_is_one() {
        let count =
            |start, len, element| Counter::new(start, len, Scalar::Number(element)).unwrap();
        let first = count(-3, 4, ElementType::I32);
        assert_eq!(
            first.joined(&count(1, 2, ElementType::I32)),
            Some(count(-3, 6, ElementType::I32))
        );
        for next in [
            count(2, 2, ElementType::I32),
            count(0, 2, ElementType::I32),
            count(1, 2, ElementType::I64),
        ] {
            assert_eq!(first.joined(&next), None);
        }
    }
}
