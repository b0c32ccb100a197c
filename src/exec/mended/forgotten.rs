//! The rule `GridForgottenConstants`: grouping sets over constants and equal columns.
//!
//! Grouping sets replace keys by NULL. DataFusion still takes a constant key as constant, and equal keys as equal. So it leaves out
//! sorts, and returns groups several times:
//!
//! ```text
//!   … WHERE v = 10 GROUP BY ROLLUP (v, x) ORDER BY v       v: 10, 10, NULL, which are not sorted by themselves
//! ```
//!
//! A union declares only what all of its inputs declare, and an input without rows declares nothing.

use std::sync::Arc;

use datafusion::common::tree_node::TransformedResult;
use datafusion::error::Result;
use datafusion::physical_expr::expressions::Column as PhysicalColumn;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExprRef};
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use crate::exec::rules::walk::up;

/// Replaces inputs of grouping sets that declare wrong constants. It belongs before `EnsureRequirements`, which relies on what plans
/// declare.
pub(in crate::exec) fn with_forgotten_constants(
    plan: Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    up(plan, |node| Ok(node.downcast_ref::<AggregateExec>().map(forgetful).transpose()?.flatten()))
        .data()
}

/// Returns an aggregation by grouping sets whose input declares nothing. `None` if it declares nothing about keys.
fn forgetful(aggregate: &AggregateExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let keys = aggregate.group_expr();
    let is_last =
        matches!(aggregate.mode(), AggregateMode::Final | AggregateMode::FinalPartitioned);
    let known = aggregate.input().equivalence_properties();
    let is_known =
        keys.expr().iter().enumerate().any(|(at, (key, _))| {
            keys.groups().iter().any(|nulls| nulls[at]) && is_known(key, known)
        });
    if is_last || !keys.has_grouping_set() || !is_known {
        return Ok(None);
    }
    let (keys, input) = with_columns(keys, aggregate.input())?;
    let nothing = Arc::new(EmptyExec::new(input.schema()));
    let input = UnionExec::try_new(vec![input, nothing])?;
    let forgetful = AggregateExec::try_new(
        *aggregate.mode(),
        keys,
        aggregate.aggr_expr().to_vec(),
        aggregate.filter_expr().to_vec(),
        input,
        aggregate.input_schema(),
    )?;
    Ok((forgetful.schema() == aggregate.schema()).then(|| Arc::new(forgetful) as _))
}

/// Whether a key is constant, or equal to something else.
fn is_known(key: &PhysicalExprRef, known: &EquivalenceProperties) -> bool {
    let is_equal = |expr: &PhysicalExprRef| known.eq_group().get_equivalence_class(expr).is_some();
    let columns = collect_columns(key);
    let mut columns = columns.into_iter().map(|column| Arc::new(column) as PhysicalExprRef);
    known.is_expr_constant(key).is_some() || is_equal(key) || columns.any(|it| is_equal(&it))
}

/// Makes columns of the keys that use none, because such an expression is always constant.
fn with_columns(
    keys: &PhysicalGroupBy,
    input: &Arc<dyn ExecutionPlan>,
) -> Result<(PhysicalGroupBy, Arc<dyn ExecutionPlan>)> {
    let schema = input.schema();
    let mut columns: Vec<(PhysicalExprRef, String)> = (0..schema.fields().len())
        .map(|at| {
            let name = schema.field(at).name();
            (Arc::new(PhysicalColumn::new(name, at)) as _, name.clone())
        })
        .collect();
    let scanned = columns.len();
    let mut exprs = keys.expr().to_vec();
    for (key, name) in exprs.iter_mut().filter(|(key, _)| collect_columns(key).is_empty()) {
        let column = PhysicalColumn::new(name, columns.len());
        columns.push((Arc::clone(key), name.clone()));
        *key = Arc::new(column);
    }
    if columns.len() == scanned {
        return Ok((keys.clone(), Arc::clone(input)));
    }
    let input = Arc::new(ProjectionExec::try_new(columns, Arc::clone(input))?);
    let nulls = keys.null_expr().to_vec();
    let keys = PhysicalGroupBy::new(exprs, nulls, keys.groups().to_vec(), keys.has_grouping_set());
    Ok((keys, input))
}
