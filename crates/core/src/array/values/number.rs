//! Columns of numbers: stored elements as SQL values.
//!
//! ```text
//!   element bytes ─▶ NULL where NaN or fill ─▶ as they are      (f16 … u64 keep their type)
//!                                            ├▶ × scale + offset (CF packing: Float64, Float32)
//!                                            ├▶ times            (CF times: Timestamp(µs), Duration(µs))
//!                                            └▶ category text    (codes of text columns: Utf8View)
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, PrimitiveArray, UInt32Array};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow::compute::{cast, take, unary};
use arrow::datatypes::{DataType, Float32Type, Float64Type, Int64Type};

use super::declarations::{ColumnMeaning, categories, declared_fill, packing};
use super::temporal::NOT_A_TIME;
use crate::array::arrow_error::failed_to;
use crate::array::cf_time::TimeUnits;
use crate::array::element::{Element, arrow_type, elements_of, for_element_type};
use crate::array::read_options::ReadOptions;
use crate::error::{Error, Result};
use crate::format::{ElementType, ZoneBound, bound};

/// How stored numbers of one type become a column.
#[derive(Debug, Clone, PartialEq)]
pub struct NumberColumn {
    pub(super) element: ElementType,
    /// Whether NaN is NULL; false for integers.
    pub(super) nan_is_null: bool,
    /// The element that stands for NULL.
    pub(super) fill: Option<ZoneBound>,
    /// Whether `fill` is a zero, and zeros of either sign stand for NULL.
    zeros_are_null: bool,
    /// Further elements that stand for NULL.
    pub(super) also_null: Vec<ZoneBound>,
    /// The least and the greatest stored number that is not NULL.
    pub(super) valid: Option<(f64, f64)>,
    /// Whether each cell has a validity byte.
    has_validity: bool,
    pub(super) meaning: ColumnMeaning,
}

/// How values follow from the stored numbers, on which a reduction works.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Form {
    /// The values are the stored numbers.
    Stored,
    /// The values are stored integers × `scale` + `offset` (CF packing); both are finite.
    Packed {
        /// The factor.
        scale: f64,
        /// The amount that is added.
        offset: f64,
    },
}

impl NumberColumn {
    /// Builds the column from the attributes of a dataset. `packed` is true if the elements still need
    /// `scale_factor` and `add_offset`.
    ///
    /// Also returns the declarations that cannot be parsed. Callers must report them, because the
    /// values are wrong without them.
    pub fn new(
        element: ElementType,
        attributes: &BTreeMap<String, String>,
        packed: bool,
        options: &ReadOptions,
    ) -> (Self, Vec<String>) {
        let mut misunderstood = Vec::new();
        let fill = if options.fill_as_null {
            declared_fill(element, attributes, &mut misunderstood)
        } else {
            None
        };
        let meaning = categories(element, attributes, &mut misunderstood)
            .or_else(|| if packed { packing(attributes, &mut misunderstood) } else { None })
            .unwrap_or(ColumnMeaning::Plain);
        let column = Self { fill, meaning, ..Self::plain(element, None, false, options) };
        (column, misunderstood)
    }

    /// Returns a column of stored numbers, of which each of `nulls` stands for NULL. Numbers are compared, not
    /// bits: both zeros of floats are NULL if one of them is.
    pub fn with_nulls(element: ElementType, nulls: &[ZoneBound], options: &ReadOptions) -> Self {
        let plain = Self::plain(element, None, false, options);
        let is_new = |null: &&ZoneBound| !(plain.nan_is_null && is_nan(element, **null));
        let is_zero = |null: &ZoneBound| !element.is_integer() && is_zero(element, *null);
        let zero = nulls.iter().copied().find(|null| is_zero(null));
        let others = nulls.iter().filter(is_new).copied().filter(|null| !is_zero(null));
        let mut nulls = zero.into_iter().chain(others);
        let (fill, zeros_are_null) = (nulls.next(), zero.is_some());
        Self { fill, zeros_are_null, also_null: nulls.collect(), ..plain }
    }

