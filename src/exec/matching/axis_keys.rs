//! [`KeysByAxis`]: the keys of a query by the axis that each is over, and their numbers.

use std::sync::Arc;

use arrow::array::ArrayRef;
use datafusion::physical_expr::PhysicalExprRef;

use super::axis_labels::number_axis;
use crate::array::ColumnSource;
use crate::exec::GridScanExec;
use crate::exec::columns::columns_of;
use crate::exec::coordinates::plane_axes;
use crate::reduce::AxisGroups;

/// The dimensions that an expression over the columns of a scan is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::exec) enum Over {
    /// No dimension: the expression is constant.
    Nothing,
    /// Labels of this axis, or a coordinate along it.
    Axis(usize),
    /// Labels or coordinates of several axes.
    Axes,
    /// A variable, at least in part, or a column that is not there.
    Variable,
}

impl Over {
    /// Returns the dimensions that `expr`, over the scan's columns, is over.
    pub(in crate::exec) fn new(expr: &PhysicalExprRef, scan: &GridScanExec) -> Self {
        let columns = scan.columns();
        let mut over = Self::Nothing;
        for column in columns_of([expr]) {
            let axis = columns.get(column).and_then(|column| axis_of(*column, scan));
            let Some(axis) = axis else { return Self::Variable };
            over = match over {
                Self::Nothing => Self::Axis(axis),
                Self::Axis(other) if other == axis => over,
                _ => Self::Axes,
            };
        }
        over
    }
}

/// Returns the axis that a column is over, as a dimension is, or a coordinate such as `station_name (station)`. A coordinate of
/// one value is a column over the first axis.
fn axis_of(column: ColumnSource, scan: &GridScanExec) -> Option<usize> {
    let ColumnSource::Value(_) = column else { return column.axis() };
    match plane_axes(scan.array(), [column])?.as_slice() {
        [] => Some(0),
        [axis] => Some(*axis),
        _ => None,
    }
}

/// Keys over the columns of a scan, each over one axis or constant.
pub(in crate::exec) struct KeysByAxis<'a> {
    keys: &'a [PhysicalExprRef],
    scan: &'a GridScanExec,
    /// The positions of the keys of each axis.
    pub(in crate::exec) axes: Vec<Vec<usize>>,
    /// The positions of constant keys.
    pub(in crate::exec) constants: Vec<usize>,
}

/// The numbered keys of a query.
pub(in crate::exec) struct NumberedKeys {
    /// The group numbers of each axis, over the scan's selection.
    pub(in crate::exec) groups: Vec<AxisGroups>,
    /// The values of each key by group number. `None` for constants.
    pub(in crate::exec) values: Vec<Option<ArrayRef>>,
}

impl<'a> KeysByAxis<'a> {
    /// Finds the axes of keys; `None` if one is over several axes or over a variable.
    pub(in crate::exec) fn try_new(
        keys: &'a [PhysicalExprRef],
        scan: &'a GridScanExec,
    ) -> Option<Self> {
        let axes = vec![vec![]; scan.array().grid().rank()];
        let mut found = Self { keys, scan, axes, constants: vec![] };
        for (at, key) in keys.iter().enumerate() {
            match Over::new(key, scan) {
                Over::Nothing => found.constants.push(at),
                Over::Axis(axis) => found.axes[axis].push(at),
                Over::Axes | Over::Variable => return None,
            }
        }
        Some(found)
    }

    /// Takes constants for keys over an axis, which does not change its groups.
    pub(in crate::exec) fn with_constants_on(mut self, axis: usize) -> Self {
        self.axes[axis].append(&mut self.constants);
        self
    }

    /// Numbers the keys of one axis. Also returns their values by group number. `None` if the axis is too long, or a key fails on a
    /// label, because over rows that label may never be evaluated.
    pub(in crate::exec) fn number_axis(&self, axis: usize) -> Option<(AxisGroups, Vec<ArrayRef>)> {
        match self.axes[axis].as_slice() {
            [] => Some((AxisGroups::One, vec![])),
            keys => {
                let keys: Vec<_> = keys.iter().map(|&at| Arc::clone(&self.keys[at])).collect();
                number_axis(self.scan, axis, &keys)
            }
        }
    }

    /// Numbers the keys of all axes; `None` as [`Self::number_axis`].
    pub(in crate::exec) fn number(&self) -> Option<NumberedKeys> {
        let (mut groups, mut values) = (vec![], vec![None; self.keys.len()]);
        for (axis, keys) in self.axes.iter().enumerate() {
            let (of_axis, columns) = self.number_axis(axis)?;
            groups.push(of_axis);
            for (&key, column) in keys.iter().zip(columns) {
                values[key] = Some(column);
            }
        }
        Some(NumberedKeys { groups, values })
    }
}

/// Returns the greatest possible number of groups of a scan, the product over the axes. `None` if it is too large for a number.
pub(in crate::exec) fn group_count(groups: &[AxisGroups], scan: &GridScanExec) -> Option<u64> {
    let selected = scan.plan().selection().axes().iter();
    let counts = groups.iter().zip(selected).map(|(groups, axis)| groups.count(axis.count()));
    counts.into_iter().try_fold(1, u64::checked_mul)
}
