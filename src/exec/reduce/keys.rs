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

use arrow::array::ArrayRef;

use super::query::Query;
use crate::exec::GridScanExec;
use crate::exec::matching::{KeysByAxis, group_count};
use crate::reduce::AxisGroups;

/// The numbered group keys of a query.
#[derive(Debug, Clone)]
pub(super) struct Keys {
    /// The group numbers of each axis of the array, over the scan's selection.
    pub(super) axes: Vec<AxisGroups>,
    /// The values of each key, in the order of the query.
    pub(super) columns: Vec<KeyColumn>,
    /// The greatest possible number of groups: the product over the axes.
    pub(super) groups: u64,
}

/// The values of one key.
#[derive(Debug, Clone)]
pub(super) struct KeyColumn {
    /// The axis that the key is over.
    pub(super) axis: usize,
    /// One value per group number of that axis: output looks up the key of a group here.
    pub(super) values: ArrayRef,
}

impl Keys {
    /// Numbers the keys of `query`; `None` if a key is over several dimensions or over a variable. Also
    /// `None` if a key fails on a label, because over rows that label may never be evaluated.
    pub(super) fn number(query: &Query, scan: &GridScanExec) -> Option<Self> {
        // A constant fits any axis, such as the first.
        let by_axis = KeysByAxis::try_new(&query.keys, scan)?.with_constants_on(0);
        let numbered = by_axis.number()?;
        let column = |(at, values): (usize, Option<ArrayRef>)| {
            let axis = by_axis.axes.iter().position(|keys| keys.contains(&at))?;
            Some(KeyColumn { axis, values: values? })
        };
        let columns = numbered.values.into_iter().enumerate().map(column).collect::<Option<_>>()?;
        let groups = group_count(&numbered.groups, scan)?;
        Some(Self { axes: numbered.groups, columns, groups })
    }
}