    /// Makes stored numbers outside of a range NULL; either end may be missing.
    pub fn within(self, (least, greatest): (Option<f64>, Option<f64>)) -> Self {
        let is_bounded = least.is_some() || greatest.is_some();
        let ends = (least.unwrap_or(f64::NEG_INFINITY), greatest.unwrap_or(f64::INFINITY));
        Self { valid: is_bounded.then_some(ends), ..self }
    }

    /// Undoes CF packing, as the `attributes` declare it. `in_singles` tells that they are of single precision. Also returns
    /// the declarations that cannot be parsed.
    ///
    /// Values are singles if xarray and netCDF4 agree on that: if singles hold all stored numbers, too.
    pub fn unpacked(
        self,
        attributes: &BTreeMap<String, String>,
        in_singles: bool,
    ) -> (Self, Vec<String>) {
        use ElementType::{F16, F32, I8, I16, U8, U16};
        let mut misunderstood = Vec::new();
        let fits = matches!(self.element, F16 | F32 | I8 | I16 | U8 | U16);
        let meaning = match packing(attributes, &mut misunderstood) {
            Some(ColumnMeaning::Packed { scale, offset }) if in_singles && fits => {
                ColumnMeaning::PackedInSingles { scale: scale as f32, offset: offset as f32 }
            }
            packing => packing.unwrap_or(ColumnMeaning::Plain),
        };
        (Self { meaning, ..self }, misunderstood)
    }

    /// Shows the numbers as CF times in these units, once they are unpacked. The least `i64` is NULL, because numpy's NaT has its bits.
    pub fn with_times(mut self, units: TimeUnits) -> Self {
        if self.element == ElementType::I64 {
            self.also_null.push(bound(&NOT_A_TIME.to_le_bytes()));
        }
        Self { meaning: ColumnMeaning::Times(units, Box::new(self.meaning)), ..self }
    }

    /// Returns the column with its times in other units; `None` if it shows no times.
    pub fn in_other_units(&self, units: TimeUnits) -> Option<Self> {
        let ColumnMeaning::Times(_, numbers) = &self.meaning else { return None };
        let meaning = ColumnMeaning::Times(units, numbers.clone());
        Some(Self { meaning, ..self.clone() })
    }

    /// Returns a column of the stored numbers. `fill` is the element that stands for NULL, if there is
    /// one.
    pub fn plain(
        element: ElementType,
        fill: Option<ZoneBound>,
        has_validity: bool,
        options: &ReadOptions,
    ) -> Self {
        let nan_is_null = options.nan_as_null && !element.is_integer();
        let (also_null, meaning) = (vec![], ColumnMeaning::Plain);
        let zeros_are_null = false;
        Self {
            element,
            nan_is_null,
            fill,
            zeros_are_null,
            also_null,
            valid: None,
            has_validity,
            meaning,
        }
    }

    /// Returns the stored type.
    pub fn element(&self) -> ElementType {
        self.element
    }

    /// Returns the column's type.
    pub fn data_type(&self) -> DataType {
        match &self.meaning {
            ColumnMeaning::Plain => arrow_type(self.element),
            ColumnMeaning::Packed { .. } => DataType::Float64,
            ColumnMeaning::PackedInSingles { .. } => DataType::Float32,
            ColumnMeaning::Times(units, _) => units.data_type(),
            ColumnMeaning::Categories { .. } => DataType::Utf8View,
        }
    }

    /// Whether a value may be NULL.
    pub fn is_nullable(&self) -> bool {
        self.nan_is_null
            || self.has_validity
            || self.fill.is_some()
            || !self.also_null.is_empty()
            || self.valid.is_some()
            || matches!(self.meaning, ColumnMeaning::Categories { .. })
    }

    /// Returns the column of cells with a validity byte each.
    pub(super) fn with_validity(self) -> Self {
        Self { has_validity: true, ..self }
    }

    /// Whether each cell has a validity byte.
    pub(crate) fn has_validity(&self) -> bool {
        self.has_validity
    }

    /// Whether NaN is NULL.
    pub(crate) fn nan_is_null(&self) -> bool {
        self.nan_is_null
    }

    /// Whether a value that is not NULL may be NaN.
    pub fn may_be_nan(&self) -> bool {
        !self.element.is_integer() && !self.nan_is_null
    }

    /// Returns the element that stands for NULL.
    pub fn fill(&self) -> Option<ZoneBound> {
        self.fill
    }

