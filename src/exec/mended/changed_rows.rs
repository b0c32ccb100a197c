//! `UPDATE` and `DELETE` with a subquery. DataFusion makes a join of the subquery, and hands a table the conditions that are left: with none,
//! all rows change.

use datafusion::common::plan_err;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::logical_expr::{DmlStatement, LogicalPlan, WriteOp};

/// Refuses a change of rows that a subquery selects or computes. The `UPDATE` of an array is rows of an `INSERT` by now.
pub(super) fn check(plan: &LogicalPlan) -> Result<()> {
    let LogicalPlan::Dml(DmlStatement {
        table_name,
        op: op @ (WriteOp::Update | WriteOp::Delete),
        input,
        ..
    }) = plan
    else {
        return Ok(());
    };
    let mut has_subquery = false;
    input.apply_with_subqueries(|node| {
        has_subquery |= matches!(node, LogicalPlan::Subquery(_));
        Ok(if has_subquery { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    match has_subquery {
        true => plan_err!(
            "{op} of {table_name} with a subquery, for which DataFusion 55 changes all rows; make a new table of the rows, with CREATE TABLE … AS SELECT"
        ),
        false => Ok(()),
    }
}
