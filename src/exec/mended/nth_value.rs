//! `nth_value` as an aggregate, which DataFusion reverses for rows in descending order, but only in the first of two stages.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::functions_aggregate::nth_value::nth_value_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, Expr, ReversedUDAF, Signature,
};

/// Returns `nth_value`, which is never reversed.
pub(super) fn function() -> Arc<AggregateUDF> {
    static FUNCTION: LazyLock<Arc<AggregateUDF>> =
        LazyLock::new(|| Arc::new(AggregateUDF::from(NthValue(nth_value_udaf()))));
    Arc::clone(&FUNCTION)
}

/// Calls a function that is never reversed, so that rows are sorted instead.
pub(super) fn rewrite(expr: Expr) -> Transformed<Expr> {
    match expr {
        Expr::AggregateFunction(mut call) if *call.func == *nth_value_udaf() => {
            call.func = function();
            Transformed::yes(Expr::AggregateFunction(call))
        }
        expr => Transformed::no(expr),
    }
}

/// DataFusion's function without its reverse.
#[derive(Debug, PartialEq, Eq, Hash)]
struct NthValue(Arc<AggregateUDF>);

impl AggregateUDFImpl for NthValue {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.0.return_type(types)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        self.0.accumulator(args)
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        self.0.state_fields(args)
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::NotSupported
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.0.documentation()
    }
}
