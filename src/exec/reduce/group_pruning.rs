//! Skips groups that operators above a reduction have excluded before it starts.
//!
//! A join above an aggregation drops the groups without a match. Before the join reads the aggregation, it
//! has made a dynamic filter of the matching keys. A filter over keys is evaluated once per group and
//! becomes a selection of the keys' axis:
//!
//! ```text
//!   stations JOIN (SELECT station, avg(value) … GROUP BY station) USING (station)
//!     filter    station IN ('A', 'F')
//!     groups    A B C D E F …   needed  A, F   only the chunks, and the cells, of these are read
//! ```

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{Field, Schema};
use datafusion::error::Result;
use datafusion::physical_expr::{PhysicalExprRef, split_conjunction};

use super::keys::{KeyColumn, Keys};
use crate::exec::columns::{columns_of, over_columns};
use crate::exec::pruning::dynamic::snapshot_filter;
use crate::exec::pruning::labels::satisfied;
use crate::grid::AxisSelection;
use crate::plan::ScanPlan;
use crate::reduce::AxisGroups;

/// Returns, per axis, the indices that `filters` over a reduction's output keep; `None` if they keep all.
/// The keys are numbered over the selection of `plan`.
///
/// # Errors
/// If the current expression of a filter cannot be taken.
pub(super) fn needed_elements(
    filters: &[PhysicalExprRef],
    keys: &Keys,
    plan: &ScanPlan,
) -> Result<Vec<Option<AxisSelection>>> {
    let mut needed: Vec<Option<AxisSelection>> = vec![None; keys.axes.len()];
    for filter in filters {
        let Some(filter) = snapshot_filter(filter)? else { continue };
        for conjunct in split_conjunction(&filter) {
            let Some((axis, groups)) = needed_groups(conjunct, keys) else { continue };
            let left = elements(&groups, &keys.axes[axis], &plan.selection().axes()[axis]);
            needed[axis] = Some(match needed[axis].take() {
                Some(before) => before.intersect(&left),
                None => left,
            });
        }
    }
    Ok(needed)
}

/// Returns the axis of a conjunct's keys, and for each group of that axis whether the conjunct is true.
/// `None` if the conjunct uses aggregates or keys of several axes. Also `None` if the conjunct fails,
/// because the operator above evaluates it again.
fn needed_groups(conjunct: &PhysicalExprRef, keys: &Keys) -> Option<(usize, Vec<bool>)> {
    let needed = columns_of([conjunct]);
    let columns: Vec<&KeyColumn> =
        needed.iter().map(|&at| keys.columns.get(at)).collect::<Option<_>>()?;
    let axis = columns.first()?.axis;
    if axis >= keys.axes.len() || columns.iter().any(|column| column.axis != axis) {
        return None;
    }
    let values: Vec<ArrayRef> = columns.iter().map(|column| Arc::clone(&column.values)).collect();
    let field = |values: &ArrayRef| Field::new("", values.data_type().clone(), true);
    let schema = Arc::new(Schema::new(values.iter().map(field).collect::<Vec<_>>()));
    let evaluated = over_columns(conjunct, &needed).and_then(|conjunct| {
        let batch = RecordBatch::try_new(schema, values)?;
        satisfied(&conjunct, &batch)
    });
    match evaluated {
        Ok(holds) => Some((axis, holds.iter().collect())),
        Err(error) => {
            log::debug!("cannot skip groups by {conjunct}: {error}");
            None
        }
    }
}

/// Returns the selected indices of an axis that are in a needed group.
pub(in crate::exec) fn elements(
    needed: &[bool],
    groups: &AxisGroups,
    selection: &AxisSelection,
) -> AxisSelection {
    let is_needed = |rank: u64| match groups {
        AxisGroups::One => needed.first() == Some(&true),
        AxisGroups::Each => needed[rank as usize],
        AxisGroups::Numbered { numbers, .. } => needed[numbers[rank as usize] as usize],
    };
    // Runs of needed ranks, which become ranges of indices below.
    let mut ranks: Vec<Range<u64>> = Vec::new();
    for rank in (0..selection.count()).filter(|rank| is_needed(*rank)) {
        match ranks.last_mut() {
            Some(run) if run.end == rank => run.end += 1,
            _ => ranks.push(rank..rank + 1),
        }
    }
    let ranges = ranks.into_iter().flat_map(|run| selection.slice(run).ranges().to_vec());
    AxisSelection::from_ranges(selection.len(), ranges)
}
