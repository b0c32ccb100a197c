//! Times as people write them: without seconds, minutes or days.
//!
//! ```text
//!   time >= '2022-07'                     time >= CAST('2022-07-01T00:00:00' AS TIMESTAMP)
//!   time = '2022-07-01 12:00'      ──▶    time = CAST('2022-07-01T12:00:00' AS TIMESTAMP)
//!   TIMESTAMP '2022-7-1T9:30Z'            CAST('2022-07-01T09:30:00Z' AS TIMESTAMP)
//! ```
//!
//! Arrow reads only times with seconds and dates with days. ISO 8601 lets a writer leave them out: then a time stands for its
//! beginning. Texts that Arrow reads stay as they are.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::{Cast, Expr, LogicalPlan, TryCast};
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::utils::NamePreserver;

use super::mended::with_names;

/// An analyzer rule that completes times in text. It belongs behind DataFusion's `TypeCoercion`, which casts the texts that are
/// compared with times.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct WrittenTimesRule;

impl AnalyzerRule for WrittenTimesRule {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        // Few queries have such a text, and looking for one is cheaper than making all nodes again.
        let mut is_found = false;
        plan.apply_with_subqueries(|node| {
            node.apply_expressions(|expr| {
                expr.apply(|expr| {
                    is_found |= complete(expr).is_some();
                    Ok(next(is_found))
                })
            })
        })?;
        if !is_found {
            return Ok(plan);
        }
        let completed = |expr: Expr| {
            expr.transform_up(|expr| {
                Ok(complete(&expr).map_or_else(|| Transformed::no(expr), Transformed::yes))
            })
        };
        let in_plan = |plan: LogicalPlan| {
            let names = NamePreserver::new(&plan);
            plan.map_expressions(|expr| with_names(&names, expr, &completed))
        };
        Ok(plan.transform_up_with_subqueries(in_plan)?.data)
    }

    fn name(&self) -> &str {
        "written_times"
    }
}

const fn next(is_found: bool) -> TreeNodeRecursion {
    if is_found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue }
}

/// Returns the cast of a completed text, if the text of this cast to a time or date is one that Arrow cannot read.
fn complete(expr: &Expr) -> Option<Expr> {
    let (Expr::Cast(Cast { expr: text, field }) | Expr::TryCast(TryCast { expr: text, field })) =
        expr
    else {
        return None;
    };
    let Expr::Literal(literal, metadata) = &**text else { return None };
    let (time, text) = (field.data_type(), literal.try_as_str()??);
    if !matches!(time, DataType::Timestamp(..) | DataType::Date32 | DataType::Date64) {
        return None;
    }
    let casts = |text: &str| ScalarValue::from(text).cast_to(time).is_ok_and(|it| !it.is_null());
    let completed = completed(text).filter(|it| !casts(text) && casts(it))?;
    let text = Box::new(Expr::Literal(ScalarValue::from(completed), metadata.clone()));
    let field = Arc::clone(field);
    Some(match expr {
        Expr::TryCast(_) => Expr::TryCast(TryCast { expr: text, field }),
        _ => Expr::Cast(Cast { expr: text, field }),
    })
}

/// Returns a time with all its parts: `YYYY-MM-DDTHH:MM:SS` and the zone of the text. `None` if the text is no such time, or has
/// seconds.
fn completed(text: &str) -> Option<String> {
    let (date, time) = text.trim().split_once(['T', 't', ' ']).unwrap_or((text.trim(), "0"));
    let mut parts = date.split('-');
    let year = parts.next().filter(|it| it.len() == 4)?;
    let (month, day) = (parts.next().unwrap_or("1"), parts.next().unwrap_or("1"));
    let end = time.find(|it: char| !it.is_ascii_digit() && it != ':').unwrap_or(time.len());
    let (clock, zone) = time.split_at(end);
    let (hour, minute) = clock.split_once(':').unwrap_or((clock, "0"));
    let is_number =
        |it: &&str| matches!(it.len(), 1 | 2 | 4) && it.bytes().all(|it| it.is_ascii_digit());
    if parts.next().is_some() || ![year, month, day, hour, minute].iter().all(is_number) {
        return None;
    }
    // Arrow reads `+02:00` and `Z` directly behind a time, and names such as `UTC` behind a blank.
    let zone = zone.trim();
    let is_name = zone.len() > 1 && zone.starts_with(|it: char| it.is_ascii_alphabetic());
    let gap = if is_name { " " } else { "" };
    Some(format!("{year}-{month:0>2}-{day:0>2}T{hour:0>2}:{minute:0>2}:00{gap}{zone}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_are_left_out_are_added() {
        for (text, expected) in [
            ("2022", "2022-01-01T00:00:00"),
            ("2022-07", "2022-07-01T00:00:00"),
            ("2022-7-1", "2022-07-01T00:00:00"),
            ("2022-07-01 12:00", "2022-07-01T12:00:00"),
            ("2022-07-01T12:00", "2022-07-01T12:00:00"),
            (" 2022-07-01t9 ", "2022-07-01T09:00:00"),
            ("2022-07-01 12:00Z", "2022-07-01T12:00:00Z"),
            ("2022-07-01 12:00+02:00", "2022-07-01T12:00:00+02:00"),
            ("2022-07-01 12:00 -0230", "2022-07-01T12:00:00-0230"),
            ("2022-07-01 12:00 Europe/Oslo", "2022-07-01T12:00:00 Europe/Oslo"),
        ] {
            assert_eq!(completed(text).as_deref(), Some(expected), "{text}");
        }
        for text in [
            "",
            "May",
            "22",
            "20220701",
            "2022-",
            "2022-07-",
            "2022-07-01-01",
            "2022-07-01 12:00:00",
            "2022-07-01 12:",
            "-2022-07",
            "2022-07-01 :30",
            "2022-07-01 12:00:",
            "2022/07/01",
            "2022-07-0x",
        ] {
            assert_eq!(completed(text), None, "{text}");
        }
    }
}
