//! `IN` and `NOT IN` over subqueries with NULLs.
//!
//! `2 IN (1, NULL)` is NULL, and so is `NULL IN (1)`. DataFusion knows that of a plain condition, and takes NULL for false where `IN`
//! is part of another expression, such as `NOT`, `OR` or `IS NULL`. With columns from outside, it also fails for a plain `NOT IN`.
//! Where a NULL may be among the values:
//!
//! | condition on `x IN (SELECT c …)` | becomes |
//! |---|---|
//! | without columns from outside | `(x IN (SELECT c …)) IS TRUE OR (unknown AND NULL)` |
//! | with columns from outside | `EXISTS (… WHERE c = x) OR (unknown AND NULL)` |
//!
//! Here `unknown` is `EXISTS (… WHERE c IS NULL) OR x IS NULL AND EXISTS (…)`.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, ExprSchema, ScalarValue, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Exists, InSubquery};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, Filter, JoinType, LogicalPlan, LogicalPlanBuilder, Operator,
    Subquery, lit, not,
};

use super::exists;

/// The name of the column of a subquery that has no table. DataFusion finds two columns where it has another name.
const NAME: &str = "__gridfusion_in";

/// Rewrites the condition of a filter, or of an inner join, which becomes a filter above it.
pub(super) fn rewrite(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let has_in = |expr: &Expr| expr.exists(|it| Ok(matches!(it, Expr::InSubquery(_))));
    let filter = match plan {
        LogicalPlan::Filter(filter) if has_in(&filter.predicate)? => filter,
        LogicalPlan::Join(mut join) if join.join_type == JoinType::Inner => {
            match join.filter.take() {
                Some(on) if has_in(&on)? => Filter::try_new(on, Arc::new(LogicalPlan::Join(join)))?,
                on => {
                    join.filter = on;
                    return Ok(Transformed::no(LogicalPlan::Join(join)));
                }
            }
        }
        plan => return Ok(Transformed::no(plan)),
    };
    let outside = Arc::clone(filter.input.schema());
    let conjuncts = split_conjunction_owned(filter.predicate).into_iter();
    let conjuncts = conjuncts.map(|conjunct| of_filter(conjunct, &outside));
    let predicate =
        conjunction(conjuncts.collect::<Result<Vec<_>>>()?).unwrap_or_else(|| lit(true));
    Ok(Transformed::yes(LogicalPlan::Filter(Filter::try_new(predicate, filter.input)?)))
}

/// Rewrites a condition that is ANDed with others. A plain `IN` or `NOT IN` is a join, which knows NULL.
fn of_filter(expr: Expr, outside: &DFSchema) -> Result<Expr> {
    let (it, is_not) = match expr {
        Expr::InSubquery(it) => (it, false),
        Expr::Not(inner) => match *inner {
            Expr::InSubquery(it) => (it, true),
            inner => return in_value(not(inner), outside),
        },
        expr => return in_condition(expr, outside),
    };
    let it = InSubquery { negated: it.negated != is_not, ..it };
    // The join takes a value without columns for one that is never NULL.
    let is_plain = it.subquery.outer_ref_columns.is_empty() && !it.expr.column_refs().is_empty();
    match it.negated && !is_plain {
        true => in_value(Expr::InSubquery(it), outside),
        false => Ok(Expr::InSubquery(it)),
    }
}

/// Rewrites a condition that may be false in place of NULL.
fn in_condition(expr: Expr, outside: &DFSchema) -> Result<Expr> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
            let left = Box::new(in_condition(*left, outside)?);
            let right = Box::new(in_condition(*right, outside)?);
            Ok(Expr::BinaryExpr(BinaryExpr { left, op, right }))
        }
        Expr::InSubquery(it) if !it.negated => Ok(Expr::InSubquery(InSubquery {
            expr: Box::new(in_value(*it.expr, outside)?),
            subquery: named(it.subquery)?,
            negated: false,
        })),
        expr => in_value(expr, outside),
    }
}

