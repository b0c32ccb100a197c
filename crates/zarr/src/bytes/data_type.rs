//! Data types of both versions, as cells and their byte order.
//!
//! Version 2 uses the type strings of numpy, such as `<f4` and `|S3`. Version 3 uses names, such as `float32`, and
//! objects with a name and a configuration.

use serde_json::Value;

use super::json::{Object, integer};
use gridfusion_cf::hierarchy::{self, CellType};
use gridfusion_core::format::{ByteOrder, ElementType, TimeUnit};
use gridfusion_core::{Error, Result};

/// The longest fixed-size text or byte string in bytes. A cell of this size is kept as the fill value of each array, so a
/// few bytes of metadata must not ask for much.
const MAX_WIDTH: i128 = 1 << 16;

/// Parses a type of version 3.
///
/// # Errors
/// `Unsupported` for a type that gridfusion does not read, with its name.
pub(super) fn version3(value: &Value) -> Result<CellType> {
    let nothing = Object::new();
    let (name, configuration) = match value {
        Value::String(name) => (name.as_str(), &nothing),
        Value::Object(object) => {
            let name = object.get("name").and_then(Value::as_str).unwrap_or_default();
            let configuration = object.get("configuration").and_then(Value::as_object);
            (name, configuration.unwrap_or(&nothing))
        }
        _ => return Err(unknown(value)),
    };
    let bytes = || {
        let bytes = configuration.get("length_bytes").and_then(integer);
        let bytes = bytes.filter(|bytes| (0..=MAX_WIDTH).contains(bytes));
        bytes.and_then(|bytes| u32::try_from(bytes).ok()).ok_or_else(|| unknown(value))
    };
    let unit = || {
        let unit = configuration.get("unit").and_then(Value::as_str).and_then(TimeUnit::from_numpy);
        unit.filter(|_| multiple(value) >= 1).ok_or_else(|| unknown(value))
    };
    Ok(match name {
        "bool" => CellType::Boolean,
        "complex64" | "complex_float32" => CellType::Complex(ElementType::F32),
        "complex128" | "complex_float64" => CellType::Complex(ElementType::F64),
        "string" => CellType::Text,
        "bytes" | "variable_length_bytes" => CellType::Bytes,
        "fixed_length_utf32" => CellType::FixedUtf32(bytes()? / 4),
        "null_terminated_bytes" => CellType::FixedUtf8(bytes()?),
        "raw_bytes" => CellType::FixedBytes(bytes()?),
        "numpy.datetime64" => CellType::TimePoint(unit()?),
        "numpy.timedelta64" => CellType::TimeSpan(unit()?),
        _ => match (number(name), name.strip_prefix('r').map(str::parse::<u32>)) {
            (Some(element), _) => CellType::Number(element),
            (None, Some(Ok(bits)))
                if bits % 8 == 0 && (1..=MAX_WIDTH * 8).contains(&i128::from(bits)) =>
            {
                CellType::FixedBytes(bits / 8)
            }
            _ => return Err(unknown(value)),
        },
    })
}

fn number(name: &str) -> Option<ElementType> {
    Some(match name {
        "int8" => ElementType::I8,
        "int16" => ElementType::I16,
        "int32" => ElementType::I32,
        "int64" => ElementType::I64,
        "uint8" => ElementType::U8,
        "uint16" => ElementType::U16,
        "uint32" => ElementType::U32,
        "uint64" => ElementType::U64,
        "float16" => ElementType::F16,
        "float32" => ElementType::F32,
        "float64" => ElementType::F64,
        _ => return None,
    })
}

/// Parses a type of version 2, with the order of its bytes. `object` is the type of items of `|O`, which only a
/// filter tells.
///
/// # Errors
/// `Unsupported` for a type that gridfusion does not read, with its text.
pub(super) fn version2(value: &Value, object: Option<CellType>) -> Result<(CellType, ByteOrder)> {
    let text = value.as_str().ok_or_else(|| unknown(value))?;
    let mut letters = text.chars();
    let (order, kind) = (letters.next(), letters.next());
    let rest = letters.as_str();
    let len = || {
        let len = rest.parse::<u32>().ok().filter(|len| i128::from(*len) * 4 <= MAX_WIDTH);
        len.ok_or_else(|| unknown(value))
    };
    let cell = match (kind, rest) {
        (Some('b'), "1") => CellType::Boolean,
        (Some('c'), "8") => CellType::Complex(ElementType::F32),
        (Some('c'), "16") => CellType::Complex(ElementType::F64),
        (Some('U'), _) => CellType::FixedUtf32(len()?),
        (Some('S' | 'a'), _) => CellType::FixedUtf8(len()?),
        (Some('V'), _) => CellType::FixedBytes(len()?),
        (Some('O'), _) => object.ok_or_else(|| unknown(value))?,
        (Some('M'), _) => CellType::TimePoint(numpy_unit(rest).ok_or_else(|| unknown(value))?),
        (Some('m'), _) => CellType::TimeSpan(numpy_unit(rest).ok_or_else(|| unknown(value))?),
        (Some(kind @ ('i' | 'u' | 'f')), _) => {
            let bits = rest.parse::<u32>().ok().and_then(|bytes| bytes.checked_mul(8));
            let prefix = match kind {
                'i' => "int",
                'u' => "uint",
                _ => "float",
            };
            let element = bits.and_then(|bits| number(&format!("{prefix}{bits}")));
            CellType::Number(element.ok_or_else(|| unknown(value))?)
        }
        _ => return Err(unknown(value)),
    };
    let byte_order = match order {
        Some('>') => ByteOrder::big(cell.word() as usize),
        Some('<' | '|') => ByteOrder::Little,
        _ => return Err(unknown(value)),
    };
    Ok((cell, byte_order))
}

