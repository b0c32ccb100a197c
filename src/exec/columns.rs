//! The columns that expressions of a query use.
//!
//! Expressions refer to columns by position. To evaluate one over a few columns only, its positions
//! change:
//!
//! ```text
//!   scan         [time, station, level, value]      value@3 > 0 AND station@1 = 'A'
//!   columns_of   [1, 3]
//!   batch        [station, value]                   value@1 > 0 AND station@0 = 'A'      over_columns
//! ```

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::Column as PhysicalColumn;
use datafusion::physical_expr::utils::collect_columns;

/// Visits each of `exprs` until `visit` returns `Stop`.
pub(crate) fn visit_all<'a>(
    exprs: impl IntoIterator<Item = &'a PhysicalExprRef>,
    visit: &mut dyn FnMut(&PhysicalExprRef) -> Result<TreeNodeRecursion>,
) -> Result<TreeNodeRecursion> {
    for expr in exprs {
        if visit(expr)? == TreeNodeRecursion::Stop {
            return Ok(TreeNodeRecursion::Stop);
        }
    }
    Ok(TreeNodeRecursion::Continue)
}

/// Returns the numbers of the columns that `exprs` use, ascending, each once.
pub(super) fn columns_of<'a>(exprs: impl IntoIterator<Item = &'a PhysicalExprRef>) -> Vec<usize> {
    let mut columns: Vec<usize> =
        exprs.into_iter().flat_map(collect_columns).map(|column| column.index()).collect();
    columns.sort_unstable();
    columns.dedup();
    columns
}

/// Rewrites `expr` for a batch that holds only `columns` of the scan, which must ascend and include all
/// columns of `expr`.
pub(super) fn over_columns(expr: &PhysicalExprRef, columns: &[usize]) -> Result<PhysicalExprRef> {
    Arc::clone(expr)
        .transform(|expr| {
            let Some(column) = expr.downcast_ref::<PhysicalColumn>() else {
                return Ok(Transformed::no(expr));
            };
            // A missing column would fail when the expression is evaluated.
            let at = columns.binary_search(&column.index()).unwrap_or(usize::MAX);
            Ok(
                Transformed::yes(
                    Arc::new(PhysicalColumn::new(column.name(), at)) as PhysicalExprRef
                ),
            )
        })
        .data()
}
