//! `gridfusion_date(what, detail, number, units, calendar)`: what functions of times compute of numbers that count time.
//!
//! | what | detail | returns |
//! |---|---|---|
//! | `part` | `month` | a part of the date |
//! | `truncate` | `month` | the number of the first day of the month, which is a time again |
//! | `text` | `%Y-%m`, or nothing for the whole date | text |
//! | `number` | | the number, which is no time any more |
//! | `time` | | the number, which is a time |

use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, Float64Array, Int32Array, Int64Array, StringArray};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{
    ScalarValue, exec_datafusion_err, internal_err, plan_datafusion_err, plan_err,
};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility, lit,
};

use super::Counted;
use crate::core::array::{COUNTED_TIMES, CalendarTime, CountedTimes, TimePart};

/// The name of the function.
const NAME: &str = "gridfusion_date";

/// Returns the function.
pub(crate) fn date_function() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        Arc::new(ScalarUDF::from(DateFunction(Signature::any(5, Volatility::Immutable))))
    });
    Arc::clone(&FUNCTION)
}

/// A result that the function can compute.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum What {
    Part(TimePart),
    Truncate(TimePart),
    /// Text in a format, or else as results show it.
    Text(Option<String>),
    Number,
    Time,
}

impl What {
    /// Returns what a function of times computes of numbers in a calendar.
    ///
    /// # Errors
    /// If the calendar does not have it, or `detail` is no constant.
    pub(super) fn from_call(
        function: &str,
        detail: Option<&ScalarValue>,
        calendar: &str,
    ) -> Result<Self> {
        let Some(detail) = detail.and_then(|it| it.try_as_str().flatten()) else {
            let place = if number_of_time(function) == 0 { "second" } else { "first" };
            return plan_err!(
                "the {place} argument of {function} of a time in the calendar {calendar} is no constant text"
            );
        };
        if function == "to_char" {
            return Ok(Self::Text(Some(detail.to_owned())));
        }
        let part = TimePart::from_name(detail).ok_or_else(|| {
            plan_datafusion_err!(
                "{function}: times in the calendar {calendar} have no {detail}; they have year, quarter, month, day, doy, dow, \
                 hour, minute and second, and CAST(… AS DOUBLE) is their number"
            )
        })?;
        let is_of_week =
            matches!(part, TimePart::DayOfWeek | TimePart::IsoDayOfWeek | TimePart::DayOfYear);
        match function {
            "date_part" => Ok(Self::Part(part)),
            _ if is_of_week => plan_err!("{function}: {detail} is no part of a time that begins"),
            _ => Ok(Self::Truncate(part)),
        }
    }

    /// Returns the first argument of the function.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Part(_) => "part",
            Self::Truncate(_) => "truncate",
            Self::Text(_) => "text",
            Self::Number => "number",
            Self::Time => "time",
        }
    }

    fn from_literals(what: Option<&ScalarValue>, detail: Option<&ScalarValue>) -> Option<Self> {
        let detail = text(detail);
        Some(match text(what) {
            "part" => Self::Part(TimePart::from_name(detail)?),
            "truncate" => Self::Truncate(TimePart::from_name(detail)?),
            "text" => Self::Text(Some(detail.to_owned()).filter(|it| !it.is_empty())),
            "number" => Self::Number,
            "time" => Self::Time,
            _ => return None,
        })
    }

    /// Returns the field of the result.
    fn field(&self, number: &Field, units: &str, calendar: &str) -> FieldRef {
        let data_type = match self {
            Self::Part(TimePart::Nanosecond) => DataType::Int64,
            Self::Part(_) => DataType::Int32,
            Self::Truncate(_) => DataType::Float64,
            Self::Text(_) => DataType::Utf8,
            Self::Number | Self::Time => number.data_type().clone(),
        };
        // NaN is no time, and has no parts.
        let field = Field::new(NAME, data_type, true);
        Arc::new(match self {
            Self::Truncate(_) | Self::Time => {
                field.with_metadata(CountedTimes::metadata(units, calendar))
            }
            _ => field,
        })
    }
}

/// Returns the field of a function of DataFusion over a number that counts time; `None` for other arguments.
///
/// # Errors
/// As for [`What::from_call`].
pub(in crate::exec) fn date_field(
    function: &str,
    args: &ReturnFieldArgs<'_>,
) -> Result<Option<FieldRef>> {
    let at = number_of_time(function);
    let Some(field) = args.arg_fields.get(at) else { return Ok(None) };
    let Some(times) = CountedTimes::from_field(field) else { return Ok(None) };
    let detail = args.scalar_arguments.get(1 - at).copied().flatten();
    let what = What::from_call(function, detail, times.calendar().name())?;
    let attribute = |key| field.metadata().get(key).map_or("", String::as_str);
    Ok(Some(what.field(field, attribute("units"), attribute("calendar"))))
}

/// Returns the field of a function of DataFusion over a number that may count time. It is not known yet whether it does.
pub(in crate::exec) fn possible_date_field(function: &str, args: &ReturnFieldArgs<'_>) -> FieldRef {
    let at = number_of_time(function);
    let detail = args.scalar_arguments.get(1 - at).copied().flatten();
    let data_type = match What::from_call(function, detail, "") {
        Ok(What::Part(TimePart::Nanosecond)) => DataType::Int64,
        Ok(What::Truncate(_)) => DataType::Float64,
        Ok(What::Text(_)) => DataType::Utf8,
        _ => DataType::Int32,
    };
    Arc::new(Field::new(NAME, data_type, true))
}