    /// Whether the element that stands for NULL is a zero, and zeros of either sign do.
    pub(crate) fn zeros_are_null(&self) -> bool {
        self.zeros_are_null
    }

    /// Returns the element that stands for NULL, in its Arrow type.
    pub fn fill_as<T: Element>(&self) -> Option<T::Native> {
        self.fill.map(T::from_bound)
    }

    /// Returns how values follow from the stored numbers; `None` if a reduction needs an Arrow array.
    pub fn form(&self) -> Option<Form> {
        match self.meaning {
            _ if !self.also_null.is_empty() || self.valid.is_some() => None,
            ColumnMeaning::Plain => Some(Form::Stored),
            ColumnMeaning::Packed { scale, offset }
                if self.element.is_integer() && scale.is_finite() && offset.is_finite() =>
            {
                Some(Form::Packed { scale, offset })
            }
            _ => None,
        }
    }

    /// Turns little-endian elements into the column; elements that are not `valid` are NULL.
    /// `may_hold_nulls` may be false only if no element is NaN or fill. This saves the pass that looks
    /// for them.
    ///
    /// # Errors
    /// `Internal` if the buffer does not hold whole, aligned elements, or if `valid` has another
    /// length.
    pub fn decode(
        &self,
        elements: Buffer,
        valid: Option<&NullBuffer>,
        may_hold_nulls: bool,
    ) -> Result<ArrayRef> {
        for_element_type!(self.element, T => self.typed::<T>(elements, valid, may_hold_nulls))
    }

    fn typed<T: Element>(
        &self,
        elements: Buffer,
        valid: Option<&NullBuffer>,
        may_hold_nulls: bool,
    ) -> Result<ArrayRef> {
        let values = elements_of::<T>(elements)?;
        if valid.is_some_and(|valid| valid.len() != values.len()) {
            return Err(Error::internal("the validity and the values differ in length"));
        }
        let marked = if may_hold_nulls { self.nulls::<T>(&values) } else { None };
        let nulls = NullBuffer::union(marked.as_ref(), valid);
        let array = PrimitiveArray::<T>::new(values, nulls);
        shown(array, &self.meaning)
    }

    /// Returns the null buffer of NaN and fill; `None` if no value is either. One loop per combination, so
    /// that no loop tests for what cannot occur.
    fn nulls<T: Element>(&self, values: &[T::Native]) -> Option<NullBuffer> {
        let fill = self.fill.map(T::from_bound);
        let marked = match (self.nan_is_null, fill) {
            (nan_is_null, Some(_)) if self.zeros_are_null => null_buffer(values, |value| {
                (nan_is_null & T::is_nan(value)) | (T::to_f64(value) == 0.0)
            }),
            (false, None) => None,
            (true, None) => null_buffer(values, T::is_nan),
            (false, Some(fill)) => null_buffer(values, |value| T::same_bits(value, fill)),
            (true, Some(fill)) => {
                null_buffer(values, |value| T::is_nan(value) | T::same_bits(value, fill))
            }
        };
        let also = self.also_null.iter().map(|null| T::from_bound(*null));
        let marked = also.fold(marked, |marked, null| {
            let more = null_buffer(values, |value| T::same_bits(value, null));
            NullBuffer::union(marked.as_ref(), more.as_ref())
        });
        let Some((least, greatest)) = self.valid else { return marked };
        let outside = null_buffer(values, |value| {
            let number = T::to_f64(value);
            number < least || number > greatest
        });
        NullBuffer::union(marked.as_ref(), outside.as_ref())
    }
}

