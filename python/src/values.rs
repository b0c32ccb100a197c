//! Values of columns as objects of plain Python.
//!
//! | type of the column | Python |
//! |---|---|
//! | numbers, texts, bytes, Booleans | `int`, `float`, `str`, `bytes`, `bool` |
//! | decimals | `decimal.Decimal` |
//! | dates, times of day | `datetime.date`, `datetime.time` |
//! | timestamps | `datetime.datetime`, in UTC if the column has a time zone; nanoseconds are cut off |
//! | durations | `datetime.timedelta` |
//! | intervals | a tuple of months, days and nanoseconds |
//! | lists, structures, maps | `list`, `dict` |

use datafusion::arrow::array::{Array, ArrayRef, AsArray, MapArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    ArrowNativeType, ArrowPrimitiveType, DataType, Date32Type, Date64Type, Decimal128Type,
    Decimal256Type, DecimalType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, IntervalDayTimeType, IntervalMonthDayNanoType, IntervalUnit,
    IntervalYearMonthType, TimeUnit, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use datafusion::error::DataFusionError;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::errors::{exception, to_python};

type Values<'py> = Vec<Bound<'py, PyAny>>;

/// The day 1970-01-01 as `date.fromordinal` counts days.
const EPOCH: i64 = 719_163;
const DAY: i64 = 86_400_000_000;

/// Returns the values of a column; `None` for NULL.
///
/// # Errors
/// If Python has no such value, such as a date of the year 20000.
pub(crate) fn python_values<'py>(py: Python<'py>, array: &ArrayRef) -> PyResult<Values<'py>> {
    match array.data_type() {
        DataType::Null => Ok((0..array.len()).map(|_| py.None().into_bound(py)).collect()),
        DataType::Boolean => {
            let values = array.as_boolean();
            each(py, array, |at| any(py, values.value(at)))
        }
        DataType::Int8 => numbers::<Int8Type, _>(py, array, |it| it),
        DataType::Int16 => numbers::<Int16Type, _>(py, array, |it| it),
        DataType::Int32 => numbers::<Int32Type, _>(py, array, |it| it),
        DataType::Int64 => numbers::<Int64Type, _>(py, array, |it| it),
        DataType::UInt8 => numbers::<UInt8Type, _>(py, array, |it| it),
        DataType::UInt16 => numbers::<UInt16Type, _>(py, array, |it| it),
        DataType::UInt32 => numbers::<UInt32Type, _>(py, array, |it| it),
        DataType::UInt64 => numbers::<UInt64Type, _>(py, array, |it| it),
        DataType::Float16 => numbers::<Float16Type, _>(py, array, f64::from),
        DataType::Float32 => numbers::<Float32Type, _>(py, array, |it| it),
        DataType::Float64 => numbers::<Float64Type, _>(py, array, |it| it),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => texts(py, array),
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => bytes(py, array),
        DataType::Decimal128(..) => decimals::<Decimal128Type>(py, array),
        DataType::Decimal256(..) => decimals::<Decimal256Type>(py, array),
        DataType::Date32 => {
            let values = array.as_primitive::<Date32Type>();
            dates(py, array, |at| i64::from(values.value(at)))
        }
        DataType::Date64 => {
            let values = array.as_primitive::<Date64Type>();
            dates(py, array, |at| values.value(at).div_euclid(86_400_000))
        }
        DataType::Timestamp(unit, zone) => timestamps(py, array, *unit, zone.is_some()),
        DataType::Time32(unit) | DataType::Time64(unit) => times(py, array, *unit),
        DataType::Duration(unit) => {
            let spans = Spans::new(py, array, *unit)?;
            each(py, array, |at| spans.span(at))
        }
        DataType::Interval(unit) => intervals(py, array, *unit),
        DataType::List(_)
        | DataType::LargeList(_)
        | DataType::FixedSizeList(..)
        | DataType::ListView(_)
        | DataType::LargeListView(_) => lists(py, array),
        DataType::Struct(_) => structures(py, array),
        DataType::Map(..) => maps(py, array.as_map(), array),
        DataType::Dictionary(_, value) => python_values(py, &recast(py, array, value)?),
        DataType::RunEndEncoded(_, value) => {
            python_values(py, &recast(py, array, value.data_type())?)
        }
        other => Err(exception(
            py,
            "NotSupportedError",
            format!("Python has no type for {other}; use arrow()"),
        )),
    }
}

