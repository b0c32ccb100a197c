//! The types of cells as Zarr stores them, and the bytes of cells.

use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int64Type, UInt8Type, UInt64Type};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gridfusion_core::write::StoredType;
use gridfusion_core::{Error, Result};
use serde_json::{Number, Value, json};

/// How cells of an Arrow type are stored in Zarr.
#[derive(Debug, Clone)]
pub(crate) struct ZarrType {
    pub(crate) stored: StoredType,
    /// The name of the type in the metadata.
    pub(super) name: &'static str,
}

impl ZarrType {
    /// Finds the type of an Arrow type.
    ///
    /// # Errors
    /// `Unsupported` if Zarr has no such type.
    pub(crate) fn new(data_type: &DataType) -> Result<Self> {
        let stored = StoredType::new(data_type)?;
        let name = match (data_type, stored.bits()) {
            (DataType::Boolean, _) => "bool",
            (_, DataType::Int8) => "int8",
            (_, DataType::Int16) => "int16",
            (_, DataType::Int32) => "int32",
            (_, DataType::Int64) => "int64",
            (_, DataType::UInt8) => "uint8",
            (_, DataType::UInt16) => "uint16",
            (_, DataType::UInt32) => "uint32",
            (_, DataType::UInt64) => "uint64",
            (_, DataType::Float16) => "float16",
            (_, DataType::Float32) => "float32",
            (_, DataType::Float64) => "float64",
            _ => "string",
        };
        Ok(Self { stored, name })
    }

    /// Returns the bytes of stored cells, with `fill` in the places of NULL.
    ///
    /// # Errors
    /// `Unsupported` for texts that are too long.
    pub(super) fn bytes(&self, cells: &ArrayRef, fill: &ArrayRef) -> Result<Vec<u8>> {
        match self.stored.is_text() {
            true => texts(cells.as_string(), fill.as_string()),
            false => self.stored.number_bytes(cells, fill),
        }
    }

    /// Returns the bytes of a cell, as far as they have an order; 1 for texts.
    pub(crate) fn word(&self) -> usize {
        self.stored.bits().primitive_width().unwrap_or(1)
    }

    /// Returns the fill value as the metadata has it: numbers as such, NaN and infinity as texts.
    pub(super) fn fill_json(&self, fill: Option<&ArrayRef>) -> Value {
        let Some(fill) = fill else {
            return match self.name {
                "bool" => json!(false),
                "string" => json!(""),
                // As zarr-python writes it.
                name if name.starts_with("float") => json!(0.0),
                _ => json!(0),
            };
        };
        match (self.name, self.stored.bits()) {
            ("bool", _) => json!(fill.as_primitive::<UInt8Type>().value(0) != 0),
            (_, DataType::Utf8) => json!(fill.as_string::<i32>().value(0)),
            (_, DataType::Float16 | DataType::Float32 | DataType::Float64) => {
                float_json(as_double(fill))
            }
            (_, DataType::UInt64) => json!(fill.as_primitive::<UInt64Type>().value(0)),
            _ => match cast(fill, &DataType::Int64) {
                Ok(fill) => json!(fill.as_primitive::<Int64Type>().value(0)),
                Err(_) => json!(0),
            },
        }
    }

    /// Returns the attribute from which xarray learns which values are missing. That is `_FillValue`, with the bytes of a double for
    /// floats. xarray does not open stores in which texts have this attribute.
    pub(super) fn fill_attribute(&self, fill: &ArrayRef) -> (&'static str, Value) {
        match self.stored.bits() {
            DataType::Float16 | DataType::Float32 | DataType::Float64 => {
                ("_FillValue", json!(STANDARD.encode(as_double(fill).to_le_bytes())))
            }
            DataType::Utf8 => ("missing_value", self.fill_json(Some(fill))),
            _ => ("_FillValue", self.fill_json(Some(fill))),
        }
    }
}

fn as_double(fill: &ArrayRef) -> f64 {
    let doubles = cast(fill, &DataType::Float64);
    doubles.map_or(f64::NAN, |doubles| doubles.as_primitive::<Float64Type>().value(0))
}

fn float_json(value: f64) -> Value {
    match Number::from_f64(value) {
        Some(number) => Value::Number(number),
        None if value.is_nan() => json!("NaN"),
        None if value > 0.0 => json!("Infinity"),
        None => json!("-Infinity"),
    }
}

/// Returns texts as the codec `vlen-utf8` stores them: their number, then the length and the bytes of each.
fn texts(cells: &StringArray, fill: &StringArray) -> Result<Vec<u8>> {
    let length = |len: usize| {
        let len = u32::try_from(len).map(u32::to_le_bytes);
        len.map_err(|_| Error::unsupported("a chunk of more than 4 billion texts or bytes"))
    };
    let mut bytes = length(cells.len())?.to_vec();
    for cell in cells {
        let text = cell.unwrap_or_else(|| fill.value(0));
        bytes.extend(length(text.len())?);
        bytes.extend(text.as_bytes());
    }
    Ok(bytes)
}
