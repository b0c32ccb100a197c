//! The value column: stored elements to SQL values.
//!
//! ```text
//!   element bytes ─▶ NULL where NaN or fill ─▶ as they are      (f16 … u64 keep their type)
//!                                            ├▶ × scale + offset (CF packing: Float64)
//!                                            └▶ category text    (codes of text columns: Utf8View)
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, ArrowPrimitiveType, PrimitiveArray, StringViewArray, UInt32Array};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow::compute::{take, unary};
use arrow::datatypes::{
    ArrowNativeType, DataType, Float16Type, Float32Type, Float64Type, Int16Type, Int32Type,
    Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};

use super::ReadOptions;
use crate::error::{Error, Result};
use crate::format::ElementType;

/// How the elements of one dataset become a column.
#[derive(Debug, Clone)]
pub struct ValueColumn {
    element: ElementType,
    nan_is_null: bool,
    /// The text of the declared fill value, known to parse as the element type.
    fill: Option<String>,
    meaning: Meaning,
}

/// How values can be reduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// As the numbers that are stored.
    Stored,
    /// As doubles, after CF packing is undone.
    Unpacked,
}

#[derive(Debug, Clone)]
enum Meaning {
    Plain,
    Packed { scale: f64, offset: f64 },
    Categories { codes: Vec<i64>, texts: Arc<StringViewArray> },
}

impl ValueColumn {
    /// Reads the attributes of a dataset; `packed` says whether `scale_factor` and `add_offset` are
    /// still to be applied. The second part lists attributes that could not be used.
    pub fn new(
        element: ElementType,
        attributes: &BTreeMap<String, String>,
        packed: bool,
        options: &ReadOptions,
    ) -> (Self, Vec<String>) {
        let mut warnings = Vec::new();
        let fill =
            if options.fill_as_null { fill_text(element, attributes, &mut warnings) } else { None };
        let meaning = categories(element, attributes, &mut warnings)
            .or_else(|| if packed { packing(attributes, &mut warnings) } else { None })
            .unwrap_or(Meaning::Plain);
        let nan_is_null = options.nan_as_null && !element.is_integer();
        (Self { element, nan_is_null, fill, meaning }, warnings)
    }

    /// The stored type.
    pub fn element(&self) -> ElementType {
        self.element
    }

    /// The column's type.
    pub fn data_type(&self) -> DataType {
        match self.meaning {
            Meaning::Plain => arrow_type(self.element),
            Meaning::Packed { .. } => DataType::Float64,
            Meaning::Categories { .. } => DataType::Utf8View,
        }
    }

    /// Whether a stored element can be NULL.
    pub fn is_nullable(&self) -> bool {
        self.nan_is_null
            || self.fill.is_some()
            || matches!(self.meaning, Meaning::Categories { .. })
    }

    /// Whether NaN is NULL.
    pub(super) fn nan_is_null(&self) -> bool {
        self.nan_is_null
    }

    /// Whether a value that is not NULL may be NaN.
    pub(super) fn may_be_nan(&self) -> bool {
        !self.element.is_integer() && !self.nan_is_null
    }

    /// The declared fill, as an element.
    pub(super) fn fill_as<T: Element>(&self) -> Option<T::Native> {
        self.fill.as_deref().and_then(T::parse)
    }

    /// How the column can be reduced without becoming an Arrow array; `None` if it cannot.
    pub(super) fn form(&self) -> Option<Form> {
        match self.meaning {
            Meaning::Plain => Some(Form::Stored),
            // Then NaN is free to stand for NULL.
            Meaning::Packed { scale, offset }
                if self.element.is_integer() && scale.is_finite() && offset.is_finite() =>
            {
                Some(Form::Unpacked)
            }
            _ => None,
        }
    }

