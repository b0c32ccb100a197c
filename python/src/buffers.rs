//! Columns for numpy: buffers that numpy reads where they are, by `__array_interface__`.
//!
//! The interface is a dictionary with an address. numpy keeps the `Buffer` alive as long as its array, and does not write to it.

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::buffer::{BooleanBuffer, Buffer as ArrowBuffer};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Date64Type, DurationMicrosecondType,
    DurationMillisecondType, DurationNanosecondType, DurationSecondType, Float16Type, Float32Type,
    Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimeUnit, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use datafusion::error::DataFusionError;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::errors::to_python;
use crate::values::python_values;

/// The values of a column, and where they are NULL.
pub(crate) type Column<'py> = (Bound<'py, PyAny>, Option<Buffer>);

/// Values of one type in memory, which numpy reads without a copy.
#[pyclass(frozen, module = "gridfusion._internal")]
pub(crate) struct Buffer {
    bytes: ArrowBuffer,
    /// The type of the values, as numpy writes it.
    kind: &'static str,
    len: usize,
}

#[pymethods]
impl Buffer {
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("shape", (self.len,))?;
        interface.set_item("typestr", self.kind)?;
        interface.set_item("data", (self.bytes.as_ptr().addr(), true))?;
        Ok(interface)
    }
}

/// Returns a column for numpy. Values of types that numpy lacks are a list.
///
/// # Errors
/// If Python has no such values either.
pub(crate) fn numpy_column<'py>(py: Python<'py>, array: &ArrayRef) -> PyResult<Column<'py>> {
    if let DataType::Dictionary(_, value) = array.data_type() {
        let values = cast(array, value).map_err(|it| to_python(py, &DataFusionError::from(it)))?;
        return numpy_column(py, &values);
    }
    let is_null = array.logical_nulls().filter(|nulls| nulls.null_count() > 0);
    let mask = is_null.map(|nulls| of_bits(&!nulls.inner()));
    let values = match buffer(array) {
        Some(buffer) => buffer.into_bound_py_any(py)?,
        None => PyList::new(py, python_values(py, array)?)?.into_any(),
    };
    Ok((values, mask))
}

fn buffer(array: &ArrayRef) -> Option<Buffer> {
    Some(match array.data_type() {
        DataType::Boolean => of_bits(array.as_boolean().values()),
        DataType::Int8 => of::<Int8Type>(array, "|i1"),
        DataType::Int16 => of::<Int16Type>(array, "<i2"),
        DataType::Int32 => of::<Int32Type>(array, "<i4"),
        DataType::Int64 => of::<Int64Type>(array, "<i8"),
        DataType::UInt8 => of::<UInt8Type>(array, "|u1"),
        DataType::UInt16 => of::<UInt16Type>(array, "<u2"),
        DataType::UInt32 => of::<UInt32Type>(array, "<u4"),
        DataType::UInt64 => of::<UInt64Type>(array, "<u8"),
        DataType::Float16 => of::<Float16Type>(array, "<f2"),
        DataType::Float32 => of::<Float32Type>(array, "<f4"),
        DataType::Float64 => of::<Float64Type>(array, "<f8"),
        DataType::Date32 => {
            let days = array.as_primitive::<Date32Type>().values().iter();
            let days: Vec<i64> = days.map(|day| i64::from(*day)).collect();
            Buffer { len: days.len(), bytes: ArrowBuffer::from_vec(days), kind: "<M8[D]" }
        }
        DataType::Date64 => of::<Date64Type>(array, "<M8[ms]"),
        DataType::Timestamp(unit, _) => match unit {
            TimeUnit::Second => of::<TimestampSecondType>(array, "<M8[s]"),
            TimeUnit::Millisecond => of::<TimestampMillisecondType>(array, "<M8[ms]"),
            TimeUnit::Microsecond => of::<TimestampMicrosecondType>(array, "<M8[us]"),
            TimeUnit::Nanosecond => of::<TimestampNanosecondType>(array, "<M8[ns]"),
        },
        DataType::Duration(unit) => match unit {
            TimeUnit::Second => of::<DurationSecondType>(array, "<m8[s]"),
            TimeUnit::Millisecond => of::<DurationMillisecondType>(array, "<m8[ms]"),
            TimeUnit::Microsecond => of::<DurationMicrosecondType>(array, "<m8[us]"),
            TimeUnit::Nanosecond => of::<DurationNanosecondType>(array, "<m8[ns]"),
        },
        _ => return None,
    })
}

fn of<T: ArrowPrimitiveType>(array: &ArrayRef, kind: &'static str) -> Buffer {
    let values = array.as_primitive::<T>().values();
    Buffer { bytes: values.inner().clone(), kind, len: values.len() }
}

fn of_bits(bits: &BooleanBuffer) -> Buffer {
    let bytes: Vec<u8> = bits.iter().map(u8::from).collect();
    Buffer { len: bytes.len(), bytes: ArrowBuffer::from_vec(bytes), kind: "|b1" }
}
