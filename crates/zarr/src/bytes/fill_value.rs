//! Fill values: the cells of chunks that are absent.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use half::f16;
use serde_json::Value;

use super::json::integer;
use gridfusion_cf::hierarchy::CellType;
use gridfusion_core::format::ElementType;
use gridfusion_core::{Error, Result};

/// Returns the bytes of a cell with this fill value, little-endian. `null` gives zeros, which zarr-python shows
/// for absent chunks.
///
/// # Errors
/// `Corrupt` for a value that is not of the cell's type.
pub(super) fn fill_bytes(value: &Value, cell: &CellType) -> Result<Vec<u8>> {
    let width = usize::try_from(cell.width().unwrap_or_default()).unwrap_or_default();
    if value.is_null() {
        return Ok(vec![0; width]);
    }
    let wrong = || {
        let message = format!("the fill value {value} is not a value of type {cell}");
        Error::corrupt_region("metadata", message)
    };
    let fits = |bytes: &[u8]| cell.width().is_none() || bytes.len() <= width;
    let bytes = match cell {
        CellType::Number(element) | CellType::Enumeration { index: element, .. } => {
            number(value, *element)
        }
        CellType::Boolean => boolean(value).map(|yes| vec![u8::from(yes)]),
        CellType::Complex(element) => complex(value, *element),
        CellType::TimePoint(_) | CellType::TimeSpan(_) => match value.as_str() {
            Some("NaT") => Some(i64::MIN.to_le_bytes().to_vec()),
            _ => number(value, ElementType::I64),
        },
        CellType::FixedUtf32(points) => match value {
            // zarr-python writes 0 where it means the empty text.
            Value::Number(_) => Some(vec![]),
            _ => value.as_str().map(|text| {
                text.chars()
                    .take(*points as usize)
                    .flat_map(|it| u32::from(it).to_le_bytes())
                    .collect()
            }),
        },
        CellType::FixedUtf8(_) | CellType::FixedBytes(_) | CellType::Bytes => {
            encoded(value).filter(|bytes| fits(bytes)).or_else(|| {
                // NCZarr writes characters as they are.
                value.as_str().map(|text| text.as_bytes().to_vec()).filter(|text| fits(text))
            })
        }
        // Zarr has none of these.
        CellType::Record(_) | CellType::Array(..) | CellType::List(_) => None,
        CellType::Text => match value {
            Value::Number(_) => Some(vec![]),
            _ => value.as_str().map(|text| text.as_bytes().to_vec()),
        },
    };
    let mut bytes = bytes.ok_or_else(wrong)?;
    if cell.width().is_some() {
        if bytes.len() > width {
            return Err(wrong());
        }
        bytes.resize(width, 0);
    }
    Ok(bytes)
}

/// Returns a number: decimal, a word such as `NaN`, or the bits of a float in hexadecimal.
fn number(value: &Value, element: ElementType) -> Option<Vec<u8>> {
    if let Some(bits) = value.as_str().and_then(|text| text.strip_prefix("0x")) {
        let bits = u64::from_str_radix(bits, 16).ok()?;
        return Some(bits.to_le_bytes()[..element.size() as usize].to_vec());
    }
    let float = match value {
        Value::Bool(yes) => f64::from(u8::from(*yes)),
        _ => value.as_f64().or_else(|| word(value.as_str()?))?,
    };
    Some(match element {
        ElementType::F16 => f16::from_f64(float).to_le_bytes().to_vec(),
        ElementType::F32 => (float as f32).to_le_bytes().to_vec(),
        ElementType::F64 => float.to_le_bytes().to_vec(),
        _ => {
            // Version 2 may write a whole number with a decimal point.
            let whole = (float.fract() == 0.0 && float.abs() < 1e15).then_some(float as i128);
            let whole = integer(value).or(whole)?;
            let bits = 8 * element.size() as u32;
            let (least, greatest) = match element.is_unsigned() {
                true => (0, (1_i128 << bits) - 1),
                false => (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1),
            };
            let fits = (least..=greatest).contains(&whole);
            return fits.then(|| whole.to_le_bytes()[..element.size() as usize].to_vec());
        }
    })
}