/// Returns the values that numbers stand for.
fn shown<T: Element>(array: PrimitiveArray<T>, meaning: &ColumnMeaning) -> Result<ArrayRef> {
    Ok(match meaning {
        ColumnMeaning::Plain => Arc::new(array),
        ColumnMeaning::Packed { scale, offset } => {
            Arc::new(unary::<_, _, Float64Type>(&array, |value| T::to_f64(value) * scale + offset))
        }
        // A stored number is a single, so that only the product and the sum are rounded.
        ColumnMeaning::PackedInSingles { scale, offset } => {
            Arc::new(unary::<_, _, Float32Type>(&array, |value| {
                T::to_f64(value) as f32 * scale + offset
            }))
        }
        ColumnMeaning::Times(units, numbers) => match &**numbers {
            ColumnMeaning::Plain => times(&array, *units)?,
            packed => {
                let unpacked = cast(&shown(array, packed)?, &DataType::Float64)
                    .map_err(failed_to("unpack times"))?;
                times(unpacked.as_primitive::<Float64Type>(), *units)?
            }
        },
        ColumnMeaning::Categories { codes, texts } => {
            let place = |value| {
                let code = T::to_integer(value)?.try_into().ok()?;
                codes.binary_search(&code).ok().map(|at| at as u32)
            };
            let places: UInt32Array = array.iter().map(|value| value.and_then(place)).collect();
            take(texts.as_ref(), &places, None).map_err(failed_to("look up categories"))?
        }
    })
}

/// Converts numbers to CF times.
fn times<T: Element>(numbers: &PrimitiveArray<T>, units: TimeUnits) -> Result<ArrayRef> {
    let beyond = |number: f64| {
        Error::unsupported(format!(
            "the time {number} is {} {}; set decode_times = 'false' to read numbers",
            if units.has_julian_dates() { "a date that SQL lacks, or beyond" } else { "beyond" },
            units.data_type()
        ))
    };
    let time = |number| {
        let micros = match T::to_integer(number) {
            Some(integer) => units.at_integer(integer),
            None => units.at_float(T::to_f64(number)),
        };
        micros.ok_or_else(|| beyond(T::to_f64(number)))
    };
    let micros: PrimitiveArray<Int64Type> = numbers.try_unary(time)?;
    cast(&micros, &units.data_type()).map_err(failed_to("make times of numbers"))
}

/// Whether an element is zero, of either sign.
fn is_zero(element: ElementType, bits: ZoneBound) -> bool {
    for_element_type!(element, T => T::to_f64(T::from_bound(bits)) == 0.0)
}

/// Whether an element is NaN.
fn is_nan(element: ElementType, bits: ZoneBound) -> bool {
    for_element_type!(element, T => T::is_nan(T::from_bound(bits)))
}

/// Returns a null buffer, or `None` if no value is NULL. Most batches have no NULL, so a first loop
/// checks this. It vectorises and allocates nothing: it has no branch per value, only one per 1024 values.
fn null_buffer<T: Copy>(values: &[T], is_null: impl Fn(T) -> bool) -> Option<NullBuffer> {
    let any_in = |block: &[T]| block.iter().fold(false, |any, &value| any | is_null(value));
    if !values.chunks(1024).any(any_in) {
        return None;
    }
    let valid = BooleanBuffer::collect_bool(values.len(), |i| !is_null(values[i]));
    Some(NullBuffer::new(valid))
}

#[cfg(test)]
mod tests {
    use arrow::array::Array;

    use super::*;