    /// Turns little-endian elements into the column. `may_hold_nulls` is false where it is known
    /// that no element is NaN or fill, which saves the pass that looks for them.
    ///
    /// # Errors
    /// `Internal` if the buffer is not a whole number of aligned elements.
    pub fn decode(&self, elements: Buffer, may_hold_nulls: bool) -> Result<ArrayRef> {
        match self.element {
            ElementType::F16 => self.typed::<Float16Type>(elements, may_hold_nulls),
            ElementType::F32 => self.typed::<Float32Type>(elements, may_hold_nulls),
            ElementType::F64 => self.typed::<Float64Type>(elements, may_hold_nulls),
            ElementType::I16 => self.typed::<Int16Type>(elements, may_hold_nulls),
            ElementType::I32 => self.typed::<Int32Type>(elements, may_hold_nulls),
            ElementType::I64 => self.typed::<Int64Type>(elements, may_hold_nulls),
            ElementType::U8 => self.typed::<UInt8Type>(elements, may_hold_nulls),
            ElementType::U16 => self.typed::<UInt16Type>(elements, may_hold_nulls),
            ElementType::U32 => self.typed::<UInt32Type>(elements, may_hold_nulls),
            ElementType::U64 => self.typed::<UInt64Type>(elements, may_hold_nulls),
        }
    }

    fn typed<T: Element>(&self, elements: Buffer, may_hold_nulls: bool) -> Result<ArrayRef> {
        let size = size_of::<T::Native>();
        if !elements.len().is_multiple_of(size) || elements.as_ptr().align_offset(size) != 0 {
            return Err(Error::internal("a buffer that is not made of whole, aligned elements"));
        }
        let values = ScalarBuffer::<T::Native>::from(elements);
        let nulls = if may_hold_nulls { self.nulls::<T>(&values) } else { None };
        let array = PrimitiveArray::<T>::new(values, nulls);
        Ok(match &self.meaning {
            Meaning::Plain => Arc::new(array),
            Meaning::Packed { scale, offset } => {
                Arc::new(unary::<_, _, Float64Type>(&array, |value| {
                    T::to_f64(value) * scale + offset
                }))
            }
            Meaning::Categories { codes, texts } => {
                let place =
                    |value| codes.binary_search(&T::to_i64(value)?).ok().map(|at| at as u32);
                let places: UInt32Array = array.iter().map(|value| value.and_then(place)).collect();
                take(texts.as_ref(), &places, None)
                    .map_err(|error| Error::internal(error.to_string()))?
            }
        })
    }

    fn nulls<T: Element>(&self, values: &[T::Native]) -> Option<NullBuffer> {
        let fill = self.fill.as_deref().and_then(T::parse);
        match (self.nan_is_null, fill) {
            (false, None) => None,
            (true, None) => null_buffer(values, T::is_nan),
            (false, Some(fill)) => null_buffer(values, |value| T::same_bits(value, fill)),
            (true, Some(fill)) => {
                null_buffer(values, |value| T::is_nan(value) | T::same_bits(value, fill))
            }
        }
    }
}

/// A null buffer, or `None` if no value is NULL. Most batches have none, so that is found out first,
/// with a loop that vectorises and allocates nothing.
fn null_buffer<T: Copy>(values: &[T], is_null: impl Fn(T) -> bool) -> Option<NullBuffer> {
    let any_in = |block: &[T]| block.iter().fold(false, |any, &value| any | is_null(value));
    if !values.chunks(1024).any(any_in) {
        return None;
    }
    let valid = BooleanBuffer::collect_bool(values.len(), |i| !is_null(values[i]));
    Some(NullBuffer::new(valid))
}

/// The Arrow type of stored elements.
fn arrow_type(element: ElementType) -> DataType {
    match element {
        ElementType::F16 => DataType::Float16,
        ElementType::F32 => DataType::Float32,
        ElementType::F64 => DataType::Float64,
        ElementType::I16 => DataType::Int16,
        ElementType::I32 => DataType::Int32,
        ElementType::I64 => DataType::Int64,
        ElementType::U8 => DataType::UInt8,
        ElementType::U16 => DataType::UInt16,
        ElementType::U32 => DataType::UInt32,
        ElementType::U64 => DataType::UInt64,
    }
}

