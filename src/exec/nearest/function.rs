//! [`Nearest`]: the function, as users call it with a dimension, and as plans call it with labels.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Float64Type, IntervalMonthDayNanoType, IntervalUnit};
use datafusion::common::{exec_err, internal_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::labels::{NearestLabels, Tolerance};

/// `nearest(dimension, value[, tolerance])`, or `nearest(value[, tolerance])` among known labels.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Nearest {
    signature: Signature,
    labels: Option<Arc<NearestLabels>>,
}

/// Returns the function of a session. A rule replaces it by that of the labels of its dimension.
pub(crate) fn nearest_udf() -> Arc<ScalarUDF> {
    static UDF: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| function(None));
    Arc::clone(&UDF)
}

/// Returns the function among these labels.
pub(crate) fn nearest_among(labels: Arc<NearestLabels>) -> Arc<ScalarUDF> {
    function(Some(labels))
}

/// Returns the labels of a function among labels.
#[cfg(feature = "codec")]
pub(crate) fn nearest_labels(function: &ScalarUDF) -> Option<&Arc<NearestLabels>> {
    function.inner().downcast_ref::<Nearest>()?.labels.as_ref()
}

fn function(labels: Option<Arc<NearestLabels>>) -> Arc<ScalarUDF> {
    let signature = Signature::user_defined(Volatility::Immutable);
    Arc::new(ScalarUDF::from(Nearest { signature, labels }))
}

/// The type to which the values are converted that are compared with labels of a type.
fn value_type(labels: &DataType) -> DataType {
    if labels.is_numeric() { DataType::Float64 } else { labels.clone() }
}

fn tolerance_type(labels: &DataType) -> DataType {
    match labels.is_numeric() {
        true => DataType::Float64,
        false => DataType::Interval(IntervalUnit::MonthDayNano),
    }
}

impl ScalarUDFImpl for Nearest {
    fn name(&self) -> &str {
        "nearest"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let (labels, mut coerced, rest) = match (&self.labels, types) {
            (None, [dimension, rest @ ..]) => (dimension, vec![dimension.clone()], rest),
            (Some(labels), rest) => (labels.labels().data_type(), vec![], rest),
            (None, []) => return plan_err!("nearest needs a dimension and a value"),
        };
        if !(labels.is_numeric() || labels.is_temporal()) {
            return plan_err!("nearest needs a dimension of numbers or times, not of {labels}");
        }
        let wanted = [value_type(labels), tolerance_type(labels)];
        if rest.is_empty() || rest.len() > wanted.len() {
            return plan_err!("nearest takes a dimension, a value and, if you like, a tolerance");
        }
        coerced.extend(wanted.into_iter().take(rest.len()));
        Ok(coerced)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match (&self.labels, types) {
            (Some(labels), _) => Ok(labels.labels().data_type().clone()),
            (None, [dimension, ..]) => Ok(dimension.clone()),
            (None, []) => internal_err!("nearest without a dimension"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(labels) = &self.labels else {
            return exec_err!("nearest needs a dimension of an array as its first argument");
        };
        let Some((values, tolerance)) = args.args.split_first() else {
            return internal_err!("nearest without a value");
        };
        let tolerance = tolerance.first();
        let rows = match (values, tolerance) {
            (ColumnarValue::Scalar(_), None | Some(ColumnarValue::Scalar(_))) => 1,
            _ => args.number_rows,
        };
        let values = values.to_array(rows)?;
        let found = match tolerance {
            None => labels.nearest(&values, Tolerance::Any)?,
            Some(ColumnarValue::Scalar(it)) => {
                let array = it.to_array()?;
                match read(&array, 0)? {
                    Some(tolerance) => labels.nearest(&values, tolerance)?,
                    None => arrow::array::new_null_array(labels.labels().data_type(), rows),
                }
            }
            Some(ColumnarValue::Array(_)) => {
                return exec_err!("the tolerance of nearest is a constant");
            }
        };
        Ok(match args.args.first() {
            Some(ColumnarValue::Scalar(_)) if rows == 1 => {
                ColumnarValue::Scalar(datafusion::common::ScalarValue::try_from_array(&found, 0)?)
            }
            _ => ColumnarValue::Array(found),
        })
    }
}

/// Reads a tolerance; `None` for NULL.
///
/// # Errors
/// If it has months, whose lengths differ, or is below zero.
fn read(tolerance: &ArrayRef, row: usize) -> Result<Option<Tolerance>> {
    if tolerance.is_null(row) {
        return Ok(None);
    }
    Ok(Some(match tolerance.data_type() {
        DataType::Float64 => {
            let most = tolerance.as_primitive::<Float64Type>().value(row);
            if most.is_nan() || most < 0.0 {
                return exec_err!("the tolerance of nearest is {most}, which is no distance");
            }
            Tolerance::Number(most)
        }
        _ => {
            let most = tolerance.as_primitive::<IntervalMonthDayNanoType>().value(row);
            let length = i128::from(most.days) * 86_400_000_000_000 + i128::from(most.nanoseconds);
            if most.months != 0 || length < 0 {
                return exec_err!("the tolerance of nearest is an interval of days or less");
            }
            Tolerance::Nanoseconds(length)
        }
    }))
}
