//! Values for the placeholders of a statement.
//!
//! `None`, `bool`, `int`, `float`, `str` and `bytes` have types of their own. Python sends all others as one of these, with the name of
//! an Arrow type: a date is the number of its days and `Date32`.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{ParamValues, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::errors::to_python;

/// A value, its name or `None`, and the name of its Arrow type or `None`.
pub(crate) type Given<'py> = (Option<String>, Bound<'py, PyAny>, Option<String>);

/// Returns the values, by name or in their order.
///
/// # Errors
/// If a value has no such type.
pub(crate) fn param_values(
    py: Python<'_>,
    given: Vec<Given<'_>>,
    is_named: bool,
) -> PyResult<ParamValues> {
    let mut list = vec![];
    let mut map = vec![];
    for (name, value, kind) in given {
        let value = plain(&value)?;
        let value = match kind {
            Some(kind) => typed(&value, &kind).map_err(|error| to_python(py, &error))?,
            None => value,
        };
        match name {
            Some(name) => map.push((name, value)),
            None => list.push(value),
        }
    }
    Ok(if is_named { map.into() } else { list.into() })
}

fn plain(value: &Bound<'_, PyAny>) -> PyResult<ScalarValue> {
    if value.is_none() {
        return Ok(ScalarValue::Null);
    }
    // A Boolean is an integer too.
    if let Ok(value) = value.extract::<bool>() {
        return Ok(value.into());
    }
    if let Ok(value) = value.extract::<i64>() {
        return Ok(value.into());
    }
    if let Ok(value) = value.extract::<u64>() {
        return Ok(value.into());
    }
    if let Ok(value) = value.extract::<f64>() {
        return Ok(value.into());
    }
    if let Ok(value) = value.extract::<String>() {
        return Ok(value.into());
    }
    match value.extract::<Vec<u8>>() {
        Ok(value) => Ok(ScalarValue::Binary(Some(value))),
        Err(_) => Err(PyTypeError::new_err("not a plain value")),
    }
}

fn typed(value: &ScalarValue, kind: &str) -> Result<ScalarValue> {
    let kind: DataType = kind.parse().map_err(DataFusionError::from)?;
    value.cast_to(&kind)
}
