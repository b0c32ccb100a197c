//! [`GridTop`]: the rows to keep of a scan, with the numbers of their partitions.

use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExprRef;

use super::best::Best;
use super::top_of::TopOf;
use crate::exec::GridScanExec;
use crate::exec::columns::columns_of;
use crate::exec::matching::{KeysByAxis, group_count, has_merged_zeros};
use crate::exec::order_keys::has_order_keys;
use crate::reduce::AxisGroups;

/// The greatest number of rows per partition. With more, most rows of short partitions would pass.
const MOST: usize = 1000;

/// The rows to keep of a scan.
#[derive(Debug)]
pub(super) struct GridTop {
    pub(super) scan: GridScanExec,
    pub(super) top: TopOf,
    /// The numbers of the partitions' keys along each axis.
    pub(super) groups: Vec<AxisGroups>,
}

impl GridTop {
    /// Numbers the partitions. `None` if a key is not over one dimension, or if too many rows are needed. `None` too if the sort
    /// key has no order that can be compared.
    pub(super) fn try_new(scan: &GridScanExec, top: TopOf) -> Result<Option<Self>> {
        let used = columns_of([&top.order.expr].into_iter().chain(&top.predicate));
        if used.last().is_some_and(|last| *last >= scan.columns().len()) {
            return Ok(None);
        }
        let data_type = top.order.expr.data_type(scan.schema_ref())?;
        if !has_order_keys(&data_type) || !(1..=MOST).contains(&top.count) {
            return Ok(None);
        }
        // Keys of 64 bits leave no number for NULL, which then counts as a tie.
        let is_narrow = data_type.primitive_width().is_some_and(|width| width < 8);
        let top = TopOf { any_of_ties: top.any_of_ties && is_narrow, ..top };
        let Some(groups) = groups(&top.partition_by, scan) else { return Ok(None) };
        Ok(Some(Self { scan: scan.clone(), top, groups }))
    }

    /// Returns the bytes that the best keys take in all partitions of the plan.
    pub(super) fn bytes(&self) -> u64 {
        let places = group_count(&self.groups, &self.scan).unwrap_or(u64::MAX);
        let partitions = self.scan.plan().partition_count() as u64;
        let bytes = Best::bytes_per_place(self.top.count) as u64;
        places.saturating_mul(bytes).saturating_mul(partitions)
    }
}

/// Numbers keys along their axes. `None` if one is over several axes, or over a variable, and if partitions of the window would be
/// one group.
fn groups(keys: &[PhysicalExprRef], scan: &GridScanExec) -> Option<Vec<AxisGroups>> {
    let by_axis = KeysByAxis::try_new(keys, scan)?;
    let number = |axis| {
        let (groups, values) = by_axis.number_axis(axis)?;
        (!has_merged_zeros(&groups, &values)).then_some(groups)
    };
    (0..by_axis.axes.len()).map(number).collect()
}
