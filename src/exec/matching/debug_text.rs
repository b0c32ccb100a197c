//! Facts about windows that DataFusion 55 shows nowhere but in the text of `Debug`.
//!
//! Another version may write another text. So a fact counts only if the text has exactly the known form, and rules leave a
//! window alone whose text they do not know. A test compares the forms with those of the DataFusion that is linked.

use std::fmt::Debug;
use std::sync::Arc;

use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::window::{
    PlainAggregateWindowExpr, SlidingAggregateWindowExpr, StandardWindowExpr, WindowExpr,
};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::windows::WindowUDFExpr;

use super::windows::window_functions;

/// How a function goes through the rows of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::exec) struct FunctionMode {
    /// Whether it goes through them from the last to the first.
    pub(in crate::exec) is_reversed: bool,
    pub(in crate::exec) ignores_nulls: bool,
}

impl FunctionMode {
    /// Returns how `function` reads rows; `None` if the text has another form.
    pub(in crate::exec) fn try_new(function: &WindowUDFExpr) -> Option<Self> {
        // The text ends with these two fields. The text before, such as a name, may contain anything.
        let text = format!("{function:?}");
        let all = [(false, false), (false, true), (true, false), (true, true)];
        let (is_reversed, ignores_nulls) =
            all.into_iter().find(|(is_reversed, ignores_nulls)| {
                text.ends_with(&format!(
                    ", is_reversed: {is_reversed}, ignore_nulls: {ignores_nulls} }}"
                ))
            })?;
        Some(Self { is_reversed, ignores_nulls })
    }
}

/// Returns the aggregate of a window, and whether it has no `FILTER` for certain; `None` for a function of another kind.
fn aggregate_of(expr: &dyn WindowExpr) -> Option<(&AggregateFunctionExpr, bool)> {
    fn has_no_filter(expr: &impl Debug) -> bool {
        format!("{expr:?}").ends_with(", filter: None }")
    }
    if let Some(sliding) = expr.as_any().downcast_ref::<SlidingAggregateWindowExpr>() {
        return Some((sliding.get_aggregate_expr(), has_no_filter(sliding)));
    }
    let plain = expr.as_any().downcast_ref::<PlainAggregateWindowExpr>()?;
    Some((plain.get_aggregate_expr(), has_no_filter(plain)))
}

/// Returns the aggregate of a window without `FILTER`; `None` for another function, and if it may have one.
pub(in crate::exec) fn unfiltered_aggregate(
    expr: &dyn WindowExpr,
) -> Option<&AggregateFunctionExpr> {
    aggregate_of(expr).filter(|(_, has_no_filter)| *has_no_filter).map(|(aggregate, _)| aggregate)
}

/// Returns the function of a window expression that is no aggregate.
pub(in crate::exec) fn standard_function(expr: &dyn WindowExpr) -> Option<&WindowUDFExpr> {
    let expr = expr.as_any().downcast_ref::<StandardWindowExpr>()?;
    expr.get_standard_func_expr().as_any().downcast_ref::<WindowUDFExpr>()
}

/// Whether DataFusion's messages may lose a part of a window: `FILTER`, `IGNORE NULLS`, the direction of a function that runs
/// against the order of its rows, or what this version does not know.
pub fn messages_lose_parts(plan: &dyn ExecutionPlan) -> bool {
    let loses = |expr: &Arc<dyn WindowExpr>| match standard_function(expr.as_ref()) {
        Some(function) => FunctionMode::try_new(function)
            .is_none_or(|mode| mode.ignores_nulls || mode.is_reversed),
        None => unfiltered_aggregate(expr.as_ref()).is_none(),
    };
    window_functions(plan).unwrap_or_default().iter().any(loses)
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field, Schema};
    use datafusion::functions_aggregate::sum::sum_udaf;
    use datafusion::functions_window::nth_value::{first_value_udwf, last_value_udwf};
    use datafusion::logical_expr::{WindowFrame, WindowFunctionDefinition};
    use datafusion::physical_expr::expressions::{col, lit};
    use datafusion::physical_plan::windows::{create_udwf_window_expr, create_window_expr};

    use super::*;

    fn schema() -> Schema {
        Schema::new(vec![Field::new("v", DataType::Float64, true)])
    }

    #[test]
    fn the_text_tells_the_direction_and_ignore_nulls() {
        // A name that looks like the end of the text changes nothing.
        for name in ["f", ", is_reversed: false, ignore_nulls: false }"] {
            for ignores_nulls in [false, true] {
                let args = [col("v", &schema()).unwrap()];
                let function = create_udwf_window_expr(
                    &first_value_udwf(),
                    &args,
                    &schema(),
                    name.to_owned(),
                    ignores_nulls,
                );
                let function = function.unwrap();
                let reading = |function: &dyn std::any::Any| {
                    FunctionMode::try_new(function.downcast_ref::<WindowUDFExpr>().unwrap())
                };
                let forwards = FunctionMode { is_reversed: false, ignores_nulls };
                assert_eq!(reading(function.as_any()), Some(forwards));
                let reversed = function.reverse_expr().unwrap();
                let backwards = FunctionMode { is_reversed: true, ignores_nulls };
                assert_eq!(reading(reversed.as_any()), Some(backwards));
            }
        }
    }

    #[test]
    fn the_text_tells_whether_there_is_a_filter() {
        let of = |frame: WindowFrame, filter| {
            create_window_expr(
                &WindowFunctionDefinition::AggregateUDF(sum_udaf()),
                "s".to_owned(),
                &[col("v", &schema()).unwrap()],
                &[],
                &[],
                Arc::new(frame),
                Arc::new(schema()),
                false,
                false,
                filter,
            )
            .unwrap()
        };
        let sliding = || {
            use datafusion::common::ScalarValue;
            use datafusion::logical_expr::{WindowFrameBound, WindowFrameUnits};
            let bound = |rows| WindowFrameBound::Preceding(ScalarValue::UInt64(Some(rows)));
            WindowFrame::new_bounds(WindowFrameUnits::Rows, bound(2), bound(0))
        };
        for frame in [WindowFrame::new(None), sliding()] {
            assert!(unfiltered_aggregate(of(frame.clone(), None).as_ref()).is_some());
            let filtered = of(frame, Some(lit(true)));
            assert!(aggregate_of(filtered.as_ref()).is_some());
            assert!(unfiltered_aggregate(filtered.as_ref()).is_none());
        }
        let standard = WindowFunctionDefinition::WindowUDF(last_value_udwf());
        assert_eq!(standard.name(), "last_value");
    }
}
