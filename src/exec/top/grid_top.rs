//! [`GridTop`]: the rows to keep of a scan, with the numbers of their partitions.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExprRef;

use super::best::Best;
use super::top_of::TopOf;
use crate::exec::GridScanExec;
use crate::exec::columns::{axes_of, columns_of};
use crate::exec::order_keys::has_order_keys;
use crate::exec::reduce::number_axis;
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
    pub(super) fn of(scan: &GridScanExec, top: TopOf) -> Result<Option<Self>> {
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
        let selected = self.scan.plan().selection().axes();
        let count = |(axis, groups): (usize, &AxisGroups)| groups.count(selected[axis].count());
        let places = self.groups.iter().enumerate().map(count).fold(1, u64::saturating_mul);
        let partitions = self.scan.plan().partition_count() as u64;
        let bytes = Best::bytes_per_place(self.top.count) as u64;
        places.saturating_mul(bytes).saturating_mul(partitions)
    }
}

/// Numbers keys along their axes. `None` if one is over several axes, or over a variable.
fn groups(keys: &[PhysicalExprRef], scan: &GridScanExec) -> Option<Vec<AxisGroups>> {
    let columns = scan.columns();
    let mut of_axis: Vec<Vec<PhysicalExprRef>> = vec![vec![]; scan.array().grid().rank()];
    for key in keys {
        match axes_of(key, &columns)?.as_slice() {
            [] => {}
            [axis] => of_axis[*axis].push(Arc::clone(key)),
            _ => return None,
        }
    }
    let number = |(axis, keys): (usize, &Vec<PhysicalExprRef>)| match keys.as_slice() {
        [] => Some(AxisGroups::One),
        keys => {
            let (groups, values) = number_axis(scan, axis, keys)?;
            let is_float = values.iter().any(|it| it.data_type().is_floating());
            // Zeros of both signs are one group, and two partitions of a window.
            (groups == AxisGroups::Each || !is_float).then_some(groups)
        }
    };
    of_axis.iter().enumerate().map(number).collect()
}
