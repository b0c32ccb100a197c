//! Numbers that count time in a calendar whose dates SQL lacks, such as `360_day`.
//!
//! ```text
//!   time >= '2001-02-30'         dates: time >= 54419
//!   CAST(time AS TIMESTAMP)      casts: an error that names the calendar; DataFusion would count from 1970
//! ```

mod casts;
mod dates;

use datafusion::arrow::datatypes::Field;
use datafusion::logical_expr::{Cast, Expr, TryCast};

pub(crate) use casts::CountedTimesRule;
pub(crate) use dates::CountedDatesRule;

use crate::core::array::Calendar;

/// Returns the column that a number is, but for casts.
fn column(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::Column(_) => Some(expr),
        Expr::Alias(alias) => column(&alias.expr),
        Expr::Cast(Cast { expr, field }) | Expr::TryCast(TryCast { expr, field })
            if field.data_type().is_numeric() =>
        {
            column(expr)
        }
        _ => None,
    }
}

/// Returns the units and the calendar of numbers that count time, unless the calendar is that of SQL.
fn count(field: &Field) -> Option<(&str, &str)> {
    let (units, calendar) = (field.metadata().get("units")?, field.metadata().get("calendar")?);
    let is_shared =
        matches!(Calendar::from_name(calendar), Some(Calendar::Mixed | Calendar::Proleptic));
    let counts = field.data_type().is_numeric() && units.contains(" since ") && !is_shared;
    counts.then_some((units.as_str(), calendar.as_str()))
}
