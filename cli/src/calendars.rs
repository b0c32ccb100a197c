//! Explains functions and comparisons of times that stay numbers, because SQL lacks their calendar.
//!
//! ```text
//!   date_part('year', time)     time is a number of days since 1850-01-01 in the calendar 360_day …: 1850 + floor(time / 360)::INT
//!   time >= '2000-01-01'        …: time >= 54000
//! ```
//!
//! The planner refuses a function before there is a plan. So a statement that failed is planned again, with functions that take any
//! types and look at the attributes of their arguments.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use datafusion::common::utils::quote_identifier;
use datafusion::common::{DFSchema, exec_err, plan_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::FunctionRegistry;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};
use datafusion::prelude::SessionContext;
use datafusion::sql::sqlparser::ast::{BinaryOperator, CastKind, Expr as SqlExpr};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;
use gridfusion::core::array::Calendar;
use gridfusion::provider::{StatementEditor, edit_statement};

use crate::errors::describe;
use crate::mistyped::first_in_plan;
use crate::statement::parse;

/// The page that explains such columns.
const PAGE: &str = "docs/time.md#";

/// Parts of messages about a function, an operator or a cast that a number does not have.
const SIGNS: [&str; 4] = [
    "there is no function ",
    "Cannot automatically convert",
    "Cannot coerce arithmetic expression",
    "Unsupported CAST",
];

/// The functions of times, each with the type that it returns.
const FUNCTIONS: [(&str, DataType); 12] = [
    ("date_part", DataType::Int32),
    ("datepart", DataType::Int32),
    ("date_trunc", DataType::Timestamp(TimeUnit::Nanosecond, None)),
    ("datetrunc", DataType::Timestamp(TimeUnit::Nanosecond, None)),
    ("date_bin", DataType::Timestamp(TimeUnit::Nanosecond, None)),
    ("to_char", DataType::Utf8),
    ("date_format", DataType::Utf8),
    ("to_date", DataType::Date32),
    ("to_local_time", DataType::Timestamp(TimeUnit::Nanosecond, None)),
    ("to_unixtime", DataType::Int64),
    (PLUS, DataType::Timestamp(TimeUnit::Nanosecond, None)),
    (CAST, DataType::Timestamp(TimeUnit::Nanosecond, None)),
];

/// Stands for the addition and subtraction of times.
const PLUS: &str = "gridfusion_plus";
/// Stands for a cast to a time.
const CAST: &str = "gridfusion_cast";

/// Returns an error that explains the calendar, if `error` is about a time that is a number. Returns other errors unchanged.
pub(crate) async fn with_calendar(
    error: DataFusionError,
    ctx: &SessionContext,
    text: &str,
) -> DataFusionError {
    let message = describe(&error);
    if !SIGNS.iter().any(|sign| message.contains(sign)) {
        return error;
    }
    Box::pin(explained(ctx, text)).await.unwrap_or(error)
}

/// Plans the statements with functions that look for such times, and returns their error.
async fn explained(ctx: &SessionContext, text: &str) -> Option<DataFusionError> {
    let mut state = ctx.state();
    for (name, returned) in FUNCTIONS {
        let signature = Signature::variadic_any(Volatility::Stable);
        let function = Looking { name, returned, signature };
        state.register_udf(Arc::new(ScalarUDF::from(function))).ok()?;
    }
    for mut statement in parse(ctx, text).ok()? {
        edit_statement(&mut statement, &mut Calls);
        let message = match Box::pin(state.statement_to_plan(statement)).await {
            // The planner looks at the types of some expressions only.
            Ok(plan) => first_in_plan(&plan, of_function).ok().flatten(),
            Err(error) => own_message(&error),
        };
        if let Some(message) = message {
            return Some(DataFusionError::Plan(message));
        }
    }
    None
}

/// Returns the message for a function that found such a time among its arguments.
fn of_function(expr: &Expr, schema: &DFSchema) -> Option<String> {
    match expr {
        Expr::ScalarFunction(_) => own_message(&expr.to_field(schema).err()?),
        _ => None,
    }
}

/// Returns the message of [`Looking`]; `None` for other errors.
fn own_message(error: &DataFusionError) -> Option<String> {
    match error.find_root() {
        DataFusionError::Plan(message) if message.contains(PAGE) => Some(message.clone()),
        _ => None,
    }
}

/// Writes the other forms of functions of times as calls: `EXTRACT`, sums and casts.
struct Calls;

