//! [`FilterScope`]: which columns a filter uses, and therefore where it is evaluated.
//!
//! ```text
//!   station = 'Oslo'                Axis        by the scan, exactly
//!   time > x OR lat < y             Axes        chunks by the scan, rows by DataFusion
//!   lat > 60, of lat (y, x)         Coordinates chunks and cells by the scan, rows by DataFusion unless over one axis
//!   value > 300                     Values      chunks by the scan, rows by DataFusion
//!   random() < 0.5                  Rows        by DataFusion
//! ```

use std::collections::BTreeSet;

use arrow::datatypes::SchemaRef;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::TreeNode;
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::expr_rewriter::unnormalize_col;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, Volatility};
use datafusion::physical_expr::create_physical_expr;

use super::bound_filter::find;
use super::intervals::is_computable;
use crate::array::GridArray;
use crate::exec::coordinates::plane_axes;
use crate::exec::matching::may_fail;

/// The longest axis whose labels are evaluated while planning; more labels would take too long. On longer axes
/// only predicates that [`is_computable`] accepts are not evaluated per row.
pub(super) const MAX_LABELS: u64 = 1 << 28;

/// The kind of columns that a filter uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FilterScope {
    /// One dimension: the filter selects indices, exactly.
    Axis(usize),
    /// Several dimensions, or one with too many labels: the filter can exclude chunks.
    Axes,
    /// No column at all: the filter holds for every row or for none.
    Constant,
    /// Coordinates that repeat along some axes, and perhaps dimensions: the filter selects cells of the other axes.
    Coordinates {
        /// Whether it selects indices of one axis, or holds for all rows or none, and cannot fail.
        is_exact: bool,
    },
    /// Variables, and perhaps dimensions: the filter can exclude chunks by their statistics.
    Values,
    /// Anything that must be evaluated per row.
    Rows,
}

impl FilterScope {
    /// Classifies `filter` over the columns of `array`.
    pub(crate) fn new(filter: &Expr, array: &GridArray) -> Self {
        let mut axes = BTreeSet::new();
        let mut columns = vec![];
        for column in filter.column_refs() {
            let Some((_, column)) = find(array, column.name()) else { return Self::Rows };
            columns.push(column);
            axes.extend(column.axis());
        }
        let values = columns.iter().any(|column| column.value().is_some());
        let mut axes = axes.into_iter();
        match (axes.next(), axes.next()) {
            _ if !is_immutable(filter) => Self::Rows,
            _ if values => match plane_axes(array, columns) {
                Some(axes) => {
                    Self::Coordinates { is_exact: axes.len() < 2 && never_fails(filter, array) }
                }
                None => Self::Values,
            },
            (Some(axis), None)
                if array.grid().shape()[axis] <= MAX_LABELS || is_computable(filter, array) =>
            {
                Self::Axis(axis)
            }
            (Some(_), Some(_)) => Self::Axes,
            // Too many labels to evaluate each, but chunks have a least and a greatest label.
            (Some(_), None) => Self::Axes,
            (None, _) => Self::Constant,
        }
    }

    /// Returns how a scan applies such a filter, in DataFusion's terms.
    pub(crate) fn pushdown(self) -> TableProviderFilterPushDown {
        match self {
            Self::Axis(_) | Self::Coordinates { is_exact: true } => {
                TableProviderFilterPushDown::Exact
            }
            Self::Axes | Self::Values | Self::Coordinates { is_exact: false } => {
                TableProviderFilterPushDown::Inexact
            }
            Self::Constant | Self::Rows => TableProviderFilterPushDown::Unsupported,
        }
    }
}

/// Whether a filter has a value for all values of its columns. Another conjunct may exclude those for which it fails.
fn never_fails(filter: &Expr, array: &GridArray) -> bool {
    let schema = array.schema();
    let (props, context) = (ExecutionProps::new(), PhysicalPlanningContext::default());
    // The optimizer passes columns with the name of the table.
    let filter = unnormalize_col(filter.clone());
    let physical = DFSchema::try_from(SchemaRef::clone(schema))
        .and_then(|names| create_physical_expr(&filter, &names, &props, &context));
    physical.is_ok_and(|filter| !may_fail(&filter, schema))
}

/// Whether the result depends only on the row's columns, and is always the same for the same row.
/// Expressions that are not listed, such as subqueries, count as dependent on more.
pub(crate) fn is_immutable(filter: &Expr) -> bool {
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
