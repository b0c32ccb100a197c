//! Declarations in attributes: fill values, CF packing and categories.
//!
//! Attributes are text. Numbers among them are decimal, or doubles in base64: `AAAAAICHw8A=` is -9999.
//! xarray writes the latter into Zarr v3, and the reference converter copies them.
//!
//! NULL is NaN, and the first of `_FillValue`, `missing_value` and `fill_value`, compared bit by bit. Packing is undone
//! for integers, and for data that came from Zarr, which the converter copies packed. It is never undone for floats that
//! the converter has already decoded.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::StringViewArray;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use crate::array::cf_time::TimeUnits;
use crate::array::element::{Element, for_element_type};
use crate::format::{ElementType, ZoneBound};

/// How a column turns stored numbers into values.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ColumnMeaning {
    /// The stored numbers themselves.
    Plain,
    /// CF packing: `value = stored * scale + offset`, computed in doubles.
    Packed { scale: f64, offset: f64 },
    /// CF packing that is computed in singles.
    PackedInSingles { scale: f32, offset: f32 },
    /// CF times: numbers of units, since a reference or alone. The numbers may be packed.
    Times(TimeUnits, Box<ColumnMeaning>),
    /// Text: codes in ascending order, without duplicates, and the text of each code at the same position.
    Categories { codes: Vec<i64>, texts: Arc<StringViewArray> },
}

/// Returns the first fill attribute, if it is a value of the element type. A later attribute does not count,
/// even if the first cannot be parsed; see crates/tet/FORMAT.md, section 9.
pub fn declared_fill(
    element: ElementType,
    attributes: &BTreeMap<String, String>,
    misunderstood: &mut Vec<String>,
) -> Option<ZoneBound> {
    let (key, text) = ["_FillValue", "missing_value", "fill_value"]
        .iter()
        .find_map(|key| Some((key, attributes.get(*key)?)))?;
    let fill = element_of(element, text);
    if fill.is_none() {
        misunderstood.push(format!(
            "attribute {key} = \"{text}\" is not a value of type {element}; missing elements are shown as numbers, not as NULL"
        ));
    }
    fill
}

/// Parses an element of a type: decimal, or a double in base64.
pub fn element_of(element: ElementType, text: &str) -> Option<ZoneBound> {
    for_element_type!(element, T => stored::<T>(text))
}

/// Parses a fill value in the form of its type, such as `-999`, or as another number: `-999.0` or base64.
fn stored<T: Element>(text: &str) -> Option<ZoneBound> {
    let element = T::parse(text).or_else(|| number(text).and_then(T::from_f64));
    element.map(T::to_bound)
}

/// Parses a number in decimal or base64.
fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    text.parse().ok().or_else(|| encoded(text))
}

/// Decodes a little-endian double from base64. Such text ends in `=`, so it is no decimal number.
fn encoded(text: &str) -> Option<f64> {
    /// The length of eight bytes in base64: four letters per three bytes, rounded up.
    const LETTERS: usize = 12;
    if text.len() != LETTERS {
        return None;
    }
    let mut bytes = [0; LETTERS / 4 * 3];
    let len = BASE64_STANDARD.decode_slice(text, &mut bytes).ok()?;
    bytes[..len].try_into().ok().map(f64::from_le_bytes)
}

/// Parses CF packing: `value = stored * scale_factor + add_offset`.
pub(super) fn packing(
    attributes: &BTreeMap<String, String>,
    misunderstood: &mut Vec<String>,
) -> Option<ColumnMeaning> {
    let mut factor = |key: &str, default: f64| match attributes
        .get(key)
        .map(|text| (text, number(text)))
    {
        None => Some(default),
        Some((_, Some(value))) => Some(value),
        Some((text, None)) => {
            misunderstood.push(format!(
                    "attribute {key} = \"{text}\" is not a number; values are shown as stored, not unpacked"
                ));
            None
        }
    };
    // Both are parsed before the first `?`, so that each wrong one is reported.
    let (scale, offset) = (factor("scale_factor", 1.0), factor("add_offset", 0.0));
    Some(ColumnMeaning::Packed { scale: scale?, offset: offset? })
}

