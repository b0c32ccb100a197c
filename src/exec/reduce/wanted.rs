//! The groups that are still wanted when a reduction begins.
//!
//! A join above an aggregation drops the groups that it finds no partner for, and by the time that the
//! aggregation is read, it knows which. A filter over keys is evaluated once per group and becomes a
//! selection of the axis that the keys are over:
//!
//! ```text
//!   stations JOIN (SELECT station, avg(value) … GROUP BY station) USING (station)
//!     filter    station IN ('A', 'F')
//!     groups    A B C D E F …   wanted  A, F   only the chunks, and the cells, of these are read
//! ```

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{Field, Schema};
use datafusion::error::Result;
use datafusion::physical_expr::split_conjunction;

use super::keys::{KeyColumn, Keys};
use crate::exec::columns::{Expr, columns_of, over_columns};
use crate::exec::dynamic::snapshot;
use crate::exec::satisfied;
use crate::grid::AxisSelection;
use crate::plan::ScanPlan;
use crate::reduce::AxisGroups;

/// What `filters`, which are over the output of a reduction, leave of the elements of each axis; `None`
/// for axes of which they leave all. `plan` is the one over whose selection the keys are numbered.
pub(super) fn wanted(
    filters: &[Expr],
    keys: &Keys,
    plan: &ScanPlan,
) -> Result<Vec<Option<AxisSelection>>> {
    let mut wanted: Vec<Option<AxisSelection>> = vec![None; keys.axes.len()];
    for filter in filters {
        let Some(filter) = snapshot(filter)? else { continue };
        for conjunct in split_conjunction(&filter) {
            let Some((axis, groups)) = wanted_groups(conjunct, keys) else { continue };
            let left = elements(&groups, &keys.axes[axis], &plan.selection().axes()[axis]);
            wanted[axis] = Some(match wanted[axis].take() {
                Some(before) => before.intersect(&left),
                None => left,
            });
        }
    }
    Ok(wanted)
}

/// The axis that a conjunct is over, and for each of its groups whether it is true; `None` if it is over
/// aggregates, or over keys of several axes. Whoever pushed it down evaluates it again, so that an error
/// here is no error.
fn wanted_groups(conjunct: &Expr, keys: &Keys) -> Option<(usize, Vec<bool>)> {
    let needed = columns_of([conjunct]);
    let columns: Vec<&KeyColumn> =
        needed.iter().map(|&at| keys.columns.get(at)).collect::<Option<_>>()?;
    let axis = columns.first()?.axis;
    if columns.iter().any(|column| column.axis != axis) {
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
            log::debug!("no group is skipped by {conjunct}: {error}");
            None
        }
    }
}

/// The elements of an axis that are in one of the wanted groups.
fn elements(wanted: &[bool], groups: &AxisGroups, selection: &AxisSelection) -> AxisSelection {
    let is_wanted = |rank: u64| match groups {
        AxisGroups::One => wanted.first() == Some(&true),
        AxisGroups::Each => wanted[rank as usize],
        AxisGroups::Numbered { numbers, .. } => wanted[numbers[rank as usize] as usize],
    };
    let mut ranks: Vec<Range<u64>> = Vec::new();
    for rank in (0..selection.count()).filter(|rank| is_wanted(*rank)) {
        match ranks.last_mut() {
            Some(run) if run.end == rank => run.end += 1,
            _ => ranks.push(rank..rank + 1),
        }
    }
    let ranges = ranks.into_iter().flat_map(|run| selection.slice(run).ranges().to_vec());
    AxisSelection::from_ranges(selection.len(), ranges)
}
