//! Which predicates can be settled on labels, and what they select.
//!
//! A predicate over one dimension is a set of indices, whatever the expression is: it is evaluated
//! once over the labels of the axis, n labels instead of n × m × k rows.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::TreeNode;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, Volatility};
use datafusion::physical_expr::PhysicalExpr;

use crate::array::{Column, GridArray};
use crate::exec::{satisfied, select_labels};
use crate::grid::AxisSelection;

/// Longer axes are filtered row by row: evaluating a predicate over their labels would take longer
/// than planning may.
const MAX_LABELS: u64 = 1 << 28;

/// How far a predicate reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// One dimension: it selects indices, exactly.
    Axis(usize),
    /// Several dimensions and nothing else: it can rule out chunks.
    Axes,
    /// No column at all: it holds for every row or for none.
    Constant,
    /// Values, and perhaps dimensions: what is noted about chunks can rule them out.
    Values,
    /// Something that must be evaluated per row.
    Rows,
}

/// Classifies `filter` over the columns of `array`.
pub(super) fn reach(filter: &Expr, array: &GridArray) -> Reach {
    let mut axes = BTreeSet::new();
    let mut values = false;
    for column in filter.column_refs() {
        let Some((_, column)) = find(array, column.name()) else { return Reach::Rows };
        values |= column.value().is_some();
        axes.extend(column.axis());
    }
    let mut axes = axes.into_iter();
    match (axes.next(), axes.next()) {
        _ if !is_immutable(filter) => Reach::Rows,
        _ if values => Reach::Values,
        (Some(axis), None) if array.grid().shape()[axis] <= MAX_LABELS => Reach::Axis(axis),
        (Some(_), Some(_)) => Reach::Axes,
        // Too many labels to look at each, but chunks have a least and a greatest one.
        (Some(_), None) => Reach::Axes,
        (None, _) => Reach::Constant,
    }
}

/// The column of this name and its place in the schema.
pub(super) fn find(array: &GridArray, name: &str) -> Option<(usize, Column)> {
    let at = array.schema().index_of(name).ok()?;
    Some((at, array.columns()[at]))
}

/// Whether the same labels always give the same result, without looking anywhere else.
fn is_immutable(filter: &Expr) -> bool {
    let depends = filter.exists(|expr| {
        Ok(match expr {
            Expr::ScalarFunction(function) => {
                function.func.signature().volatility != Volatility::Immutable
            }
            Expr::Alias(_)
            | Expr::Column(_)
            | Expr::Literal(..)
            | Expr::BinaryExpr(_)
            | Expr::Like(_)
            | Expr::SimilarTo(_)
            | Expr::Not(_)
            | Expr::IsNotNull(_)
            | Expr::IsNull(_)
            | Expr::IsTrue(_)
            | Expr::IsFalse(_)
            | Expr::IsUnknown(_)
            | Expr::IsNotTrue(_)
            | Expr::IsNotFalse(_)
            | Expr::IsNotUnknown(_)
            | Expr::Negative(_)
            | Expr::Between(_)
            | Expr::Case(_)
            | Expr::Cast(_)
            | Expr::TryCast(_)
            | Expr::InList(_) => false,
            _ => true,
        })
    });
    matches!(depends, Ok(false))
}

/// The part of the table's schema that `filter` needs, and the filter over it.
pub(super) fn physical(
    filter: &Expr,
    array: &GridArray,
    state: &dyn Session,
) -> Result<(Vec<Column>, SchemaRef, Arc<dyn PhysicalExpr>)> {
    let needed: BTreeSet<usize> = filter
        .column_refs()
        .iter()
        .filter_map(|column| Some(find(array, column.name())?.0))
        .collect();
    let columns = needed.iter().map(|&at| array.columns()[at]).collect();
    let fields: Vec<_> =
        needed.iter().map(|&at| Arc::clone(&array.schema().fields()[at])).collect();
    let schema = Arc::new(Schema::new(fields));
    let predicate =
        state.create_physical_expr(filter.clone(), &DFSchema::try_from(Arc::clone(&schema))?)?;
    Ok((columns, schema, predicate))
}

/// Whether `filter`, which is over no column, holds.
pub(super) fn holds(filter: &Expr, array: &GridArray, state: &dyn Session) -> Result<bool> {
    let (_, schema, predicate) = physical(filter, array, state)?;
    let one_row = RecordBatchOptions::new().with_row_count(Some(1));
    let batch = RecordBatch::try_new_with_options(schema, vec![], &one_row)?;
    Ok(satisfied(&predicate, &batch)?.value(0))
}

/// The indices among `candidates` of `axis` whose labels satisfy `filter`, which is over that axis
/// alone. Only labels of candidates are evaluated, so what earlier conjuncts exclude cannot fail.
pub(super) fn select(
    filter: &Expr,
    array: &GridArray,
    candidates: &AxisSelection,
    state: &dyn Session,
) -> Result<AxisSelection> {
    let (columns, schema, predicate) = physical(filter, array, state)?;
    select_labels(&predicate, array, &columns, &schema, candidates, 0)
}