/// Returns the value of each row, or `None`.
fn each<'py>(
    py: Python<'py>,
    array: &ArrayRef,
    value: impl Fn(usize) -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Values<'py>> {
    let none = || Ok(py.None().into_bound(py));
    (0..array.len()).map(|at| if array.is_null(at) { none() } else { value(at) }).collect()
}

fn any<'py>(py: Python<'py>, value: impl IntoPyObjectExt<'py>) -> PyResult<Bound<'py, PyAny>> {
    value.into_bound_py_any(py)
}

fn recast(py: Python<'_>, array: &ArrayRef, to: &DataType) -> PyResult<ArrayRef> {
    cast(array, to).map_err(|error| to_python(py, &DataFusionError::from(error)))
}

fn numbers<'py, T: ArrowPrimitiveType, N: IntoPyObjectExt<'py>>(
    py: Python<'py>,
    array: &ArrayRef,
    number: impl Fn(T::Native) -> N,
) -> PyResult<Values<'py>> {
    let values = array.as_primitive::<T>();
    each(py, array, |at| any(py, number(values.value(at))))
}

fn texts<'py>(py: Python<'py>, array: &ArrayRef) -> PyResult<Values<'py>> {
    let array = recast(py, array, &DataType::Utf8View)?;
    let values = array.as_string_view();
    each(py, &array, |at| any(py, values.value(at)))
}

fn bytes<'py>(py: Python<'py>, array: &ArrayRef) -> PyResult<Values<'py>> {
    let array = recast(py, array, &DataType::BinaryView)?;
    let values = array.as_binary_view();
    each(py, &array, |at| Ok(PyBytes::new(py, values.value(at)).into_any()))
}

fn decimals<'py, T: DecimalType>(py: Python<'py>, array: &ArrayRef) -> PyResult<Values<'py>> {
    let decimal = py.import("decimal")?.getattr("Decimal")?;
    let values = array.as_primitive::<T>();
    each(py, array, |at| decimal.call1((values.value_as_string(at),)))
}

fn dates<'py>(
    py: Python<'py>,
    array: &ArrayRef,
    days: impl Fn(usize) -> i64,
) -> PyResult<Values<'py>> {
    let from = py.import("datetime")?.getattr("date")?.getattr("fromordinal")?;
    each(py, array, |at| from.call1((days(at) + EPOCH,)).map_err(|_| out_of_range(py)))
}

/// The error for a time that Python cannot tell.
fn out_of_range(py: Python<'_>) -> PyErr {
    let message = "a time is outside of the years 1 to 9999 of Python's datetime; use arrow()";
    exception(py, "DataError", message.to_owned())
}

/// Counts of a unit of time, as `datetime.timedelta`.
struct Spans<'py> {
    delta: Bound<'py, PyAny>,
    values: ArrayRef,
    unit: TimeUnit,
}

impl<'py> Spans<'py> {
    fn new(py: Python<'py>, array: &ArrayRef, unit: TimeUnit) -> PyResult<Self> {
        let delta = py.import("datetime")?.getattr("timedelta")?;
        Ok(Self { delta, values: recast(py, array, &DataType::Int64)?, unit })
    }

    fn span(&self, at: usize) -> PyResult<Bound<'py, PyAny>> {
        let value = i128::from(self.values.as_primitive::<Int64Type>().value(at));
        let micros = match self.unit {
            TimeUnit::Second => value * 1_000_000,
            TimeUnit::Millisecond => value * 1000,
            TimeUnit::Microsecond => value,
            TimeUnit::Nanosecond => value.div_euclid(1000),
        };
        let day = i128::from(DAY);
        let int = |number: i128| i64::try_from(number).unwrap_or(i64::MAX);
        let (days, micros) = (int(micros.div_euclid(day)), int(micros.rem_euclid(day)));
        self.delta.call1((days, 0, micros)).map_err(|_| out_of_range(self.delta.py()))
    }
}

