//! The rule `GridTop`: leaves out rows below windows of which only the first rows are needed.

use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, Column as PhysicalColumn, Literal};
use datafusion::physical_expr::window::WindowExpr;
use datafusion::physical_expr::{PhysicalExprRef, split_conjunction};
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;

use super::node::GridTopExec;
use super::top_of::TopOf;
use crate::exec::config::GridfusionConfig;
use crate::exec::matching::{
    InputOperators, ScanBelow, ScanCells, known_window, standard_function, window_functions,
};
use crate::exec::rules::walk::up;

/// For `row_number` or `rank` over an array, of which a filter keeps the first few: leaves out the rows that cannot be among them,
/// before the sort.
pub(in crate::exec) fn leave_out_rows(
    plan: Arc<dyn ExecutionPlan>,
    config: &GridfusionConfig,
) -> Result<Arc<dyn ExecutionPlan>> {
    let replace = |node: &Arc<dyn ExecutionPlan>| match node.downcast_ref::<FilterExec>() {
        Some(filter) => with_fewer_rows(node, filter, config),
        None => Ok(None),
    };
    up(plan, replace).data()
}

/// Returns `plan`, which is a filter above a window, with fewer rows below the window. `None` if all rows are needed.
fn with_fewer_rows(
    plan: &Arc<dyn ExecutionPlan>,
    filter: &FilterExec,
    config: &GridfusionConfig,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let is_window = |it: &dyn ExecutionPlan| window_functions(it).is_some();
    let Some(above) = InputOperators::above(filter.input(), &is_window)? else { return Ok(None) };
    let window = &above.input;
    let inputs = window.children();
    let (Some(functions), [input]) = (window_functions(window.as_ref()), inputs.as_slice()) else {
        return Ok(None);
    };
    let first_function = input.schema().fields().len();
    let predicate = above.over_input(filter.predicate())?;
    let count = split_conjunction(&predicate).into_iter().filter_map(|it| most(it, first_function));
    let Some(count) = count.min() else { return Ok(None) };
    let Some(below) = ScanBelow::find(input, ScanCells::Read)? else { return Ok(None) };
    let Some(top) = top_of(functions, count, &below)? else { return Ok(None) };
    let Some(node) = GridTopExec::over(&below.scan, top)? else { return Ok(None) };
    if node.bytes() > config.optimizer.reduce_memory as u64 {
        return Ok(None);
    }
    let node: Arc<dyn ExecutionPlan> = Arc::new(node);
    let replace = |it: Arc<dyn ExecutionPlan>| match Arc::ptr_eq(&it, &below.operators.input) {
        true => Ok(Transformed::yes(Arc::clone(&node))),
        false => Ok(Transformed::no(it)),
    };
    Ok(Some(Arc::clone(plan).transform_up(replace)?.data))
}

/// Returns the greatest value of a function of the window that a conjunct allows; `None` for another condition.
fn most(conjunct: &PhysicalExprRef, first_function: usize) -> Option<i64> {
    let comparison = conjunct.downcast_ref::<BinaryExpr>()?;
    let column = |expr: &PhysicalExprRef| {
        expr.downcast_ref::<PhysicalColumn>().is_some_and(|it| it.index() >= first_function)
    };
    let number = |expr: &PhysicalExprRef| match expr.downcast_ref::<Literal>()?.value() {
        ScalarValue::UInt64(number) => i64::try_from((*number)?).ok(),
        ScalarValue::Int64(number) => *number,
        _ => None,
    };
    let (left, right) = (comparison.left(), comparison.right());
    let (operator, number) = if column(left) {
        (*comparison.op(), number(right)?)
    } else if column(right) {
        (comparison.op().swap()?, number(left)?)
    } else {
        return None;
    };
    match operator {
        Operator::LtEq | Operator::Eq => Some(number),
        Operator::Lt => number.checked_sub(1),
        _ => None,
    }
}

