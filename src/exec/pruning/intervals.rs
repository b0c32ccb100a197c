//! Selects indices of axes that have more labels than planning can evaluate one by one.
//!
//! Labels that count up by one are in order, so a comparison with a constant changes its truth at most once
//! along the axis. Bisection finds the place: 64 labels are evaluated instead of 2⁶³.
//!
//! ```text
//!   x >= 40                     false … false true … true      one border
//!   x = 40                      x >= 40 AND x <= 40            the intersection of two
//!   x IN (3, 40) OR x < -5      sets of ranges                 their union
//! ```
//!
//! The comparisons are evaluated as expressions over labels, like all others. So they mean the same here as
//! over rows, whatever types they compare.

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::Column;
use datafusion::error::Result;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator, binary_expr};

use super::bound_filter::{BoundFilter, find};
use super::labels::satisfied;
use crate::array::{GridArray, Labels};
use crate::grid::AxisSelection;

/// Whether [`select_intervals`] can evaluate a filter that uses only columns of one axis.
pub(super) fn is_computable(filter: &Expr, array: &GridArray) -> bool {
    let counts_up = |column: &Column| {
        let labels = find(array, column.name()).and_then(|(_, column)| array.labels_of(column));
        labels.is_some_and(Labels::is_counted)
    };
    filter.column_refs().into_iter().all(counts_up) && is_of_comparisons(filter)
}

/// Whether a filter only combines comparisons of labels with constants that are not NULL.
fn is_of_comparisons(filter: &Expr) -> bool {
    match filter {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And | Operator::Or, right }) => {
            is_of_comparisons(left) && is_of_comparisons(right)
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            is_comparison(*op)
                && (is_label(left) && is_constant(right) || is_constant(left) && is_label(right))
        }
        Expr::Not(inner) => is_of_comparisons(inner),
        Expr::Between(between) => {
            is_label(&between.expr) && is_constant(&between.low) && is_constant(&between.high)
        }
        Expr::InList(list) => is_label(&list.expr) && list.list.iter().all(is_constant),
        _ => false,
    }
}

fn is_comparison(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}

/// Whether an expression is a label, perhaps converted to another type in whose order it keeps its place.
fn is_label(expr: &Expr) -> bool {
    match expr {
        Expr::Column(_) => true,
        Expr::Cast(cast) => {
            use DataType::{Date32, Date64, Duration, Timestamp};
            let to = cast.field.data_type();
            let is_moment = matches!(to, Timestamp(..) | Date32 | Date64 | Duration(_));
            matches!(*cast.expr, Expr::Column(_)) && (to.is_numeric() || is_moment)
        }
        _ => false,
    }
}

fn is_constant(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(value, _) if !value.is_null())
}

/// Returns the indices of an axis of `len` labels for which a filter that [is computable](is_computable) is
/// true.
///
/// # Errors
/// If a comparison fails on a label.
pub(super) fn select_intervals(
    filter: &Expr,
    len: u64,
    array: &GridArray,
    session: &dyn Session,
) -> Result<AxisSelection> {
    let of = |filter: &Expr| select_intervals(filter, len, array, session);
    let compare = |left: &Expr, op, right: &Expr| of(&binary_expr(left.clone(), op, right.clone()));
    Ok(match filter {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op {
            Operator::And => of(left)?.intersect(&of(right)?),
            Operator::Or => of(left)?.union(&of(right)?),
            Operator::NotEq => compare(left, Operator::Eq, right)?.complement(),
            Operator::Eq => {
                let not_less = compare(left, Operator::GtEq, right)?;
                not_less.intersect(&compare(left, Operator::LtEq, right)?)
            }
            _ => bisect(filter, len, array, session)?,
        },
        // Labels and constants are not NULL, so a comparison is either true or false.
        Expr::Not(inner) => of(inner)?.complement(),
        Expr::Between(between) => {
            let not_less = compare(&between.expr, Operator::GtEq, &between.low)?;
            let within =
                not_less.intersect(&compare(&between.expr, Operator::LtEq, &between.high)?);
            if between.negated { within.complement() } else { within }
        }
        Expr::InList(list) => {
            let mut listed = AxisSelection::from_ranges(len, []);
            for value in &list.list {
                listed = listed.union(&compare(&list.expr, Operator::Eq, value)?);
            }
            if list.negated { listed.complement() } else { listed }
        }
        _ => return datafusion::common::internal_err!("the filter {filter} is no comparison"),
    })
}

/// Returns the indices for which an inequality is true. They are at the beginning or at the end of the axis.
fn bisect(
    inequality: &Expr,
    len: u64,
    array: &GridArray,
    session: &dyn Session,
) -> Result<AxisSelection> {
    let BoundFilter { columns, schema, predicate } =
        BoundFilter::try_new(inequality, array, session)?;
    let holds = |index: u64| -> Result<bool> {
        let only = AxisSelection::from_range(len, index..index + 1);
        let labels = columns.iter().filter_map(|column| array.labels_of(*column));
        let labels = labels.map(|it| it.select(&only, 0)).collect::<crate::Result<_>>()?;
        let batch = RecordBatch::try_new(SchemaRef::clone(&schema), labels)?;
        Ok(satisfied(&predicate, &batch)?.value(0))
    };
    if len == 0 {
        return Ok(AxisSelection::all(0));
    }
    let first = holds(0)?;
    // All indices before `low` are like the first; those from `high` on are not.
    let (mut low, mut high) = (1, len);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle)? == first { low = middle + 1 } else { high = middle }
    }
    Ok(AxisSelection::from_range(len, if first { 0..low } else { low..len }))
}
