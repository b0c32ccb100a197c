//! The rule `GridOffset`: leaves out the chunks of rows that an `OFFSET` skips.
//!
//! ```text
//!   GlobalLimitExec: skip=25, fetch=3             GlobalLimitExec: skip=5, fetch=3
//!     CoalescePartitionsExec: fetch=28       ▶      CoalescePartitionsExec: fetch=8
//!       GridScanExec: limit=28                        GridScanExec: limit=8, without two chunks of 10 rows
//! ```
//!
//! Rows without an order may be skipped wherever they are. Rows in order come from one partition, which skips its first ones.

use std::sync::Arc;

use datafusion::common::tree_node::TransformedResult;
use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::projection::ProjectionExec;

use super::GridScanExec;
use super::rules::walk::down;

/// Leaves out chunks that hold only rows that an `OFFSET` skips.
pub(super) fn skip_chunks(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    down(plan, |node| {
        let Some(limit) = node.downcast_ref::<GlobalLimitExec>() else { return Ok(None) };
        let Some((input, skipped)) = skipping(limit.input(), limit.skip(), limit.fetch())? else {
            return Ok(None);
        };
        let mut rest = GlobalLimitExec::new(input, limit.skip() - skipped, limit.fetch());
        rest.set_required_ordering(limit.required_ordering().clone());
        Ok(Some(Arc::new(rest) as _))
    })
    .data()
}

/// Returns `plan` without some of the rows to skip, and their number. `None` if there is no scan whose chunks may be left out.
fn skipping(
    plan: &Arc<dyn ExecutionPlan>,
    skip: usize,
    fetch: Option<usize>,
) -> Result<Option<(Arc<dyn ExecutionPlan>, usize)>> {
    if let Some(scan) = plan.downcast_ref::<GridScanExec>() {
        return Ok(scan.skipping(skip, fetch)?.map(|(scan, rows)| (Arc::new(scan) as _, rows)));
    }
    let passes = plan.is::<CoalescePartitionsExec>()
        || plan.is::<ProjectionExec>()
        || plan.is::<CooperativeExec>();
    let children = plan.children();
    let (true, [input]) = (passes, children.as_slice()) else { return Ok(None) };
    let needed = fetch.map(|fetch| fetch.saturating_add(skip));
    if plan.fetch().is_some_and(|of_plan| needed.is_none_or(|needed| of_plan < needed)) {
        return Ok(None); // some rows are not passed on
    }
    let Some((input, rows)) = skipping(input, skip, fetch)? else { return Ok(None) };
    let recompute = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    let above = Arc::clone(plan).replace_children(vec![input], recompute)?;
    let above = match plan.fetch() {
        Some(of_plan) => above.with_fetch(Some(of_plan - rows)),
        None => Some(above),
    };
    Ok(above.map(|above| (above, rows)))
}

#[cfg(test)]
mod tests {
    use datafusion::physical_plan::displayable;

    use super::*;
    use crate::exec::test_array::scan;

    /// Returns the plan of an `OFFSET` above a scan of 16 chunks of 4 rows, in one partition or more.
    fn offset(partitions: usize, skip: usize, fetch: Option<usize>) -> String {
        let mut below: Arc<dyn ExecutionPlan> =
            Arc::new(scan(16, &["a", "b", "c", "d"], partitions));
        let needed = fetch.map(|fetch| fetch + skip);
        if needed.is_some() {
            below = below.with_fetch(needed).unwrap();
        }
        if partitions > 1 {
            below = Arc::new(CoalescePartitionsExec::new(below).with_fetch(needed));
        }
        let limit: Arc<dyn ExecutionPlan> = Arc::new(GlobalLimitExec::new(below, skip, fetch));
        displayable(skip_chunks(limit).unwrap().as_ref()).indent(false).to_string()
    }

    #[test]
    fn chunks_of_skipped_rows_are_left_out() {
        insta::assert_snapshot!(offset(1, 26, Some(3)), @r"
        GlobalLimitExec: skip=2, fetch=3
          GridScanExec: dataset=test, chunks=2/16, projection=[hour, station, value], limit=5
        ");
        insta::assert_snapshot!(offset(3, 26, Some(30)), @r"
        GlobalLimitExec: skip=2, fetch=30
          CoalescePartitionsExec: fetch=32
            GridScanExec: dataset=test, chunks=8/16, projection=[hour, station, value], limit=32
        ");
        insta::assert_snapshot!(offset(3, 8, None), @r"
        GlobalLimitExec: skip=0, fetch=None
          CoalescePartitionsExec
            GridScanExec: dataset=test, chunks=14/16, projection=[hour, station, value]
        ");
        insta::assert_snapshot!(offset(1, 3, Some(2)), @r"
        GlobalLimitExec: skip=3, fetch=2
          GridScanExec: dataset=test, chunks=2/16, projection=[hour, station, value], limit=5
        ");
        insta::assert_snapshot!(offset(1, 100, Some(2)), @r"
        GlobalLimitExec: skip=36, fetch=2
          GridScanExec: dataset=test, chunks=0/16, projection=[hour, station, value], limit=38
        ");
    }
}