fn timestamps<'py>(
    py: Python<'py>,
    array: &ArrayRef,
    unit: TimeUnit,
    has_zone: bool,
) -> PyResult<Values<'py>> {
    let datetime = py.import("datetime")?;
    let utc = datetime.getattr("timezone")?.getattr("utc")?;
    let zone = if has_zone { utc } else { py.None().into_bound(py) };
    let epoch = datetime.getattr("datetime")?.call1((1970, 1, 1, 0, 0, 0, 0, zone))?;
    let spans = Spans::new(py, array, unit)?;
    each(py, array, |at| epoch.add(spans.span(at)?).map_err(|_| out_of_range(py)))
}

fn times<'py>(py: Python<'py>, array: &ArrayRef, unit: TimeUnit) -> PyResult<Values<'py>> {
    let midnight = py.import("datetime")?.getattr("datetime")?.getattr("min")?;
    // A time in 32 bits becomes no integer of 64 bits directly.
    let wide = DataType::Time64(TimeUnit::Nanosecond);
    let (array, unit) = match unit {
        TimeUnit::Second | TimeUnit::Millisecond => {
            (recast(py, array, &wide)?, TimeUnit::Nanosecond)
        }
        unit => (ArrayRef::clone(array), unit),
    };
    let spans = Spans::new(py, &array, unit)?;
    each(py, &array, |at| {
        midnight
            .add(spans.span(at)?)
            .and_then(|it| it.call_method0("time"))
            .map_err(|_| out_of_range(py))
    })
}

fn intervals<'py>(py: Python<'py>, array: &ArrayRef, unit: IntervalUnit) -> PyResult<Values<'py>> {
    match unit {
        IntervalUnit::YearMonth => {
            let values = array.as_primitive::<IntervalYearMonthType>();
            each(py, array, |at| any(py, (values.value(at), 0, 0)))
        }
        IntervalUnit::DayTime => {
            let values = array.as_primitive::<IntervalDayTimeType>();
            each(py, array, |at| {
                let value = values.value(at);
                any(py, (0, value.days, i64::from(value.milliseconds) * 1_000_000))
            })
        }
        IntervalUnit::MonthDayNano => {
            let values = array.as_primitive::<IntervalMonthDayNanoType>();
            each(py, array, |at| {
                let value = values.value(at);
                any(py, (value.months, value.days, value.nanoseconds))
            })
        }
    }
}

fn lists<'py>(py: Python<'py>, array: &ArrayRef) -> PyResult<Values<'py>> {
    let item = |at: usize| match array.data_type() {
        DataType::LargeList(_) => array.as_list::<i64>().value(at),
        DataType::FixedSizeList(..) => array.as_fixed_size_list().value(at),
        DataType::ListView(_) => array.as_list_view::<i32>().value(at),
        DataType::LargeListView(_) => array.as_list_view::<i64>().value(at),
        _ => array.as_list::<i32>().value(at),
    };
    each(py, array, |at| Ok(PyList::new(py, python_values(py, &item(at))?)?.into_any()))
}

fn structures<'py>(py: Python<'py>, array: &ArrayRef) -> PyResult<Values<'py>> {
    let structure = array.as_struct();
    let columns = structure.columns().iter();
    let columns = columns.map(|it| python_values(py, it)).collect::<PyResult<Vec<_>>>()?;
    each(py, array, |at| {
        let dict = PyDict::new(py);
        for (name, column) in structure.column_names().iter().zip(&columns) {
            dict.set_item(name, &column[at])?;
        }
        Ok(dict.into_any())
    })
}

fn maps<'py>(py: Python<'py>, map: &MapArray, array: &ArrayRef) -> PyResult<Values<'py>> {
    let keys = python_values(py, map.keys())?;
    let values = python_values(py, map.values())?;
    let offsets = map.value_offsets();
    each(py, array, |at| {
        let dict = PyDict::new(py);
        for entry in offsets[at].as_usize()..offsets[at + 1].as_usize() {
            dict.set_item(&keys[entry], &values[entry])?;
        }
        Ok(dict.into_any())
    })
}
