//! Explains functions and comparisons of times that stay numbers, because SQL lacks their calendar.
//!
//! ```text
//!   date_bin(…, time)           time counts days since 1850-01-01 in the calendar 360_day …: it has date_part, date_trunc, …
//!   time >= DATE '2000-01-01'   …: write a date of the calendar as text
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
use gridfusion::core::array::{Calendar, CountedTimes};
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

/// The functions that know such times.
const KNOWING: [&str; 6] =
    ["date_part", "datepart", "date_trunc", "datetrunc", "to_char", "date_format"];

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
            let is_known = |count: &Count| count.calendar.is_some() && KNOWING.contains(&self.name);
            let counts = |it: &FieldRef| {
                Some((Arc::clone(it), Count::from_field(it).filter(|count| !is_known(count))?))
            };
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
    /// The calendar of numbers that are shown as dates; `None` for numbers that are numbers.
    calendar: Option<Calendar>,
}

impl Count {
    /// Returns the count of a column with numbers and the attributes of CF's times; `None` for other columns.
    pub(crate) fn from_field(field: &Field) -> Option<Self> {
        let units = field.metadata().get("units").filter(|it| it.contains(" since "))?;
        let calendar = CountedTimes::from_field(field).map(CountedTimes::calendar);
        let data_type = field.data_type().clone();
        data_type.is_numeric().then(|| Self { data_type, units: units.clone(), calendar })
    }

    /// Returns what the column is, and what to write instead of a function, or instead of a date in a comparison.
    pub(crate) fn message(&self, name: &str, date: Option<&str>) -> String {
        let Self { data_type, units, .. } = self;
        let Some(calendar) = self.calendar.map(Calendar::name) else {
            return format!(
                "{name} is a number ({data_type}) of {units}, and no time; see {PAGE}units-that-become-timestamps"
            );
        };
        let how = match date {
            Some(date) => format!(
                "write a date of the calendar as text, such as '2000-01-31', in place of {date}"
            ),
            None => format!(
                "it has date_part, date_trunc, to_char and comparisons with text, and CAST({name} AS DOUBLE) is the number"
            ),
        };
        format!(
            "{name} counts {units} in the calendar {calendar}, whose dates SQL lacks; {how}; see {PAGE}other-calendars"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(units: &str, calendar: Option<Calendar>, date: Option<&str>) -> String {
        let data_type = DataType::Float64;
        Count { data_type, units: units.to_owned(), calendar }.message("time", date)
    }

    #[test]
    fn calendars_are_named() {
        let days = "days since 1850-01-01";
        let function = message(days, Some(Calendar::Days360), None);
        assert!(function.starts_with("time counts days since 1850-01-01 in the calendar 360_day"));
        assert!(function.contains("CAST(time AS DOUBLE) is the number"), "{function}");
        let date = message(days, Some(Calendar::AllLeap), Some("2000-01-01"));
        assert!(date.contains("as text, such as '2000-01-31', in place of 2000-01-01"), "{date}");
        let months = message("months since 2000-01-01", None, Some("2001-01-01"));
        assert!(months.contains("of months since 2000-01-01, and no time; see"), "{months}");
    }
}
