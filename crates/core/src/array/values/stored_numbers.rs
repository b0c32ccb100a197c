//! The inverse of decoding: the stored numbers of values.
//!
//! ```text
//!   281.15  ─▶ (281.15 - 273.15) / 0.01 ─▶ 800          packed
//!   2024-01-02T00:00 ─▶ 24 hours since 2024-01-01       times
//!   NULL ─▶ -32768                                      the number that stands for NULL
//! ```
//!
//! A stored number may have another value than the one that was asked for. Who stores numbers decodes them, and compares.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, PrimitiveArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int64Type};

use super::NumberColumn;
use super::declarations::ColumnMeaning;
use crate::array::arrow_error::failed_to;
use crate::array::cf_time::TimeUnits;
use crate::array::element::{Element, arrow_type, for_element_type};
use crate::error::{Error, Result};

impl NumberColumn {
    /// Returns the stored numbers of values of the column, in the Arrow type of the stored type. Values that no stored number has get
    /// the nearest one, or any.
    ///
    /// # Errors
    /// `Unsupported` for categories, and for NULL in a column without a number for it.
    pub fn stored(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let of_column = cast(values, &self.data_type()).map_err(failed_to("store values"))?;
        let stored = stored(&of_column, &self.meaning, &arrow_type(self.element))?;
        for_element_type!(self.element, T => self.without_nulls::<T>(stored.as_primitive::<T>(), &of_column))
    }

    /// Puts the number that stands for NULL in the places of NULL.
    fn without_nulls<T: Element>(
        &self,
        stored: &PrimitiveArray<T>,
        values: &ArrayRef,
    ) -> Result<ArrayRef> {
        if values.null_count() == 0 && stored.null_count() == 0 {
            return Ok(Arc::new(stored.clone()));
        }
        let number = self.fill.or_else(|| self.also_null.first().copied()).map(T::from_bound);
        let Some(null) = number.or_else(|| T::from_f64(f64::NAN).filter(|_| self.nan_is_null))
        else {
            if values.null_count() > 0 {
                return Err(Error::unsupported("NULL in a variable without a fill value"));
            }
            // Any number: it is not the value, which is found out when it is decoded.
            return Ok(Arc::new(PrimitiveArray::<T>::new(stored.values().clone(), None)));
        };
        let filled = (0..stored.len()).map(|at| match values.is_null(at) || stored.is_null(at) {
            true => null,
            false => stored.value(at),
        });
        Ok(Arc::new(PrimitiveArray::<T>::from_iter_values(filled)))
    }
}

/// Returns the stored numbers of values; NULL where there is none.
fn stored(values: &ArrayRef, meaning: &ColumnMeaning, element: &DataType) -> Result<ArrayRef> {
    let failed = failed_to("store values");
    let packed = |scale: f64, offset: f64| -> Result<ArrayRef> {
        let values = cast(values, &DataType::Float64).map_err(failed_to("pack values"))?;
        let number = |value: f64| (value - offset) / scale;
        let numbers = values.as_primitive::<Float64Type>().unary::<_, Float64Type>(number);
        in_element(Arc::new(numbers), element)
    };
    match meaning {
        ColumnMeaning::Plain => cast(values, element).map_err(&failed),
        ColumnMeaning::Packed { scale, offset } => packed(*scale, *offset),
        ColumnMeaning::PackedInSingles { scale, offset } => {
            packed(f64::from(*scale), f64::from(*offset))
        }
        ColumnMeaning::Times(units, numbers) => {
            let counts = cast(values, &DataType::Int64).map_err(&failed)?;
            let counts = counts.as_primitive::<Int64Type>();
            match &**numbers {
                ColumnMeaning::Plain if element.is_integer() => {
                    let whole = |count| {
                        let (whole, rest) = units.units_at(count)?;
                        i64::try_from(whole).ok().filter(|_| rest == 0.0)
                    };
                    let numbers: Int64Array =
                        counts.iter().map(|count| count.and_then(whole)).collect();
                    cast(&numbers, element).map_err(&failed)
                }
                ColumnMeaning::Plain => in_element(doubles(counts, *units), element),
                packing => stored(&doubles(counts, *units), packing, element),
            }
        }
        ColumnMeaning::Categories { .. } => {
            Err(Error::unsupported("storing texts as numbers of categories"))
        }
    }
}

fn doubles(counts: &Int64Array, units: TimeUnits) -> ArrayRef {
    let number = |count| units.units_at(count).map(|(whole, rest)| whole as f64 + rest);
    let numbers = counts.iter().map(|count| count.and_then(number));
    Arc::new(numbers.collect::<PrimitiveArray<Float64Type>>())
}

