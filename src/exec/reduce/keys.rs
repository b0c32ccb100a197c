//! Group keys as numbers: each key expression is evaluated once over the labels of its axis.
//!
//! ```text
//!   GROUP BY date_trunc('month', time), station        array over time, station
//!
//!   axis 0   labels 01-01 01-02 … 02-01 …   key 01 01 … 02 …     numbers 0 0 … 1 …   values 01, 02, …
//!   axis 1   labels Bergen Oslo …           key is the label     each its own        values Bergen, Oslo, …
//!   groups   months × stations
//! ```
//!
//! All keys over one axis are numbered together: `GROUP BY year, month` of one axis numbers pairs.

use std::sync::Arc;

use arrow::array::ArrayRef;
use datafusion::physical_expr::PhysicalExprRef;

use super::plane::{KeyPlane, is_over_plane};
use super::query::Query;
use crate::exec::GridScanExec;
use crate::exec::config::GridfusionConfig;
use crate::exec::matching::{KeysByAxis, group_count};
use crate::reduce::AxisGroups;

/// The numbered group keys of a query.
#[derive(Debug, Clone)]
pub(super) struct Keys {
    /// The group numbers of each axis of the array, over the scan's selection.
    pub(super) axes: Vec<AxisGroups>,
    /// The values of each key, in the order of the query.
    pub(super) columns: Vec<KeyColumn>,
    /// The greatest possible number of groups: the product over the axes, and the plane.
    pub(super) groups: u64,
    /// The keys and conditions over coordinates of several axes.
    pub(super) plane: Option<KeyPlane>,
}

/// The values of one key.
#[derive(Debug, Clone)]
pub(super) struct KeyColumn {
    /// The axis that the key is over; behind all axes for a key over a plane.
    pub(super) axis: usize,
    /// One value per group number of that axis: output looks up the key of a group here.
    pub(super) values: ArrayRef,
}

impl Keys {
    /// Numbers the keys of `query`; `None` if a key is over several dimensions or over a variable that does not repeat along
    /// any. Also `None` if a key fails on a label, because over rows that label may never be evaluated.
    pub(super) fn number(
        query: &Query,
        scan: &GridScanExec,
        config: &GridfusionConfig,
    ) -> Option<Self> {
        let (of_plane, of_axes): (Vec<usize>, Vec<usize>) =
            (0..query.keys.len()).partition(|at| is_over_plane(&query.keys[*at], scan));
        let keys = |at: &[usize]| -> Vec<PhysicalExprRef> {
            at.iter().map(|at| Arc::clone(&query.keys[*at])).collect()
        };
        // A constant fits any axis, such as the first.
        let axis_keys = keys(&of_axes);
        let by_axis = KeysByAxis::try_new(&axis_keys, scan)?.with_constants_on(0);
        // Reads coordinates, so it comes behind what may refuse the keys.
        let most_read =
            if config.is_unlimited() { u64::MAX } else { scan.plan().selection().cells() };
        let plane = KeyPlane::try_new(&keys(&of_plane), query.predicate.as_ref(), scan, most_read);
        if plane.is_none() && !of_plane.is_empty() {
            return None;
        }
        let numbered = by_axis.number()?;
        let mut columns: Vec<Option<KeyColumn>> = vec![None; query.keys.len()];
        for ((at, key), values) in of_axes.iter().enumerate().zip(numbered.values) {
            let axis = by_axis.axes.iter().position(|keys| keys.contains(&at))?;
            columns[*key] = Some(KeyColumn { axis, values: values? });
        }
        for (key, values) in of_plane.iter().zip(plane.iter().flat_map(|it| &it.values)) {
            let axis = numbered.groups.len();
            columns[*key] = Some(KeyColumn { axis, values: Arc::clone(values) });
        }
        let columns = columns.into_iter().collect::<Option<_>>()?;
        let groups = group_count(&numbered.groups, scan)?;
        let groups = groups.checked_mul(plane.as_ref().map_or(1, |it| it.groups.groups.into()))?;
        Some(Self { axes: numbered.groups, columns, groups, plane })
    }

    /// Whether a key is over a plane.
    pub(super) fn are_over_plane(&self) -> bool {
        self.columns.iter().any(|column| column.axis == self.axes.len())
    }
}
