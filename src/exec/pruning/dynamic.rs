//! Dynamic filters, which operators make while a query runs: the threshold of a TopK, the keys of a hash
//! join's build side, the least value found so far. The operator that pushed such a filter down needs no
//! row for which the filter is not true.
//!
//! Such a filter is an expression whose content changes. A *snapshot* is its content at one moment:
//!
//! ```text
//!   ORDER BY value DESC LIMIT 10      true  ▶  value > 290.5  ▶  value > 311.0  ▶ …
//!   JOIN stations USING (station)     true  ▶  station IN ('A', 'F')
//! ```

use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::{
    BinaryExpr, Column as PhysicalColumn, DynamicFilterTracking, IsNotNullExpr, IsNullExpr,
    Literal, lit,
};
use datafusion::physical_expr::split_conjunction;
use datafusion::physical_expr_common::physical_expr::snapshot_physical_expr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation, PushedDown,
};

use crate::array::ColumnSource;
use crate::exec::columns::columns_of;

/// Passes the filters that may still change to `take`, which returns a node with them. Reports every
/// filter as not applied, so that the operator above evaluates it again.
///
/// Only the `Post` phase pushes down dynamic filters: then no rule replaces the operators that make them.
pub(crate) fn dynamic_filters<N: ExecutionPlan>(
    phase: FilterPushdownPhase,
    pushed: ChildPushdownResult,
    take: impl FnOnce(Vec<PhysicalExprRef>) -> Option<N>,
) -> FilterPushdownPropagation<Arc<dyn ExecutionPlan>> {
    let refused = vec![PushedDown::No; pushed.parent_filters.len()];
    let result = FilterPushdownPropagation::with_parent_pushdown_result(refused);
    let is_dynamic = |filter: &PhysicalExprRef| {
        DynamicFilterTracking::classify(filter).contains_dynamic_filter()
    };
    let filters = pushed.parent_filters.into_iter().map(|parent| parent.filter);
    let filters: Vec<PhysicalExprRef> = filters.filter(is_dynamic).collect();
    if phase != FilterPushdownPhase::Post || filters.is_empty() {
        return result;
    }
    match take(filters) {
        Some(node) => result.with_updated_node(Arc::new(node)),
        None => result,
    }
}

/// Dynamic filters that were pushed down to a scan.
#[derive(Debug, Clone)]
pub(crate) struct DynamicFilters {
    /// A row is needed only if all filters are true for it.
    pub(crate) filters: Vec<PhysicalExprRef>,
    /// The sources of the scan's columns, to which the filters refer.
    pub(crate) columns: Vec<ColumnSource>,
    /// The schema of these columns.
    pub(crate) schema: SchemaRef,
    /// The positions of those columns whose NULL rows are not needed.
    pub(crate) non_null_columns: Vec<usize>,
}

impl Default for DynamicFilters {
    fn default() -> Self {
        Self {
            filters: vec![],
            columns: vec![],
            schema: Arc::new(Schema::empty()),
            non_null_columns: vec![],
        }
    }
}

impl DynamicFilters {
    /// Whether there are no filters.
    pub(crate) fn is_empty(&self) -> bool {
        self.filters.is_empty()
    }
}

/// Returns the current expression of a filter; `None` if it is incomplete.
///
/// DataFusion 55 makes one filter for `min(a), max(b)`. While one of the aggregates has no value, the
/// filter leaves it out instead of letting every row pass. Such a filter uses fewer columns than the
/// complete one. A filter that is still `true` uses none, and is complete.
pub(crate) fn snapshot_filter(filter: &PhysicalExprRef) -> Result<Option<PhysicalExprRef>> {
    let now = snapshot_physical_expr(Arc::clone(filter))?;
    let columns = columns_of([&now]);
    let is_whole = columns.is_empty() || columns == columns_of([filter]);
    Ok(is_whole.then_some(now))
}

/// Returns the columns whose NULL rows do not pass `filters`: operands of comparisons and of
/// `IS NOT NULL`. Only whole columns count. `a + 1 > 3` excludes NULLs of `a` too, but is not recognised.
pub(crate) fn never_null<'a>(filters: impl IntoIterator<Item = &'a PhysicalExprRef>) -> Vec<usize> {
    let mut columns = Vec::new();
    for conjunct in filters.into_iter().flat_map(split_conjunction) {
        if let Some(not_null) = conjunct.downcast_ref::<IsNotNullExpr>() {
            columns.extend(column_of(not_null.arg()));
        } else if let Some(compared) = conjunct.downcast_ref::<BinaryExpr>()
            && matches!(
                compared.op(),
                Operator::Eq
                    | Operator::NotEq
                    | Operator::Lt
                    | Operator::LtEq
                    | Operator::Gt
                    | Operator::GtEq
            )
        {
            columns
                .extend(column_of(compared.left()).into_iter().chain(column_of(compared.right())));
        }
    }
    columns
}

fn column_of(expr: &PhysicalExprRef) -> Option<usize> {
    Some(expr.downcast_ref::<PhysicalColumn>()?.index())
}

/// Simplifies `filter` for rows in which these columns are not NULL: `value IS NULL OR value > 3` becomes
/// `value > 3`. The simpler filter also excludes chunks that hold NULLs.
pub(super) fn without_nulls(
    filter: PhysicalExprRef,
    non_null_columns: &[usize],
) -> Result<PhysicalExprRef> {
    let is_false = |expr: &PhysicalExprRef| {
        let literal = expr.downcast_ref::<Literal>();
        literal.is_some_and(|literal| *literal.value() == ScalarValue::Boolean(Some(false)))
    };
    filter
        .transform_up(|expr| {
            if let Some(is_null) = expr.downcast_ref::<IsNullExpr>()
                && column_of(is_null.arg()).is_some_and(|column| non_null_columns.contains(&column))
            {
                return Ok(Transformed::yes(lit(false)));
            }
            // Children come first, so by now `value IS NULL` is `false`, and can be taken out of an OR.
            let either = expr.downcast_ref::<BinaryExpr>().filter(|it| *it.op() == Operator::Or);
            let left = either.and_then(|either| match (either.left(), either.right()) {
                (left, right) if is_false(left) => Some(Arc::clone(right)),
                (left, right) if is_false(right) => Some(Arc::clone(left)),
                _ => None,
            });
            Ok(left.map_or_else(|| Transformed::no(expr), Transformed::yes))
        })
        .data()
}