/// Returns doubles as elements: the nearest integers, if these are integers.
fn in_element(numbers: ArrayRef, element: &DataType) -> Result<ArrayRef> {
    let numbers: ArrayRef = match element.is_integer() {
        true => Arc::new(numbers.as_primitive::<Float64Type>().unary::<_, Float64Type>(f64::round)),
        false => numbers,
    };
    cast(&numbers, element).map_err(failed_to("store values"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use arrow::array::{Float64Array, TimestampMicrosecondArray};
    use arrow::buffer::Buffer;

    use super::*;
    use crate::array::ReadOptions;
    use crate::format::{ElementType, bound};

    /// Decodes the stored numbers of values.
    fn there_and_back(column: &NumberColumn, values: &ArrayRef) -> (ArrayRef, ArrayRef) {
        let stored = column.stored(values).unwrap();
        let bytes: Buffer = stored.to_data().buffers()[0].clone();
        let back = column.decode(bytes, None, true).unwrap();
        (stored, back)
    }

    fn attributes(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn packed_numbers_come_back() {
        let null = bound(&(-32768_i16).to_le_bytes());
        let column = NumberColumn::with_nulls(ElementType::I16, &[null], &ReadOptions::default());
        let packing = attributes(&[("scale_factor", "0.01"), ("add_offset", "273.15")]);
        let (column, _) = column.unpacked(&packing, false);
        let numbers: Vec<i16> = (-300..300).map(|it| it * 100 + 7).collect();
        let values = column.decode(Buffer::from_vec(numbers.clone()), None, true).unwrap();
        let (stored, back) = there_and_back(&column, &values);
        assert_eq!(stored.as_primitive::<arrow::datatypes::Int16Type>().values(), &numbers[..]);
        assert_eq!(&back, &values);

        let nulls: ArrayRef = Arc::new(Float64Array::from(vec![None, Some(273.16)]));
        let (stored, back) = there_and_back(&column, &nulls);
        assert_eq!(stored.as_primitive::<arrow::datatypes::Int16Type>().values(), &[-32768, 1]);
        assert!(back.is_null(0) && back.is_valid(1));
    }

    #[test]
    fn times_come_back_in_each_calendar_and_type() {
        let days = [-200_000_i64, -141_438, -141_427, 0, 59, 19_783, 20_000];
        let of = |hours: i64| days.map(|day| (day * 24 + hours) * 3_600_000_000);
        for calendar in ["standard", "proleptic_gregorian", "noleap"] {
            let pairs = [("units", "hours since 1990-01-01 06:00"), ("calendar", calendar)];
            let units = TimeUnits::from_attributes(&attributes(&pairs)).unwrap().unwrap();
            for element in [ElementType::I32, ElementType::I64, ElementType::F64] {
                let column = NumberColumn::plain(element, None, false, &ReadOptions::default());
                let column = column.with_times(units);
                let values: ArrayRef = Arc::new(TimestampMicrosecondArray::from(of(7).to_vec()));
                let (_, back) = there_and_back(&column, &values);
                assert_eq!(&back, &values, "{calendar} {element}");
            }
        }
    }

    #[test]
    fn times_between_the_units_do_not_come_back() {
        let pairs = [("units", "days since 2000-01-01")];
        let units = TimeUnits::from_attributes(&attributes(&pairs)).unwrap().unwrap();
        let column = NumberColumn::plain(ElementType::I64, None, false, &ReadOptions::default());
        let noon: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![43_200_000_000]));
        let (_, back) = there_and_back(&column.with_times(units), &noon);
        assert_ne!(&back, &noon);
    }

    #[test]
    fn dates_that_a_calendar_lacks_have_no_number() {
        let leap_day = 19_782 * 86_400_000_000;
        let of_the_reform = -141_428 * 86_400_000_000;
        for (calendar, time) in [("noleap", leap_day), ("standard", of_the_reform)] {
            let pairs = [("units", "days since 1500-01-01"), ("calendar", calendar)];
            let units = TimeUnits::from_attributes(&attributes(&pairs)).unwrap().unwrap();
            assert_eq!(units.units_at(time), None, "{calendar}");
            assert!(units.units_at(0).is_some());
        }
    }

    #[test]
    fn null_needs_a_number() {
        let column = NumberColumn::plain(ElementType::I32, None, false, &ReadOptions::default());
        let null: ArrayRef = Arc::new(Float64Array::from(vec![None]));
        assert!(column.stored(&null).unwrap_err().to_string().contains("NULL"));
    }
}