    fn attributes(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn column(element: ElementType, pairs: &[(&str, &str)], packed: bool) -> NumberColumn {
        let (column, warnings) =
            NumberColumn::new(element, &attributes(pairs), packed, &ReadOptions::default());
        assert_eq!(warnings, [""; 0]);
        column
    }

    #[test]
    fn nan_and_the_first_declared_fill_are_null() {
        let column =
            column(ElementType::F32, &[("missing_value", "1"), ("_FillValue", "-9999")], false);
        let values = vec![1.0_f32, f32::NAN, -9999.0, 0.0];
        let array = column.decode(Buffer::from_vec(values.clone()), None, true).unwrap();
        let found: Vec<_> = array.as_primitive::<Float32Type>().iter().collect();
        assert_eq!(found, [Some(1.0), None, None, Some(0.0)]);
        assert_eq!(column.decode(Buffer::from_vec(values), None, false).unwrap().null_count(), 0);
    }

    #[test]
    fn zeros_differ_by_sign_and_integers_are_exact() {
        let signed = column(ElementType::F64, &[("_FillValue", "-0")], false);
        let array = signed.decode(Buffer::from_vec(vec![0.0_f64, -0.0]), None, true).unwrap();
        assert!(array.is_valid(0) && array.is_null(1));
        let exact = column(ElementType::I64, &[("_FillValue", "9007199254740993")], false);
        let array = exact
            .decode(
                Buffer::from_vec(vec![9_007_199_254_740_992_i64, 9_007_199_254_740_993]),
                None,
                true,
            )
            .unwrap();
        assert!(array.is_valid(0) && array.is_null(1));
    }

    #[test]
    fn several_elements_may_be_null() {
        let options = ReadOptions::default();
        let nulls = [0.0_f32, f32::NAN, -1.0].map(|null| bound(&null.to_le_bytes()));
        let column = NumberColumn::with_nulls(ElementType::F32, &nulls, &options);
        let values = vec![0.0_f32, -0.0, f32::NAN, -1.0, 1.0, 8.0];
        let found = |column: &NumberColumn| {
            let array = column.decode(Buffer::from_vec(values.clone()), None, true).unwrap();
            array.as_primitive::<Float32Type>().iter().flatten().collect::<Vec<_>>()
        };
        assert_eq!((found(&column), column.form()), (vec![1.0, 8.0], None));
        let zero = NumberColumn::with_nulls(ElementType::F32, &nulls[..2], &options);
        assert_eq!((found(&zero), zero.form()), (vec![-1.0, 1.0, 8.0], Some(Form::Stored)));
        let below = zero.within((None, Some(2.0)));
        assert_eq!((found(&below), below.form()), (vec![-1.0, 1.0], None));
    }

    #[test]
    fn numbers_may_be_times() {
        let units = attributes(&[("units", "hours since 2024-01-01")]);
        let units = TimeUnits::from_attributes(&units).unwrap().unwrap();
        let column = NumberColumn::with_nulls(ElementType::I64, &[], &ReadOptions::default());
        let column = column.with_times(units);
        let times = |hours: Vec<i64>| column.decode(Buffer::from_vec(hours), None, true);
        let found = times(vec![1, i64::MIN]).unwrap();
        assert_eq!(
            arrow::util::display::array_value_to_string(&found, 0).unwrap(),
            "2024-01-01T01:00:00"
        );
        assert!(found.is_null(1) && column.is_nullable());
        assert!(times(vec![i64::MAX]).unwrap_err().to_string().contains("decode_times"));
    }

    #[test]
    fn packed_integers_are_unpacked_after_the_fill_is_found() {
        let column = column(
            ElementType::I16,
            &[("_FillValue", "-1"), ("scale_factor", "0.5"), ("add_offset", "10")],
            true,
        );
        assert_eq!(column.data_type(), DataType::Float64);
        let array = column.decode(Buffer::from_vec(vec![4_i16, -1, -4]), None, true).unwrap();
        let found: Vec<_> = array.as_primitive::<Float64Type>().iter().collect();
        assert_eq!(found, [Some(12.0), None, Some(8.0)]);
    }

    #[test]
    fn categories_become_text() {
        let json = r#"{"codes": {"east": 0, "west": 1, "north": 7}, "missing": -1}"#;
        let column = column(ElementType::I64, &[("tetration_categories", json)], false);
        let array = column.decode(Buffer::from_vec(vec![1_i64, 7, -1, 0, 5]), None, true).unwrap();
        let found: Vec<_> = array.as_string_view().iter().collect();
        assert_eq!(found, [Some("west"), Some("north"), None, Some("east"), None]);
    }

    #[test]
    fn unusable_attributes_are_warnings() {
        let pairs = [("_FillValue", "none"), ("scale_factor", "x"), ("tetration_categories", "[")];
        let (column, warnings) =
            NumberColumn::new(ElementType::U8, &attributes(&pairs), true, &ReadOptions::default());
        assert_eq!(warnings.len(), 3, "{warnings:?}");
        assert_eq!((column.data_type(), column.is_nullable()), (DataType::UInt8, false));
        assert!(column.decode(Buffer::from_vec(vec![1_u8]), None, true).is_ok());
    }

    #[test]
    fn misaligned_buffers_are_our_bug_not_a_panic() {
        let column = column(ElementType::F64, &[], false);
        let odd = Buffer::from_vec(vec![0_u8; 17]).slice_with_length(1, 16);
        assert!(column.decode(odd, None, true).is_err());
    }
}
