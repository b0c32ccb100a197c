//! The rule `GridLossyFilters`: filters by equality of an expression that has one value for several inputs.
//!
//! DataFusion computes the range of `x` from `CAST(x AS INT) = 3` as `[3, 3]`, and then takes `x` as constant. So it leaves out sorts,
//! and orders of windows. It does so for every expression that loses digits.

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use datafusion::common::tree_node::{TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::Column as PhysicalColumn;
use datafusion::physical_expr::expressions::{BinaryExpr, CastExpr, Literal, NegativeExpr, lit};
use datafusion::physical_expr::intervals::utils::check_support;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{ConstExpr, PhysicalExprRef, conjunction, split_conjunction};
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use crate::exec::rules::walk::up;

/// Replaces filters that declare wrong constants. It belongs before `EnsureRequirements`, which relies on what filters declare, and
/// behind the rules that push predicates down.
pub(in crate::exec) fn with_honest_filters(
    plan: Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    up(plan, |node| Ok(node.downcast_ref::<FilterExec>().map(honest).transpose()?.flatten())).data()
}

/// Returns a filter that declares no column as constant that is not. `None` if the filter is one already.
fn honest(filter: &FilterExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let (predicate, input) = (filter.predicate(), filter.input());
    let schema = input.schema();
    if !check_support(predicate, &schema) {
        return Ok(None);
    }
    let conjuncts = split_conjunction(predicate);
    let is_lossy = |conjunct: &PhysicalExprRef| {
        conjunct.exists(|expr| loses_digits(expr, &schema)).unwrap_or(true)
    };
    if !conjuncts.iter().any(|conjunct| is_lossy(conjunct)) {
        return Ok(None);
    }
    let wrong = wrong_constants(predicate, input)?;
    let mut is_changed = false;
    let conjuncts = conjuncts.into_iter().map(|conjunct| {
        let is_wrong = collect_columns(conjunct).iter().any(|column| wrong.contains(column));
        match is_wrong && is_lossy(conjunct) {
            true => {
                is_changed = true;
                is_true(conjunct)
            }
            false => Arc::clone(conjunct),
        }
    });
    let predicate = conjunction(conjuncts.collect::<Vec<_>>());
    if !is_changed {
        return Ok(None);
    }
    let honest = FilterExecBuilder::from(filter).with_predicate(predicate).build()?;
    Ok(Some(Arc::new(honest)))
}

/// A condition with the same rows, whose ranges DataFusion does not compute.
fn is_true(condition: &PhysicalExprRef) -> PhysicalExprRef {
    Arc::new(BinaryExpr::new(Arc::clone(condition), Operator::IsNotDistinctFrom, lit(true)))
}

/// Returns the columns that a filter declares as constant only because of ranges.
fn wrong_constants(
    predicate: &PhysicalExprRef,
    input: &Arc<dyn ExecutionPlan>,
) -> Result<Vec<PhysicalColumn>> {
    let whole = FilterExec::try_new(Arc::clone(predicate), Arc::clone(input))?;
    let mut known = input.equivalence_properties().clone();
    let equal = ConstExpr::collect_predicate_constants(&known, predicate);
    known.add_constants(equal)?;
    let declared = whole.properties().equivalence_properties();
    let columns = collect_columns(predicate).into_iter();
    let is_wrong = |column: &PhysicalColumn| {
        let column: PhysicalExprRef = Arc::new(column.clone());
        declared.is_expr_constant(&column).is_some() && known.is_expr_constant(&column).is_none()
    };
    Ok(columns.filter(is_wrong).collect())
}

/// Whether an operation has one result for several inputs.
fn loses_digits(expr: &PhysicalExprRef, schema: &Schema) -> Result<bool> {
    if let Some(cast) = expr.downcast_ref::<CastExpr>() {
        return Ok(!is_one_to_one(&cast.expr().data_type(schema)?, cast.cast_type()));
    }
    if let Some(binary) = expr.downcast_ref::<BinaryExpr>() {
        return Ok(match binary.op() {
            Operator::Plus | Operator::Minus => !expr.data_type(schema)?.is_integer(),
            Operator::Multiply | Operator::Divide => true,
            _ => false,
        });
    }
    Ok(!(expr.is::<PhysicalColumn>() || expr.is::<Literal>() || expr.is::<NegativeExpr>()))
}

/// Whether a cast returns different values for different values.
fn is_one_to_one(from: &DataType, to: &DataType) -> bool {
    use DataType::{Date32, Date64, Float32, Float64, Int64, Timestamp, UInt8, UInt16, UInt32};
    CastExpr::check_bigger_cast(to, from)
        || matches!((from, to), (Float32, Float64) | (Date32, Date64 | Timestamp(_, None)))
        || matches!((from, to), (UInt8 | UInt16 | UInt32, Int64))
        || matches!((from, to), (Timestamp(from, a), Timestamp(to, b)) if a == b && from < to)
}
