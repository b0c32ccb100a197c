//! Numbers that count time in a calendar whose dates SQL lacks, such as `360_day`: a type of time without a type of Arrow.
//!
//! Field metadata has units and calendar. Rules see it while a query is planned, and write both into the plan:
//!
//! ```text
//!   date_part('month', time)     gridfusion_date('part', 'month', time, 'days since 1850-01-01', '360_day')
//!   time >= '2001-02-30'         time >= 54419
//!   time::TEXT                   gridfusion_date('text', …)
//!   CAST(time AS TIMESTAMP)      an error that names the calendar; DataFusion would count from 1970
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `function` | `gridfusion_date`, which later steps evaluate once per label, as other functions |
//! | `dates` | the rule before DataFusion's `TypeCoercion`: comparisons, and calls of functions |
//! | `passed` | expressions that pass times on, such as `CASE` |
//! | `casts` | the rule behind it: casts to text and to timestamps, and files of text |
//! | `origins` | the error for timestamps of such numbers, whatever a query computed with them |
//! | `extract` | `EXTRACT`, as a call that the first rule sees |
//! | `kept` | results of statistics keep the metadata |

mod casts;
mod dates;
mod extract;
mod function;
mod kept;
mod origins;
mod passed;

use std::sync::Arc;

use datafusion::arrow::datatypes::FieldRef;
use datafusion::common::DFSchema;
use datafusion::logical_expr::{Expr, ExprSchemable};

pub(crate) use casts::CountedTimesRule;
pub(crate) use dates::CountedDatesRule;
pub(crate) use extract::ExtractPlanner;
pub(crate) use function::date_function;
pub(in crate::exec) use function::{
    date_field, number_of_time, possible_date_field, with_metadata_of,
};
pub(in crate::exec) use kept::KeptMetadata;

use crate::core::array::CountedTimes;

/// An expression whose numbers count time: its field, and what the numbers mean.
#[derive(Debug)]
struct Counted {
    field: FieldRef,
    times: CountedTimes,
}

impl Counted {
    /// Returns what the numbers of an expression mean; `None` for all other expressions.
    fn from_expr(expr: &Expr, schema: &DFSchema) -> Option<Self> {
        // All others have no metadata.
        let may_count = matches!(
            expr,
            Expr::Alias(_)
                | Expr::Column(_)
                | Expr::OuterReferenceColumn(..)
                | Expr::ScalarSubquery(_)
                | Expr::ScalarFunction(_)
                | Expr::AggregateFunction(_)
                | Expr::WindowFunction(_)
                | Expr::Cast(_)
                | Expr::TryCast(_)
                | Expr::Negative(_)
        );
        if !may_count {
            return None;
        }
        let (_, field) = expr.to_field(schema).ok()?;
        Self::from_field(&field)
    }

    fn from_field(field: &FieldRef) -> Option<Self> {
        Some(Self { times: CountedTimes::from_field(field)?, field: Arc::clone(field) })
    }

    fn attribute(&self, key: &str) -> &str {
        self.field.metadata().get(key).map_or("", String::as_str)
    }

    fn units(&self) -> &str {
        self.attribute("units")
    }

    fn calendar(&self) -> &str {
        self.attribute("calendar")
    }

    /// Returns `days since 1850-01-01 in the calendar 360_day`.
    fn shown(&self) -> String {
        format!("{} in the calendar {}", self.units(), self.times.calendar().name())
    }
}