/// Rewrites an expression whose NULLs count.
fn in_value(expr: Expr, outside: &DFSchema) -> Result<Expr> {
    let rewritten = expr.transform_down(|expr| {
        let jump = |expr| Transformed::new(expr, true, TreeNodeRecursion::Jump);
        Ok(match expr {
            Expr::InSubquery(it) => jump(with_null(it, outside)?),
            Expr::IsTrue(it) => jump(Expr::IsTrue(Box::new(in_condition(*it, outside)?))),
            Expr::IsNotTrue(it) => jump(Expr::IsNotTrue(Box::new(in_condition(*it, outside)?))),
            expr => Transformed::no(expr),
        })
    });
    rewritten.data()
}

/// Returns an expression that is true, false or NULL as SQL has it.
fn with_null(it: InSubquery, outside: &DFSchema) -> Result<Expr> {
    let InSubquery { expr, subquery, negated } = it;
    let expr = in_value(*expr, outside)?;
    let subquery = named(subquery)?;
    let plan = &subquery.subquery;
    let column = Expr::Column(Column::from(plan.schema().qualified_field(0)));
    let of_columns = plan.schema().field(0).is_nullable();
    let nulls =
        of_columns.then(|| any_row(&subquery, Some(column.clone().is_null()))).transpose()?;
    let of_expr = expr.nullable(outside).unwrap_or(true);
    let rows = of_expr.then(|| any_row(&subquery, None)).transpose()?;
    let unknown = match (nulls, rows.map(|rows| expr.clone().is_null().and(rows))) {
        (Some(nulls), Some(rows)) => nulls.or(rows),
        (Some(unknown), None) | (None, Some(unknown)) => unknown,
        (None, None) => {
            return Ok(Expr::InSubquery(InSubquery { expr: Box::new(expr), subquery, negated }));
        }
    };
    let found = match subquery.outer_ref_columns.is_empty() {
        true => Expr::IsTrue(Box::new(Expr::InSubquery(InSubquery {
            expr: Box::new(expr),
            subquery,
            negated: false,
        }))),
        false => any_row(&subquery, Some(column.eq(seen_inside(expr, outside)?)))?,
    };
    let whole = found.or(unknown.and(lit(ScalarValue::Boolean(None))));
    Ok(if negated { not(whole) } else { whole })
}

/// Gives the column of a subquery a name of its own, unless it is that of a table.
fn named(subquery: Subquery) -> Result<Subquery> {
    let plan = &subquery.subquery;
    let (table, field) = plan.schema().qualified_field(0);
    if table.is_some() || field.name() == NAME {
        return Ok(subquery);
    }
    let column = Expr::Column(Column::from_name(field.name())).alias(NAME);
    let plan = LogicalPlanBuilder::from(Arc::clone(plan)).project([column])?.build()?;
    Ok(subquery.with_plan(Arc::new(plan)))
}

/// Whether a subquery has a row that meets a condition.
fn any_row(subquery: &Subquery, condition: Option<Expr>) -> Result<Expr> {
    let is_correlated = !subquery.outer_ref_columns.is_empty();
    let mut rows = LogicalPlanBuilder::from(Arc::clone(&subquery.subquery));
    if let Some(condition) = condition {
        rows = rows.filter(condition)?;
    }
    if !is_correlated {
        // One row is enough for all rows outside.
        rows = rows.limit(0, Some(1))?;
    }
    let plan = Arc::new(rows.build()?);
    let outer_ref_columns = plan.all_out_ref_exprs();
    let subquery = Subquery { subquery: plan, outer_ref_columns, spans: subquery.spans.clone() };
    exists::rewrite(Expr::Exists(Exists { subquery, negated: false })).data()
}

/// Returns an expression as the subquery sees it.
fn seen_inside(expr: Expr, outside: &DFSchema) -> Result<Expr> {
    let seen = expr.transform_down(|expr| match expr {
        Expr::Column(column) => {
            let field = Arc::clone(outside.field_from_column(&column)?);
            Ok(Transformed::yes(Expr::OuterReferenceColumn(field, column)))
        }
        Expr::OuterReferenceColumn(..) | Expr::InSubquery(_) | Expr::Exists(_) => plan_err!(
            "IN or NOT IN over a subquery with columns from outside is not supported here, because its values may be NULL; \
             exclude NULLs or use EXISTS: EXISTS (SELECT 1 … WHERE c = x)"
        ),
        expr => Ok(Transformed::no(expr)),
    });
    seen.data()
}
