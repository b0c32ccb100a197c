//! The states of an aggregate over one row, or over none.

use std::sync::Arc;

use arrow::array::{BooleanArray, RecordBatch, RecordBatchOptions};
use arrow::datatypes::Schema;
use datafusion::common::{ScalarValue, internal_datafusion_err};
use datafusion::error::Result;
use datafusion::logical_expr::EmitTo;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::Literal;

/// Returns the state of an aggregate over no row. Its arguments would be `args`, over columns that `schema` has.
pub(super) fn empty_state(
    function: &AggregateFunctionExpr,
    args: &[PhysicalExprRef],
    schema: &Schema,
) -> Result<Vec<ScalarValue>> {
    let null = |arg: &PhysicalExprRef| -> Result<PhysicalExprRef> {
        // Parameters, such as a separator, are part of the function.
        match arg.is::<Literal>() {
            true => Ok(Arc::clone(arg)),
            false => Ok(Arc::new(Literal::new(ScalarValue::try_from(&arg.data_type(schema)?)?))),
        }
    };
    let of_nulls = function
        .with_new_expressions(args.iter().map(null).collect::<Result<_>>()?, vec![])
        .ok_or_else(|| internal_datafusion_err!("an aggregate takes no other arguments"))?;
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    let row = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &options)?;
    state_of(&of_nulls, &row, false)
}

/// Returns the state of an aggregate over a row, or over none unless the row `counts`. Some functions have NULL as the count
/// of a group without a value, and so has this.
pub(super) fn state_of(
    function: &AggregateFunctionExpr,
    row: &RecordBatch,
    counts: bool,
) -> Result<Vec<ScalarValue>> {
    let args = function.expressions().into_iter();
    let args = args.map(|arg| arg.evaluate(row)?.into_array(1)).collect::<Result<Vec<_>>>()?;
    if !function.groups_accumulator_supported() {
        let mut state = function.create_accumulator()?;
        if counts {
            state.update_batch(&args)?;
        }
        return state.state();
    }
    // A group that an accumulator never hears of counts as one with values.
    let mut states = function.create_groups_accumulator()?;
    states.update_batch(&args, &[0], Some(&BooleanArray::from(vec![counts])), 1)?;
    let state = states.state(EmitTo::All)?;
    state.iter().map(|column| ScalarValue::try_from_array(column, 0)).collect()
}