/// Returns the rows that functions of a window need to get values up to `count`. `None` unless all of them are `row_number` or
/// `rank` in one order.
fn top_of(
    functions: &[Arc<dyn WindowExpr>],
    count: i64,
    below: &ScanBelow,
) -> Result<Option<TopOf>> {
    let Some(first) = functions.first() else { return Ok(None) };
    let mut is_numbered = true;
    for function in functions {
        let Some(name) = name(function) else { return Ok(None) };
        is_numbered &= name == "row_number";
        let is_same = function.partition_by() == first.partition_by()
            && function.order_by() == first.order_by();
        if !is_same || !matches!(name, "row_number" | "rank") {
            return Ok(None);
        }
    }
    let ([order, ..], Ok(count)) = (first.order_by(), usize::try_from(count)) else {
        return Ok(None);
    };
    let over_scan = |expr: &PhysicalExprRef| below.over_scan(expr);
    let partition_by = first.partition_by().iter().map(over_scan).collect::<Result<Vec<_>>>()?;
    let any_of_ties = is_numbered && first.order_by().len() == 1;
    let mut order = order.clone();
    order.expr = over_scan(&order.expr)?;
    let predicate = below.operators.predicate.clone();
    if partition_by.iter().chain([&order.expr]).chain(&predicate).any(is_volatile) {
        return Ok(None);
    }
    Ok(Some(TopOf { count, partition_by, order, predicate, any_of_ties }))
}

/// Returns the name of a function of DataFusion that is no aggregate.
fn name(function: &Arc<dyn WindowExpr>) -> Option<&'static str> {
    known_window(standard_function(function.as_ref())?.fun())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::test_array::rewritten;

    fn first(function: &str, order: &str, condition: &str) -> String {
        format!(
            "SELECT * FROM (SELECT *, {function} OVER (PARTITION BY station ORDER BY {order}) AS n
             FROM t) WHERE {condition}"
        )
    }

    #[tokio::test]
    async fn rows_that_cannot_be_first_are_left_out() {
        let query = first("row_number()", "value DESC", "n <= 2");
        insta::assert_snapshot!(rewritten(&query, leave_out_rows).await.unwrap(), @r#"
OutputRequirementExec: order_by=[], dist_by=Unspecified
  ProjectionExec: expr=[hour@0 as hour, station@1 as station, value@2 as value, row_number() PARTITION BY [t.station] ORDER BY [t.value DESC NULLS FIRST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW@3 as n]
    FilterExec: row_number() PARTITION BY [t.station] ORDER BY [t.value DESC NULLS FIRST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW@3 <= 2
      BoundedWindowAggExec: wdw=[row_number() PARTITION BY [t.station] ORDER BY [t.value DESC NULLS FIRST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW: Field { "row_number() PARTITION BY [t.station] ORDER BY [t.value DESC NULLS FIRST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW": UInt64 }, frame: RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW], mode=[Sorted]
        GridTopExec: first=2, by=value@2 DESC, gby=[station@1], dataset=test, chunks=32/32, projection=[hour, station, value]
"#);
        for (query, expected) in [
            (first("rank()", "value", "n < 3"), "first=2"),
            (first("row_number()", "value, hour", "n = 1 AND hour > 0"), "first=1"),
            (first("row_number()", "value", "3 >= n"), "first=3"),
        ] {
            let plan = rewritten(&query, leave_out_rows).await.unwrap();
            assert!(plan.contains(&format!("GridTopExec: {expected}, ")), "{plan}");
        }
    }

    #[tokio::test]
    async fn all_rows_stay_where_they_are_needed() {
        for query in [
            // The last rows of a partition may be asked for.
            first("row_number()", "value", "n >= 2"),
            first("row_number()", "value", "n <= 2 OR hour = 0"),
            // Ties do not count, so any number of rows may have the first ranks.
            first("dense_rank()", "value", "n <= 2"),
            first("sum(value)", "value", "n <= 2"),
            first("row_number()", "random()", "n <= 2"),
            "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY station ORDER BY height) AS n
             FROM heights) WHERE n <= 2"
                .to_owned(),
        ] {
            assert_eq!(rewritten(&query, leave_out_rows).await, None, "{query}");
        }
    }
}
