//! `lead` with `IGNORE NULLS`. DataFusion loses the place of the next value if it evaluates row by row, and is right if it evaluates
//! whole partitions.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::functions_window::lead_lag::{lag_udwf, lead_udwf};
use datafusion::logical_expr::expr::NullTreatment;
use datafusion::logical_expr::function::{
    ExpressionArgs, PartitionEvaluatorArgs, WindowUDFFieldArgs,
};
use datafusion::logical_expr::window_state::WindowAggState;
use datafusion::logical_expr::{
    Documentation, Expr, LimitEffect, PartitionEvaluator, ReversedUDWF, Signature,
    WindowFunctionDefinition, WindowUDF, WindowUDFImpl,
};
use datafusion::physical_expr::PhysicalExprRef;

/// Returns `lead` and `lag` as functions that evaluate whole partitions.
#[cfg(feature = "codec")]
pub(super) fn functions() -> [Arc<WindowUDF>; 2] {
    [over_gaps(&lead_udwf()), over_gaps(&lag_udwf())]
}

fn over_gaps(function: &Arc<WindowUDF>) -> Arc<WindowUDF> {
    Arc::new(WindowUDF::from(ShiftOverGaps(Arc::clone(function))))
}

/// Calls a function that evaluates whole partitions, for `lead` and `lag` with `IGNORE NULLS`.
pub(super) fn rewrite(expr: Expr) -> Transformed<Expr> {
    let Expr::WindowFunction(mut call) = expr else { return Transformed::no(expr) };
    let ignores = call.params.null_treatment == Some(NullTreatment::IgnoreNulls);
    if let WindowFunctionDefinition::WindowUDF(function) = &call.fun
        && ignores
        && [lead_udwf(), lag_udwf()].contains(function)
    {
        call.fun = WindowFunctionDefinition::WindowUDF(over_gaps(function));
        return Transformed::yes(Expr::WindowFunction(call));
    }
    Transformed::no(Expr::WindowFunction(call))
}

/// DataFusion's function, which looks ahead in whole partitions only.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ShiftOverGaps(Arc<WindowUDF>);

impl WindowUDFImpl for ShiftOverGaps {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn expressions(&self, args: ExpressionArgs<'_>) -> Vec<PhysicalExprRef> {
        self.0.expressions(args)
    }

    fn partition_evaluator(
        &self,
        args: PartitionEvaluatorArgs<'_>,
    ) -> Result<Box<dyn PartitionEvaluator>> {
        let evaluator = self.0.partition_evaluator_factory(args)?;
        // One that looks back is causal, and right row by row.
        Ok(match evaluator.is_causal() {
            true => evaluator,
            false => Box::new(WholePartitions(evaluator)),
        })
    }

    fn field(&self, args: WindowUDFFieldArgs<'_>) -> Result<FieldRef> {
        self.0.field(args)
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.0.coerce_types(types)
    }

    fn reverse_expr(&self) -> ReversedUDWF {
        match self.0.reverse_expr() {
            ReversedUDWF::Reversed(other) => {
                ReversedUDWF::Reversed(Arc::new(WindowUDF::from(Self(other))))
            }
            other => other,
        }
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.0.documentation()
    }

    /// The next value may be any number of rows away.
    fn limit_effect(&self, _: &[PhysicalExprRef]) -> LimitEffect {
        LimitEffect::Unknown
    }
}

/// An evaluator of which only the evaluation of whole partitions is used.
#[derive(Debug)]
struct WholePartitions(Box<dyn PartitionEvaluator>);

impl PartitionEvaluator for WholePartitions {
    fn memoize(&mut self, state: &mut WindowAggState) -> Result<()> {
        self.0.memoize(state)
    }

    fn get_range(&self, row: usize, rows: usize) -> Result<Range<usize>> {
        self.0.get_range(row, rows)
    }

    fn evaluate_all(&mut self, values: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        self.0.evaluate_all(values, rows)
    }

    fn evaluate(&mut self, values: &[ArrayRef], range: &Range<usize>) -> Result<ScalarValue> {
        self.0.evaluate(values, range)
    }

    fn supports_bounded_execution(&self) -> bool {
        false
    }
}