/// The first fill attribute there is, if it is a value of the element type.
fn fill_text(
    element: ElementType,
    attributes: &BTreeMap<String, String>,
    warnings: &mut Vec<String>,
) -> Option<String> {
    let (key, text) = ["_FillValue", "missing_value", "fill_value"]
        .iter()
        .find_map(|key| Some((key, attributes.get(*key)?)))?;
    let parses = match element {
        ElementType::F16 => Float16Type::parse(text).is_some(),
        ElementType::F32 => Float32Type::parse(text).is_some(),
        ElementType::F64 => Float64Type::parse(text).is_some(),
        ElementType::I16 => Int16Type::parse(text).is_some(),
        ElementType::I32 => Int32Type::parse(text).is_some(),
        ElementType::I64 => Int64Type::parse(text).is_some(),
        ElementType::U8 => UInt8Type::parse(text).is_some(),
        ElementType::U16 => UInt16Type::parse(text).is_some(),
        ElementType::U32 => UInt32Type::parse(text).is_some(),
        ElementType::U64 => UInt64Type::parse(text).is_some(),
    };
    if !parses {
        warnings.push(format!(
            "attribute {key} = \"{text}\" is not a value of type {element}; ignored"
        ));
    }
    parses.then(|| text.clone())
}

/// CF packing, `value = stored * scale_factor + add_offset`.
fn packing(attributes: &BTreeMap<String, String>, warnings: &mut Vec<String>) -> Option<Meaning> {
    let mut number =
        |key: &str, default: f64| match attributes.get(key).map(|text| (text, text.trim().parse()))
        {
            None => Some(default),
            Some((_, Ok(value))) => Some(value),
            Some((text, Err(_))) => {
                warnings.push(format!(
                    "attribute {key} = \"{text}\" is not a number; values are not unpacked"
                ));
                None
            }
        };
    Some(Meaning::Packed {
        scale: number("scale_factor", 1.0)?,
        offset: number("add_offset", 0.0)?,
    })
}

/// Text columns that the converter stored as integer codes: `tetration_categories` holds
/// `{"codes": {"text": code, …}, "missing": code}`. Codes not listed, `missing` above all, are NULL.
fn categories(
    element: ElementType,
    attributes: &BTreeMap<String, String>,
    warnings: &mut Vec<String>,
) -> Option<Meaning> {
    #[derive(serde::Deserialize)]
    struct Categories {
        codes: BTreeMap<String, i64>,
    }
    let json = attributes.get("tetration_categories").filter(|_| element.is_integer())?;
    let parsed: Categories = match serde_json::from_str(json) {
        Ok(parsed) => parsed,
        Err(error) => {
            warnings.push(format!(
                "attribute tetration_categories is not the JSON expected ({error}); ignored"
            ));
            return None;
        }
    };
    let mut pairs: Vec<(i64, String)> =
        parsed.codes.into_iter().map(|(text, code)| (code, text)).collect();
    pairs.sort();
    pairs.dedup_by_key(|(code, _)| *code);
    let (codes, texts): (Vec<i64>, Vec<String>) = pairs.into_iter().unzip();
    Some(Meaning::Categories { codes, texts: Arc::new(StringViewArray::from_iter_values(texts)) })
}

/// What the stored element types have in common.
pub(super) trait Element: ArrowPrimitiveType {
    /// Reads a fill value as the reference implementation does: as text of the element type.
    fn parse(text: &str) -> Option<Self::Native>;
    fn is_nan(value: Self::Native) -> bool;
    fn same_bits(a: Self::Native, b: Self::Native) -> bool;
    fn to_f64(value: Self::Native) -> f64;
    fn to_i64(value: Self::Native) -> Option<i64>;
}

macro_rules! integer_elements {
    ($($t:ty),*) => {$(
        impl Element for $t {
            fn parse(text: &str) -> Option<Self::Native> { text.trim().parse().ok() }
            fn is_nan(_: Self::Native) -> bool { false }
            fn same_bits(a: Self::Native, b: Self::Native) -> bool { a == b }
            fn to_f64(value: Self::Native) -> f64 { value as f64 }
            fn to_i64(value: Self::Native) -> Option<i64> { value.to_i64() }
        }
    )*};
}

integer_elements!(Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type);