fn word(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

fn boolean(value: &Value) -> Option<bool> {
    value.as_bool().or_else(|| integer(value).map(|number| number != 0))
}

/// Returns a complex number: a list of two, or one number, which is the real part.
fn complex(value: &Value, element: ElementType) -> Option<Vec<u8>> {
    match value.as_array().map(Vec::as_slice) {
        Some([real, imaginary]) => {
            Some([number(real, element)?, number(imaginary, element)?].concat())
        }
        Some(_) => None,
        None => number(value, element),
    }
}

/// Returns bytes: a list of numbers, base64, or 0 for none.
fn encoded(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::Array(bytes) => bytes
            .iter()
            .map(|byte| integer(byte).and_then(|byte| u8::try_from(byte).ok()))
            .collect(),
        Value::Number(_) => Some(vec![]),
        Value::String(text) => BASE64_STANDARD.decode(text).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use gridfusion_core::format::TimeUnit;

    #[test]
    fn fill_values_of_every_type() {
        let is = |json: Value, cell: CellType, bytes: &[u8]| {
            assert_eq!(fill_bytes(&json, &cell).unwrap(), bytes, "{json} {cell}");
        };
        let number = CellType::Number;
        is(json!(null), number(ElementType::I16), &[0, 0]);
        is(json!(-999), number(ElementType::I16), &(-999_i16).to_le_bytes());
        is(json!(-999.0), number(ElementType::I16), &(-999_i16).to_le_bytes());
        is(json!(u64::MAX), number(ElementType::U64), &[255; 8]);
        is(json!(1.5), number(ElementType::F16), &f16::from_f32(1.5).to_le_bytes());
        is(json!("Infinity"), number(ElementType::F32), &f32::INFINITY.to_le_bytes());
        is(json!("0x7fc00001"), number(ElementType::F32), &0x7fc0_0001_u32.to_le_bytes());
        is(json!(true), CellType::Boolean, &[1]);
        is(json!(1), CellType::Boolean, &[1]);
        let pair = [1.0_f32.to_le_bytes(), (-1.0_f32).to_le_bytes()].concat();
        is(json!([1.0, -1.0]), CellType::Complex(ElementType::F32), &pair);
        is(json!("NaT"), CellType::TimePoint(TimeUnit::Day), &i64::MIN.to_le_bytes());
        is(json!(i64::MIN), CellType::TimeSpan(TimeUnit::Day), &i64::MIN.to_le_bytes());
        is(json!("ab"), CellType::FixedUtf32(3), &[97, 0, 0, 0, 98, 0, 0, 0, 0, 0, 0, 0]);
        is(json!("YWI="), CellType::FixedUtf8(3), b"ab\0");
        is(json!(0), CellType::FixedUtf8(3), &[0; 3]);
        is(json!("\u{0}"), CellType::FixedUtf8(1), &[0]);
        is(json!("-"), CellType::FixedUtf8(1), b"-");
        is(json!("LQ=="), CellType::FixedUtf8(1), b"-");
        is(json!(""), CellType::FixedUtf8(1), &[0]);
        is(json!([1, 2]), CellType::FixedBytes(2), &[1, 2]);
        is(json!("none"), CellType::Text, b"none");
    }

    #[test]
    fn values_of_another_type_are_refused() {
        for (json, cell) in [
            (json!(256), CellType::Number(ElementType::U8)),
            (json!(-1), CellType::Number(ElementType::U8)),
            (json!(0.5), CellType::Number(ElementType::I32)),
            (json!("NaN"), CellType::Number(ElementType::I32)),
            (json!("none"), CellType::Number(ElementType::F32)),
            (json!([1, 2, 3]), CellType::FixedBytes(2)),
            (json!([1]), CellType::Complex(ElementType::F64)),
            (json!("YWJjZA=="), CellType::FixedUtf8(3)),
        ] {
            assert!(fill_bytes(&json, &cell).is_err(), "{json} {cell}");
        }
    }
}