impl StatementEditor for Calls {
    fn expression_behind_parts(&mut self, expr: &mut SqlExpr) {
        let call = match &*expr {
            SqlExpr::Extract { field, expr, .. } => format!("date_part('{field}', {expr})"),
            SqlExpr::BinaryOp { left, op: BinaryOperator::Plus | BinaryOperator::Minus, right } => {
                format!("{PLUS}({left}, {right})")
            }
            SqlExpr::Cast {
                kind: CastKind::Cast | CastKind::DoubleColon, expr, data_type, ..
            } if ["DATE", "TIMESTAMP"].iter().any(|it| data_type.to_string().starts_with(it)) => {
                format!("{CAST}({expr})")
            }
            _ => return,
        };
        let parsed = Parser::new(&GenericDialect {}).try_with_sql(&call);
        if let Ok(call) = parsed.and_then(|mut parser| parser.parse_expr()) {
            *expr = call;
        }
    }
}

/// A function in place of one of times. It takes everything else than numbers that count time.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Looking {
    name: &'static str,
    returned: DataType,
    signature: Signature,
}

impl ScalarUDFImpl for Looking {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        // A sum of numbers is a number.
        let is_sum = self.name == PLUS && !arguments.iter().any(DataType::is_temporal);
        Ok(arguments.first().filter(|_| is_sum).unwrap_or(&self.returned).clone())
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<DataType> =
            arguments.arg_fields.iter().map(|it| it.data_type().clone()).collect();
        // Numbers can be added to it, but no intervals and dates.
        if self.name != PLUS || types.iter().any(DataType::is_temporal) {
            let counts = |it: &FieldRef| Some((Arc::clone(it), Count::from_field(it)?));
            if let Some((field, count)) = arguments.arg_fields.iter().find_map(counts) {
                return plan_err!("{}", count.message(&quote_identifier(field.name()), None));
            }
        }
        Ok(Arc::new(Field::new(self.name, self.return_type(&types)?, true)))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        exec_err!("{} only explains errors", self.name)
    }
}

/// A column of numbers that count time.
#[derive(Debug)]
pub(crate) struct Count {
    data_type: DataType,
    units: String,
    calendar: Option<String>,
}

impl Count {
    /// Returns the count of a column with numbers and the attributes of CF's times; `None` for other columns.
    pub(crate) fn from_field(field: &Field) -> Option<Self> {
        let units = field.metadata().get("units").filter(|it| it.contains(" since "))?;
        let calendar = field.metadata().get("calendar").cloned();
        let data_type = field.data_type().clone();
        data_type.is_numeric().then(|| Self { data_type, units: units.clone(), calendar })
    }

    /// Returns what the column is, and what to write instead of a function, or instead of a date in a comparison.
    pub(crate) fn message(&self, name: &str, date: Option<&str>) -> String {
        let Self { data_type, units, .. } = self;
        // Times of these calendars are numbers because an option, or the file, makes them so.
        let is_of_sql =
            |it: &&String| Calendar::from_name(it).is_some_and(Calendar::has_timestamps);
        let Some(calendar) = self.calendar.as_ref().filter(|it| !is_of_sql(it)) else {
            return format!(
                "{name} is a number ({data_type}) of {units}, and no time; see {PAGE}units-that-become-timestamps"
            );
        };
        let what = format!(
            "{name} is a number ({data_type}) of {units} in the calendar {calendar}, whose dates SQL lacks"
        );
        let days = Days::from_calendar(calendar).zip(Reference::parse(units));
        let Some((days, reference)) = days else {
            return format!("{what}; see {PAGE}other-calendars");
        };
        let number = date.and_then(Date::parse).map(|date| reference.number(days, date));
        let how = match (number, date) {
            (Some(number), Some(date)) => format!("{date} is {number}"),
            _ => reference.formulas(days, name),
        };
        format!("{what}; {how}; see {PAGE}other-calendars")
    }
}

/// The calendars whose years have one length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Days {
    /// Every year has 366 days.
    AllLeap,
    /// Every month has 30 days.
    Of360,
}

impl Days {
    fn from_calendar(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "all_leap" | "366_day" => Self::AllLeap,
            "360_day" => Self::Of360,
            _ => return None,
        })
    }

    fn of_year(self) -> i64 {
        match self {
            Self::AllLeap => 366,
            Self::Of360 => 360,
        }
    }

    /// Returns the number of a day in its year, from 0.
    fn of(self, date: Date) -> i64 {
        const BEFORE: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
        let month = usize::try_from(date.month - 1).unwrap_or_default().min(11);
        date.day - 1
            + match self {
                Self::Of360 => 30 * (date.month - 1),
                Self::AllLeap => BEFORE[month] + i64::from(month > 1),
            }
    }
}

/// A date without a time of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Date {
    year: i64,
    month: i64,
    day: i64,
}

impl Date {
    /// Reads a year, with or without month and day. A time of day must be midnight.
    fn parse(text: &str) -> Option<Self> {
        let (date, time) = text.trim().split_once(['T', ' ']).unwrap_or((text.trim(), ""));
        if time.contains(|it: char| it.is_ascii_digit() && it != '0') {
            return None;
        }
        let mut parts = date.split('-').map(|it| it.parse::<i64>().ok());
        let year = parts.next()?.filter(|it| (0..10_000).contains(it))?;
        let month = parts.next().unwrap_or(Some(1)).filter(|it| (1..=12).contains(it))?;
        let day = parts.next().unwrap_or(Some(1)).filter(|it| (1..=31).contains(it))?;
        parts.next().is_none().then_some(Self { year, month, day })
    }
}