/// Parses the texts of integer codes. The converter stores text columns as codes, and
/// `tetration_categories` as `{"codes": {"text": code, …}, "missing": code}`. Codes without a text are
/// NULL, including `missing`.
pub(super) fn categories(
    element: ElementType,
    attributes: &BTreeMap<String, String>,
    misunderstood: &mut Vec<String>,
) -> Option<ColumnMeaning> {
    #[derive(serde::Deserialize)]
    struct Categories {
        codes: BTreeMap<String, i64>,
    }
    let json = attributes.get("tetration_categories").filter(|_| element.is_integer())?;
    let parsed: Categories = match serde_json::from_str(json) {
        Ok(parsed) => parsed,
        Err(error) => {
            misunderstood.push(format!(
                "attribute tetration_categories is not the JSON expected ({error}); the column shows codes instead of text"
            ));
            return None;
        }
    };
    let mut pairs: Vec<(i64, String)> =
        parsed.codes.into_iter().map(|(text, code)| (code, text)).collect();
    // If several texts have one code, the alphabetically first stays.
    pairs.sort();
    pairs.dedup_by_key(|(code, _)| *code);
    let (codes, texts): (Vec<i64>, Vec<String>) = pairs.into_iter().unzip();
    Some(ColumnMeaning::Categories {
        codes,
        texts: Arc::new(StringViewArray::from_iter_values(texts)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::bound;

    fn fill(element: ElementType, text: &str) -> Option<ZoneBound> {
        let attributes = BTreeMap::from([("_FillValue".to_owned(), text.to_owned())]);
        let mut misunderstood = vec![];
        let fill = declared_fill(element, &attributes, &mut misunderstood);
        assert_eq!(fill.is_none(), misunderstood.len() == 1, "{text}: {misunderstood:?}");
        fill
    }

    /// The numbers are encoded by Python: `base64.b64encode(struct.pack("<d", number))`.
    #[test]
    fn doubles_in_base64_are_elements_of_every_type() {
        let minus_9999 = "AAAAAICHw8A=";
        assert_eq!(number(minus_9999), Some(-9999.0));
        assert_eq!(number("AAAAgB2vFUQ="), Some(f64::from(1e20_f32)));
        assert_eq!(number("QIy1eB2vFUQ="), Some(1e20));
        assert_eq!(number(" AAAAAAAA8D8= "), Some(1.0));
        assert!(number("AAAAAAAA+H8=").is_some_and(f64::is_nan));
        let is = |element, bytes: &[u8]| assert_eq!(fill(element, minus_9999), Some(bound(bytes)));
        is(ElementType::F16, &half::f16::from_f32(-9999.0).to_le_bytes());
        is(ElementType::F32, &(-9999_f32).to_le_bytes());
        is(ElementType::F64, &(-9999_f64).to_le_bytes());
        is(ElementType::I16, &(-9999_i16).to_le_bytes());
        is(ElementType::I32, &(-9999_i32).to_le_bytes());
        is(ElementType::I64, &(-9999_i64).to_le_bytes());
        for element in [ElementType::I8, ElementType::U8, ElementType::U64] {
            assert_eq!(fill(element, minus_9999), None, "{element}");
        }
        assert_eq!(fill(ElementType::U8, "AAAAAADgb0A="), Some(bound(&[255])));
        assert_eq!(fill(ElementType::F32, "AAAAgB2vFUQ="), Some(bound(&1e20_f32.to_le_bytes())));
    }

    #[test]
    fn what_is_no_number_is_no_fill() {
        for text in
            ["", "none", "AAAAgB2vFUQ", "AAAAgB2vFUQ==", "AAAA", "AAAAgB2vFUQA", "é234567890a"]
        {
            assert_eq!(fill(ElementType::F64, text), None, "{text}");
        }
    }

    #[test]
    fn integers_take_whole_numbers_however_they_are_written() {
        assert_eq!(fill(ElementType::I16, "-9999.0"), Some(bound(&(-9999_i16).to_le_bytes())));
        assert_eq!(fill(ElementType::I32, "1e3"), Some(bound(&1000_i32.to_le_bytes())));
        let exact = 9_007_199_254_740_993_i64;
        assert_eq!(fill(ElementType::I64, &exact.to_string()), Some(bound(&exact.to_le_bytes())));
        for text in ["0.5", "NaN", "inf", "32768", "1e300"] {
            assert_eq!(fill(ElementType::I16, text), None, "{text}");
        }
        assert_eq!(fill(ElementType::I64, "9223372036854775808"), None);
    }
}
