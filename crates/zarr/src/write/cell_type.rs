//! The types of cells as Zarr stores them, and the bytes of cells.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, Float64Array, Int32Array, Int64Array, StringArray,
};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimeUnit, ToByteSlice, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gridfusion_core::array::failed_to;
use gridfusion_core::{Error, Result};
use serde_json::{Number, Value, json};

/// How cells of an Arrow type are stored.
#[derive(Debug, Clone)]
pub(super) struct StoredType {
    /// The Arrow type that has the stored bits, to which cells are cast.
    bits: DataType,
    /// The name of the type in the metadata.
    pub(super) name: &'static str,
    /// `units` and `calendar` of times.
    pub(super) time: Option<&'static str>,
}

/// A cell that cannot be stored: its number in the chunk, and why.
pub(super) struct BadCell(pub(super) usize, pub(super) &'static str);

const IS_NULL: &str = "it is NULL, and the variable has no fill value; choose one";
const IS_FILL: &str = "it has the fill value, which would read as NULL; choose another fill value";

/// Calls a function for the Arrow type with these bits, or another one for texts.
macro_rules! by_type {
    ($bits:expr, $number:ident($($argument:expr),*), $text:expr) => {
        match $bits {
            DataType::Int8 => $number::<Int8Type>($($argument),*),
            DataType::Int16 => $number::<Int16Type>($($argument),*),
            DataType::Int32 => $number::<Int32Type>($($argument),*),
            DataType::Int64 => $number::<Int64Type>($($argument),*),
            DataType::UInt8 => $number::<UInt8Type>($($argument),*),
            DataType::UInt16 => $number::<UInt16Type>($($argument),*),
            DataType::UInt32 => $number::<UInt32Type>($($argument),*),
            DataType::UInt64 => $number::<UInt64Type>($($argument),*),
            DataType::Float16 => $number::<Float16Type>($($argument),*),
            DataType::Float32 => $number::<Float32Type>($($argument),*),
            DataType::Float64 => $number::<Float64Type>($($argument),*),
            _ => $text,
        }
    };
}

impl StoredType {
    /// Finds the stored type of an Arrow type.
    ///
    /// # Errors
    /// `Unsupported` if Zarr has no such type.
    pub(super) fn new(data_type: &DataType) -> Result<Self> {
        let plain = |name| (data_type.clone(), name, None);
        let since = |units| (DataType::Int64, "int64", Some(units));
        let (bits, name, time) = match data_type {
            DataType::Boolean => (DataType::UInt8, "bool", None),
            DataType::Int8 => plain("int8"),
            DataType::Int16 => plain("int16"),
            DataType::Int32 => plain("int32"),
            DataType::Int64 => plain("int64"),
            DataType::UInt8 => plain("uint8"),
            DataType::UInt16 => plain("uint16"),
            DataType::UInt32 => plain("uint32"),
            DataType::UInt64 => plain("uint64"),
            DataType::Float16 => plain("float16"),
            DataType::Float32 => plain("float32"),
            DataType::Float64 => plain("float64"),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                (DataType::Utf8, "string", None)
            }
            DataType::Timestamp(TimeUnit::Second, _) => since("seconds since 1970-01-01"),
            DataType::Timestamp(TimeUnit::Millisecond, _) => since("milliseconds since 1970-01-01"),
            DataType::Timestamp(TimeUnit::Microsecond, _) => since("microseconds since 1970-01-01"),
            DataType::Timestamp(TimeUnit::Nanosecond, _) => since("nanoseconds since 1970-01-01"),
            DataType::Date32 => (DataType::Int32, "int32", Some("days since 1970-01-01")),
            other => {
                return Err(Error::unsupported(format!(
                    "columns of {other} in Zarr; cast the column to a number, a time or text"
                )));
            }
        };
        Ok(Self { bits, name, time })
    }

    /// Whether cells have no fixed width.
    pub(super) fn is_text(&self) -> bool {
        self.bits == DataType::Utf8
    }

    /// Returns cells in the stored type.
    pub(super) fn stored(&self, cells: &ArrayRef) -> Result<ArrayRef> {
        cast(cells, &self.bits).map_err(failed_to("store cells"))
    }

    /// Returns the value that is stored for NULL if the array does not choose one: NaN, or a time that is none. `None` for other types.
    pub(super) fn natural_fill(&self) -> Option<ArrayRef> {
        match self.bits {
            DataType::Float16 | DataType::Float32 | DataType::Float64 => {
                let nan: ArrayRef = Arc::new(Float64Array::from(vec![f64::NAN]));
                cast(&nan, &self.bits).ok()
            }
            DataType::Int64 if self.time.is_some() => {
                Some(Arc::new(Int64Array::from(vec![i64::MIN])))
            }
            DataType::Int32 if self.time.is_some() => {
                Some(Arc::new(Int32Array::from(vec![i32::MIN])))
            }
            _ => None,
        }
    }

    /// Returns the value of cells outside of an array whose variable has no fill value.
    pub(super) fn zero(&self) -> ArrayRef {
        match self.bits {
            DataType::Utf8 => Arc::new(StringArray::from(vec![""])),
            _ => zero_of(&self.bits),
        }
    }

    /// Checks stored cells: none must be NULL without a fill value, or have the fill value without being NULL.
    ///
    /// # Errors
    /// The first wrong cell.
    pub(super) fn check(&self, cells: &ArrayRef, fill: Option<&ArrayRef>) -> Result<(), BadCell> {
        let Some(fill) = fill else {
            return match (0..cells.len()).find(|at| cells.null_count() > 0 && cells.is_null(*at)) {
                Some(at) => Err(BadCell(at, IS_NULL)),
                None => Ok(()),
            };
        };
        let same = by_type!(self.bits, first_equal(cells, fill), first_equal_text(cells, fill));
        same.map_or(Ok(()), |at| Err(BadCell(at, IS_FILL)))
    }

    /// Returns the bytes of stored cells, with `fill` in the places of NULL.
    ///
    /// # Errors
    /// `Unsupported` for texts that are too long.
    pub(super) fn bytes(&self, cells: &ArrayRef, fill: &ArrayRef) -> Result<Vec<u8>> {
        by_type!(self.bits, numbers(cells, fill), texts(cells.as_string(), fill.as_string()))
    }

    /// Returns the bytes of a cell, as far as they have an order; 1 for texts.
    pub(super) fn word(&self) -> usize {
        self.bits.primitive_width().unwrap_or(1)
    }

    /// Returns the fill value as the metadata has it: numbers as such, NaN and infinity as texts.
    pub(super) fn fill_json(&self, fill: Option<&ArrayRef>) -> Value {
        let Some(fill) = fill else {
            return match self.name {
                "bool" => json!(false),
                "string" => json!(""),
                _ => json!(0),
            };
        };
        match (self.name, &self.bits) {
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
        match self.bits {
            DataType::Float16 | DataType::Float32 | DataType::Float64 => {
                ("_FillValue", json!(STANDARD.encode(as_double(fill).to_le_bytes())))
            }
            DataType::Utf8 => ("missing_value", self.fill_json(Some(fill))),
            _ => ("_FillValue", self.fill_json(Some(fill))),
        }
    }
}

/// Returns one zero of a numeric type.
fn zero_of(data_type: &DataType) -> ArrayRef {
    let zero: ArrayRef = Arc::new(Int64Array::from(vec![0]));
    cast(&zero, data_type).unwrap_or(zero)
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

fn first_equal<T: ArrowPrimitiveType>(cells: &ArrayRef, fill: &ArrayRef) -> Option<usize> {
    let (cells, fill) = (cells.as_primitive::<T>(), fill.as_primitive::<T>().value(0));
    let mut same = (0..cells.len()).filter(|at| cells.values()[*at] == fill);
    same.find(|at| cells.is_valid(*at))
}

fn first_equal_text(cells: &ArrayRef, fill: &ArrayRef) -> Option<usize> {
    let (cells, fill) = (cells.as_string::<i32>(), fill.as_string::<i32>().value(0));
    cells.iter().position(|text| text == Some(fill))
}

fn numbers<T: ArrowPrimitiveType>(cells: &ArrayRef, fill: &ArrayRef) -> Result<Vec<u8>> {
    let (cells, fill) = (cells.as_primitive::<T>(), fill.as_primitive::<T>().value(0));
    if cells.null_count() == 0 {
        return Ok(cells.values().to_byte_slice().to_vec());
    }
    let values: Vec<T::Native> = cells.iter().map(|value| value.unwrap_or(fill)).collect();
    Ok(values.to_byte_slice().to_vec())
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