/// Units of time, and the date from which they count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reference {
    /// The number of units in a day.
    per_day: i64,
    date: Date,
}

impl Reference {
    /// Reads units such as `hours since 1850-01-01`.
    fn parse(units: &str) -> Option<Self> {
        let (unit, date) = units.split_once(" since ")?;
        let per_day = match unit.trim().to_ascii_lowercase().as_str() {
            "day" | "days" | "d" => 1,
            "hour" | "hours" | "hr" | "hrs" | "h" => 24,
            "minute" | "minutes" | "min" | "mins" => 24 * 60,
            "second" | "seconds" | "sec" | "secs" | "s" => 24 * 60 * 60,
            _ => return None,
        };
        Some(Self { per_day, date: Date::parse(date)? })
    }

    /// Returns the number that stands for a date.
    fn number(self, days: Days, date: Date) -> i64 {
        let years = date.year - self.date.year;
        self.per_day * (years * days.of_year() + days.of(date) - days.of(self.date))
    }

    /// Returns the SQL of year and month.
    fn formulas(self, days: Days, name: &str) -> String {
        let (year, in_year) = (self.date.year, days.of_year());
        let mut count = match self.per_day {
            1 => name.to_owned(),
            per_day => format!("{name} / {per_day}.0"),
        };
        let first = days.of(self.date);
        if first > 0 {
            count = format!("{count} + {first}");
        }
        let whole = format!("floor({count})::INT");
        let part = if first > 0 { format!("({count})") } else { count };
        let month = match days {
            Days::AllLeap => {
                format!("date_part('month', DATE '2000-01-01' + {whole} % {in_year})")
            }
            Days::Of360 => format!("{whole} % 360 / 30 + 1"),
        };
        format!("its year is {year} + floor({part} / {in_year}.0)::INT, and its month {month}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(units: &str, calendar: Option<&str>, date: Option<&str>) -> String {
        let calendar = calendar.map(str::to_owned);
        let data_type = DataType::Float64;
        Count { data_type, units: units.to_owned(), calendar }.message("time", date)
    }

    #[test]
    fn calendars_are_named_with_formulas() {
        for (units, calendar, expected) in [
            (
                "days since 1850-01-01",
                "360_day",
                "time is a number (Float64) of days since 1850-01-01 in the calendar 360_day, whose dates SQL lacks; its year is \
                 1850 + floor(time / 360.0)::INT, and its month floor(time)::INT % 360 / 30 + 1",
            ),
            (
                "hours since 1859-12-01 00:00:00",
                "360_DAY",
                "its year is 1859 + floor((time / 24.0 + 330) / 360.0)::INT, and its month \
                 floor(time / 24.0 + 330)::INT % 360 / 30 + 1",
            ),
            (
                "days since 2000-03-01",
                "366_day",
                "its year is 2000 + floor((time + 60) / 366.0)::INT, and its month \
                 date_part('month', DATE '2000-01-01' + floor(time + 60)::INT % 366)",
            ),
            (
                "days since 1850-01-01 06:00",
                "360_day",
                "calendar 360_day, whose dates SQL lacks; see ",
            ),
            ("days since 0001-01-01", "julian", "the calendar julian, whose dates SQL lacks; see "),
        ] {
            let message = message(units, Some(calendar), None);
            assert!(
                message.contains(expected) && message.ends_with("#other-calendars"),
                "{message}"
            );
        }
        let months = message("months since 2000-01-01", None, Some("2001-01-01"));
        assert!(months.contains("of months since 2000-01-01, and no time; see"), "{months}");
        let days = message("days since 2000-01-01", Some("NoLeap"), None);
        assert!(days.contains("of days since 2000-01-01, and no time; see"), "{days}");
    }

    #[test]
    fn dates_are_numbers() {
        for (units, calendar, date, number) in [
            ("days since 1850-01-01", "366_day", "2000-01-01", "2000-01-01 is 54900;"),
            ("days since 1850-01-01", "366_day", "2000-03", "2000-03 is 54960;"),
            ("days since 1850-01-01", "360_day", "1849-12-30", "1849-12-30 is -1;"),
            ("hours since 1850-02-01", "all_leap", "1851-03-02T00:00", "00:00 is 9504;"),
            ("days since 1850-01-01", "360_day", "2000-01-01 12:00", "its year is 1850 +"),
        ] {
            let message = message(units, Some(calendar), Some(date));
            assert!(message.contains(number), "{date}: {message}");
        }
    }
}
