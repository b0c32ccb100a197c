//! [`CountedTimesRule`]: casts of numbers that count time in a calendar that SQL lacks.
//!
//! ```text
//!   time        15.0, days since 1850-01-01 in the calendar 360_day
//!   time::TEXT                   1850-01-16
//!   COPY … TO 'a.csv'            1850-01-16
//!   CAST(time AS TIMESTAMP)      DataFusion: 1970-01-01T00:00:00.000000015      here: an error that names the calendar
//! ```
//!
//! DataFusion counts from 1970 in the unit of the type, and ignores the attributes.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::DFSchema;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::dml::CopyTo;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Cast, Expr, LogicalPlan, LogicalPlanBuilder, TryCast, cast};
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::utils::NamePreserver;

use super::Counted;
use super::dates::has_counted;
use super::function::call;
use super::origins::refuse_timestamps;
use crate::core::array::CountedTimes;
use crate::exec::mended::with_names;

/// The endings of files of text.
const TEXT_FILES: [&str; 2] = ["csv", "json"];

/// An analyzer rule that writes such numbers as dates where a query makes text of them, and refuses to make timestamps of them. It
/// belongs behind DataFusion's `TypeCoercion`, which adds casts.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct CountedTimesRule;

impl AnalyzerRule for CountedTimesRule {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        refuse_timestamps(&plan)?;
        if !has_counted(&plan)? {
            return Ok(plan);
        }
        plan.transform_up_with_subqueries(in_node).map(|plan| plan.data)
    }

    fn name(&self) -> &str {
        "counted_times"
    }
}

fn in_node(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let schema = merge_schema(&node.inputs());
    let names = NamePreserver::new(&node);
    let as_text = |expr: Expr| expr.transform_up(|expr| Ok(as_text(expr, &schema)));
    let rewritten = node.map_expressions(|expr| with_names(&names, expr, &as_text))?;
    rewritten.map_data(|node| match node {
        LogicalPlan::Copy(copy) => copied(copy).map(LogicalPlan::Copy),
        node => node.recompute_schema(),
    })
}

/// Replaces a cast to text.
fn as_text(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let cast_from = match &expr {
        Expr::Cast(Cast { expr, field }) | Expr::TryCast(TryCast { expr, field }) => {
            field.data_type().is_string().then_some((expr, field.data_type()))
        }
        _ => None,
    };
    let Some((number, to)) = cast_from else { return Transformed::no(expr) };
    let Some(counted) = Counted::from_expr(number, schema) else { return Transformed::no(expr) };
    let text = call("text", "", number.as_ref().clone(), &counted);
    Transformed::yes(if *to == DataType::Utf8 { text } else { cast(text, to.clone()) })
}

/// Writes dates to files of text. Other files have the numbers and their metadata.
fn copied(mut copy: CopyTo) -> Result<CopyTo> {
    let schema = copy.input.schema();
    let is_of_text = TEXT_FILES.iter().any(|it| copy.file_type.get_ext().eq_ignore_ascii_case(it));
    let counts = |field: &Field| CountedTimes::from_field(field).is_some();
    if !is_of_text || !schema.fields().iter().any(|field| counts(field)) {
        return Ok(copy);
    }
    let column = |at: usize| {
        let (relation, field) = schema.qualified_field(at);
        let column = Expr::Column((relation, field).into());
        match Counted::from_expr(&column, schema) {
            Some(counted) => {
                call("text", "", column, &counted).alias_qualified(relation.cloned(), field.name())
            }
            None => column,
        }
    };
    let columns: Vec<Expr> = (0..schema.fields().len()).map(column).collect();
    let input = LogicalPlanBuilder::from(copy.input.as_ref().clone()).project(columns)?.build()?;
    copy.input = Arc::new(input);
    Ok(copy)
}
