//! [`CountedTimesRule`]: refuses casts of numbers to timestamps, if the numbers count time in a calendar that SQL lacks.
//!
//! ```text
//!   time        15.0, days since 1850-01-01 in the calendar 360_day
//!   CAST(time AS TIMESTAMP)      DataFusion: 1970-01-01T00:00:00.000000015      here: an error that names the calendar
//! ```
//!
//! DataFusion counts from 1970 in the unit of the type, and ignores the attributes.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, plan_err};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, LogicalPlan, TryCast};
use datafusion::optimizer::AnalyzerRule;

use super::{column, count};
use crate::exec::matching::known_scalar;

/// Functions that make times of numbers.
const FUNCTIONS: [&str; 7] = [
    "to_timestamp",
    "to_timestamp_seconds",
    "to_timestamp_millis",
    "to_timestamp_micros",
    "to_timestamp_nanos",
    "to_date",
    "from_unixtime",
];

/// An analyzer rule that refuses these casts. It belongs behind DataFusion's `TypeCoercion`.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct CountedTimesRule;

impl AnalyzerRule for CountedTimesRule {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.apply_with_subqueries(|node| {
            let inputs = node.inputs();
            let fields = inputs.iter().flat_map(|input| input.schema().fields().iter());
            // Few tables have such numbers, so most plans are done here.
            if fields.clone().all(|field| count(field).is_none()) {
                return Ok(TreeNodeRecursion::Continue);
            }
            let schema = merge_schema(&inputs);
            node.apply_expressions(|expr| {
                expr.apply(|expr| check(expr, &schema).map(|()| TreeNodeRecursion::Continue))
            })
        })?;
        Ok(plan)
    }

    fn name(&self) -> &str {
        "counted_times"
    }
}

/// Refuses an expression that makes a time of a number.
fn check(expr: &Expr, schema: &DFSchema) -> Result<()> {
    let (number, what) = match expr {
        Expr::Cast(Cast { expr: number, field })
        | Expr::TryCast(TryCast { expr: number, field }) => {
            let to = field.data_type();
            if !matches!(to, DataType::Timestamp(..) | DataType::Date32 | DataType::Date64) {
                return Ok(());
            }
            (&**number, format!("a cast to {to}"))
        }
        Expr::ScalarFunction(ScalarFunction { func, args })
            if FUNCTIONS.contains(&func.name()) && known_scalar(func).is_some() =>
        {
            let Some(number) = args.first() else { return Ok(()) };
            (number, func.name().to_owned())
        }
        _ => return Ok(()),
    };
    let Some(column) = column(number) else { return Ok(()) };
    let (_, field) = column.to_field(schema)?;
    match count(&field) {
        Some((units, calendar)) => plan_err!(
            "{column} is a number of {units} in the calendar {calendar}, and {what} would count from 1970; \
             see docs/time.md#other-calendars"
        ),
        None => Ok(()),
    }
}