/// Returns the number of the argument that is the time.
pub(in crate::exec) fn number_of_time(function: &str) -> usize {
    usize::from(function != "to_char")
}

/// Adds the metadata of a number that counts time to the field of its least or greatest one.
pub(in crate::exec) fn with_metadata_of(number: Option<&FieldRef>, field: FieldRef) -> FieldRef {
    let Some(number) = number.filter(|it| CountedTimes::from_field(it).is_some()) else {
        return field;
    };
    let mut metadata = field.metadata().clone();
    for key in ["units", "calendar", COUNTED_TIMES] {
        if let Some(value) = number.metadata().get(key) {
            metadata.insert(key.to_owned(), value.clone());
        }
    }
    Arc::new(field.as_ref().clone().with_metadata(metadata))
}

/// Returns a call of the function.
pub(super) fn call(what: &str, detail: &str, number: Expr, counted: &Counted) -> Expr {
    let (units, calendar) = (lit(counted.units()), lit(counted.calendar()));
    date_function().call(vec![lit(what), lit(detail), number, units, calendar])
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct DateFunction(Signature);

impl ScalarUDFImpl for DateFunction {
    fn name(&self) -> &'static str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        internal_err!("{NAME} has a field that depends on its arguments")
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let ([what, detail, _, units, calendar], [_, _, number, ..]) =
            (args.scalar_arguments, args.arg_fields)
        else {
            return internal_err!("{NAME} takes five arguments");
        };
        let (units, calendar) = (text(*units), text(*calendar));
        match (What::from_literals(*what, *detail), number.data_type().is_numeric()) {
            (Some(what), true) if CountedTimes::from_attributes(units, calendar).is_some() => {
                Ok(what.field(number, units, calendar))
            }
            _ => plan_err!(
                "{NAME} takes 'part', 'truncate', 'text', 'number' or 'time', a part or format, numbers, units and a calendar"
            ),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [what, detail, numbers, units, calendar] = args.args.as_slice() else {
            return internal_err!("{NAME} takes five arguments");
        };
        let scalar = |value: &ColumnarValue| match value {
            ColumnarValue::Scalar(value) => Some(value.clone()),
            ColumnarValue::Array(_) => None,
        };
        let (units, calendar) = (scalar(units), scalar(calendar));
        let what = What::from_literals(scalar(what).as_ref(), scalar(detail).as_ref());
        let times = CountedTimes::from_attributes(text(units.as_ref()), text(calendar.as_ref()));
        let (Some(what), Some(times)) = (what, times) else {
            return internal_err!("{NAME} without constants");
        };
        let is_scalar = matches!(numbers, ColumnarValue::Scalar(_));
        let numbers = numbers.to_array(if is_scalar { 1 } else { args.number_rows })?;
        let computed = computed(&what, &numbers, times)?;
        Ok(match is_scalar {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&computed, 0)?),
            false => ColumnarValue::Array(computed),
        })
    }
}

/// Returns a constant text; none is empty.
pub(super) fn text(value: Option<&ScalarValue>) -> &str {
    value.and_then(|it| it.try_as_str().flatten()).unwrap_or_default()
}

fn computed(what: &What, numbers: &ArrayRef, times: CountedTimes) -> Result<ArrayRef> {
    let all = || times.times(numbers.as_ref()).map_err(|why| exec_datafusion_err!("{why}"));
    Ok(match what {
        What::Number | What::Time => Arc::clone(numbers),
        What::Text(None) => {
            let texts = times.texts(numbers.as_ref());
            Arc::new(texts.map_err(|why| exec_datafusion_err!("{why}"))?)
        }
        What::Text(Some(format)) => {
            let text = |time: Option<CalendarTime>| {
                let text = time.map(|it| it.formatted(format)).transpose();
                text.map_err(|why| exec_datafusion_err!("to_char: {why}"))
            };
            Arc::new(all()?.into_iter().map(text).collect::<Result<StringArray>>()?)
        }
        What::Part(part @ TimePart::Nanosecond) => Arc::new(
            all()?.into_iter().map(|it| it.map(|it| it.part(*part))).collect::<Int64Array>(),
        ),
        What::Part(part) => {
            // Years have 32 bits, and microseconds of a minute too.
            let part = |time: CalendarTime| i32::try_from(time.part(*part)).ok();
            Arc::new(all()?.into_iter().map(|it| it.and_then(part)).collect::<Int32Array>())
        }
        What::Truncate(part) => {
            let begin = |time: CalendarTime| times.number_of(time.truncated(*part)?);
            Arc::new(all()?.into_iter().map(|it| it.and_then(begin)).collect::<Float64Array>())
        }
    })
}

/// Returns an expression as users write it.
pub(super) fn named(expr: &Expr) -> String {
    match called(expr) {
        Some(("truncate", number)) => {
            let Expr::ScalarFunction(function) = expr else { return number.to_string() };
            let detail = text(function.args.get(1).and_then(Expr::as_literal));
            format!("date_trunc('{detail}', {number})")
        }
        Some((_, number)) => named(number),
        None => expr.to_string(),
    }
}

/// Returns what a call of the function computes, and of what number; `None` for other expressions.
pub(super) fn called(expr: &Expr) -> Option<(&str, &Expr)> {
    match expr {
        Expr::ScalarFunction(function) if *function.func == *date_function() => {
            Some((text(function.args.first()?.as_literal()), function.args.get(2)?))
        }
        _ => None,
    }
}