macro_rules! float_elements {
    ($($t:ty, $parse:expr);*) => {$(
        impl Element for $t {
            fn parse(text: &str) -> Option<Self::Native> { $parse(text.trim()) }
            fn is_nan(value: Self::Native) -> bool { value.is_nan() }
            fn same_bits(a: Self::Native, b: Self::Native) -> bool { a.to_bits() == b.to_bits() }
            fn to_f64(value: Self::Native) -> f64 { f64::from(value) }
            fn to_i64(_: Self::Native) -> Option<i64> { None }
        }
    )*};
}

float_elements!(
    Float16Type, |text: &str| text.parse().ok().map(half::f16::from_f32);
    Float32Type, |text: &str| text.parse().ok();
    Float64Type, |text: &str| text.parse().ok()
);

#[cfg(test)]
mod tests {
    use arrow::array::{Array, AsArray};

    use super::*;

    fn attributes(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn column(element: ElementType, pairs: &[(&str, &str)], packed: bool) -> ValueColumn {
        let (column, warnings) =
            ValueColumn::new(element, &attributes(pairs), packed, &ReadOptions::default());
        assert_eq!(warnings, [""; 0]);
        column
    }

    #[test]
    fn nan_and_the_first_declared_fill_are_null() {
        let column =
            column(ElementType::F32, &[("missing_value", "1"), ("_FillValue", "-9999")], false);
        let values = vec![1.0_f32, f32::NAN, -9999.0, 0.0];
        let array = column.decode(Buffer::from_vec(values.clone()), true).unwrap();
        let found: Vec<_> = array.as_primitive::<Float32Type>().iter().collect();
        assert_eq!(found, [Some(1.0), None, None, Some(0.0)]);
        assert_eq!(column.decode(Buffer::from_vec(values), false).unwrap().null_count(), 0);
    }

    #[test]
    fn zeros_differ_by_sign_and_integers_are_exact() {
        let signed = column(ElementType::F64, &[("_FillValue", "-0")], false);
        let array = signed.decode(Buffer::from_vec(vec![0.0_f64, -0.0]), true).unwrap();
        assert!(array.is_valid(0) && array.is_null(1));
        let exact = column(ElementType::I64, &[("_FillValue", "9007199254740993")], false);
        let array = exact
            .decode(Buffer::from_vec(vec![9_007_199_254_740_992_i64, 9_007_199_254_740_993]), true)
            .unwrap();
        assert!(array.is_valid(0) && array.is_null(1));
    }

    #[test]
    fn packed_integers_are_unpacked_after_the_fill_is_found() {
        let column = column(
            ElementType::I16,
            &[("_FillValue", "-1"), ("scale_factor", "0.5"), ("add_offset", "10")],
            true,
        );
        assert_eq!(column.data_type(), DataType::Float64);
        let array = column.decode(Buffer::from_vec(vec![4_i16, -1, -4]), true).unwrap();
        let found: Vec<_> = array.as_primitive::<Float64Type>().iter().collect();
        assert_eq!(found, [Some(12.0), None, Some(8.0)]);
    }

    #[test]
    fn categories_become_text() {
        let json = r#"{"codes": {"east": 0, "west": 1, "north": 7}, "missing": -1}"#;
        let column = column(ElementType::I64, &[("tetration_categories", json)], false);
        let array = column.decode(Buffer::from_vec(vec![1_i64, 7, -1, 0, 5]), true).unwrap();
        let found: Vec<_> = array.as_string_view().iter().collect();
        assert_eq!(found, [Some("west"), Some("north"), None, Some("east"), None]);
    }

    #[test]
    fn unusable_attributes_are_warnings() {
        let pairs = [("_FillValue", "none"), ("scale_factor", "x"), ("tetration_categories", "[")];
        let (column, warnings) =
            ValueColumn::new(ElementType::U8, &attributes(&pairs), true, &ReadOptions::default());
        assert_eq!(warnings.len(), 3, "{warnings:?}");
        assert_eq!((column.data_type(), column.is_nullable()), (DataType::UInt8, false));
        assert!(column.decode(Buffer::from_vec(vec![1_u8]), true).is_ok());
    }

    #[test]
    fn misaligned_buffers_are_our_bug_not_a_panic() {
        let column = column(ElementType::F64, &[], false);
        let odd = Buffer::from_vec(vec![0_u8; 17]).slice_with_length(1, 16);
        assert!(column.decode(odd, true).is_err());
    }
}
