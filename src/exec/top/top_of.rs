//! [`TopOf`]: the rows to keep of each partition of a window.

use datafusion::physical_expr::{PhysicalExprRef, PhysicalSortExpr};

/// The rows to keep, over the columns of a scan.
#[derive(Debug, Clone)]
pub struct TopOf {
    /// The number of rows of each partition of the window.
    pub count: usize,
    /// The keys of these partitions, each over one dimension.
    pub partition_by: Vec<PhysicalExprRef>,
    /// The first sort key.
    pub order: PhysicalSortExpr,
    /// Rows for which it is not true are left out, too.
    pub predicate: Option<PhysicalExprRef>,
    /// Whether any `count` of several rows with equal sort keys suffice.
    pub any_of_ties: bool,
}