/// Parses the unit of numpy's times, `8[ns]` or `8[25s]`.
fn numpy_unit(text: &str) -> Option<TimeUnit> {
    Some(hierarchy::numpy_unit(text.strip_prefix("8[")?.strip_suffix(']')?)?.1)
}

/// Returns the units per count of times, in both versions: 25 for `<M8[25s]`. 0 if it is no such number.
pub(super) fn multiple(value: &Value) -> i64 {
    match value {
        Value::String(text) => {
            let unit = text.split_once("8[").and_then(|(_, unit)| unit.strip_suffix(']'));
            unit.and_then(hierarchy::numpy_unit).map_or(1, |(multiple, _)| multiple)
        }
        other => {
            let scale = other.get("configuration").and_then(|it| it.get("scale_factor"));
            let scale = scale.map_or(Some(1), integer).and_then(|it| i32::try_from(it).ok());
            scale.map_or(0, |scale| i64::from(scale.max(0)))
        }
    }
}

fn unknown(value: &Value) -> Error {
    Error::unsupported(format!("the data type {value}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn types_of_version_2() {
        let is = |text: &str, cell: CellType, order: ByteOrder| {
            assert_eq!(version2(&json!(text), Some(CellType::Text)).unwrap(), (cell, order));
        };
        is("<f4", CellType::Number(ElementType::F32), ByteOrder::Little);
        is(">i2", CellType::Number(ElementType::I16), ByteOrder::Big { width: 2 });
        is("|u1", CellType::Number(ElementType::U8), ByteOrder::Little);
        is(">i1", CellType::Number(ElementType::I8), ByteOrder::Little);
        is("|b1", CellType::Boolean, ByteOrder::Little);
        is(">c16", CellType::Complex(ElementType::F64), ByteOrder::Big { width: 8 });
        is(">U3", CellType::FixedUtf32(3), ByteOrder::Big { width: 4 });
        is("|S5", CellType::FixedUtf8(5), ByteOrder::Little);
        is("<M8[ns]", CellType::TimePoint(TimeUnit::Nanosecond), ByteOrder::Little);
        is("<M8[25s]", CellType::TimePoint(TimeUnit::Second), ByteOrder::Little);
        is(">m8[D]", CellType::TimeSpan(TimeUnit::Day), ByteOrder::Big { width: 8 });
        is("|O", CellType::Text, ByteOrder::Little);
        for wrong in [
            json!("<f16"),
            json!("<M8[0s]"),
            json!("f4"),
            json!([["a", "<i4"]]),
            json!("<U9999999"),
            json!(""),
        ] {
            assert!(version2(&wrong, None).is_err(), "{wrong}");
        }
        assert!(version2(&json!("|O"), None).is_err());
    }

    #[test]
    fn types_of_version_3() {
        let is = |json: Value, cell: CellType| assert_eq!(version3(&json).unwrap(), cell, "{json}");
        is(json!("uint16"), CellType::Number(ElementType::U16));
        is(json!("r24"), CellType::FixedBytes(3));
        is(json!("string"), CellType::Text);
        is(
            json!({"name": "fixed_length_utf32", "configuration": {"length_bytes": 8}}),
            CellType::FixedUtf32(2),
        );
        let time = |unit: &str, scale: u32| json!({"name": "numpy.datetime64", "configuration": {"unit": unit, "scale_factor": scale}});
        is(time("s", 1), CellType::TimePoint(TimeUnit::Second));
        is(time("s", 25), CellType::TimePoint(TimeUnit::Second));
        assert_eq!([multiple(&time("s", 25)), multiple(&time("s", 0))], [25, 0]);
        assert_eq!(["<M8[25s]", "<M8[s]", "<i4"].map(|it| multiple(&json!(it))), [25, 1, 1]);
        let bytes = |len: i64| json!({"name": "null_terminated_bytes", "configuration": {"length_bytes": len}});
        is(bytes(3), CellType::FixedUtf8(3));
        for wrong in [
            time("s", 0),
            time("generic", 1),
            bytes(-1),
            bytes(1 << 40),
            json!("r7"),
            json!("r4294967288"),
            json!("bfloat16"),
            json!(3),
        ] {
            assert!(version3(&wrong).is_err(), "{wrong}");
        }
    }
}
