//! Keys and conditions over coordinates of several axes: each cell of these axes gets a group number, or does not count.
//!
//! ```text
//!   WHERE lat > 60 AND t > 0 GROUP BY floor(lon), month       lat, lon over y and x
//!
//!   plane (y, x)   lat > 60, floor(lon)      numbers   0 0 1 -        evaluated once per cell, for all times
//!   rest           t > 0                     in the kernels
//!   axis time      month                     numbered per label
//! ```

use std::sync::Arc;

use arrow::array::{ArrayRef, UInt64Array};
use arrow::compute::{partition, take};
use arrow::datatypes::{Field, Schema};
use datafusion::error::Result;
use datafusion::logical_expr::EmitTo;
use datafusion::physical_expr::{PhysicalExprRef, conjunction, split_conjunction};
use datafusion::physical_plan::aggregates::group_values::{GroupValues, new_group_values};
use datafusion::physical_plan::aggregates::order::GroupOrdering;

use crate::array::ColumnSource;
use crate::exec::GridScanExec;
use crate::exec::columns::{columns_of, over_columns};
use crate::exec::coordinates::{Plane, PlaneColumns, cells_to_read, plane_axes};
use crate::exec::pruning::labels::satisfied;
use crate::reduce::PlaneGroups;

/// The part of a query that is over a plane.
#[derive(Debug, Clone)]
pub(super) struct KeyPlane {
    pub(super) groups: PlaneGroups,
    /// The values of each key by group number.
    pub(super) values: Vec<ArrayRef>,
    /// The conditions of the query that are not over the plane.
    pub(super) rest: Option<PhysicalExprRef>,
}

/// Whether `expr` is over coordinates of several axes, at least in part, and no other variable.
pub(super) fn is_over_plane(expr: &PhysicalExprRef, scan: &GridScanExec) -> bool {
    axes_of(expr, scan).is_some_and(|axes| axes.len() > 1)
}

fn axes_of(expr: &PhysicalExprRef, scan: &GridScanExec) -> Option<Vec<usize>> {
    let columns = scan.columns();
    let sources: Option<Vec<ColumnSource>> =
        columns_of([expr]).into_iter().map(|at| columns.get(at).copied()).collect();
    plane_axes(scan.array(), sources?)
}

impl KeyPlane {
    /// Evaluates `keys`, and the conditions of `predicate` that are over a plane. `None` if there are none of either. `None` if
    /// their axes have too many cells, or if more than `most_read` are to be read. Also `None` if a coordinate cannot be read, or if an
    /// expression fails on a cell: over rows, that cell may never be evaluated.
    pub(super) fn try_new(
        keys: &[PhysicalExprRef],
        predicate: Option<&PhysicalExprRef>,
        scan: &GridScanExec,
        most_read: u64,
    ) -> Option<Self> {
        let conjuncts = predicate.map(split_conjunction).unwrap_or_default();
        let (conditions, rest): (Vec<_>, Vec<_>) =
            conjuncts.into_iter().partition(|conjunct| is_over_plane(conjunct, scan));
        if keys.is_empty() && conditions.is_empty() {
            return None;
        }
        let exprs: Vec<PhysicalExprRef> =
            keys.iter().chain(conditions.iter().copied()).map(Arc::clone).collect();
        let rest = (!rest.is_empty()).then(|| conjunction(rest.into_iter().cloned()));
        let evaluated = evaluate(&exprs, keys.len(), scan, most_read);
        let (groups, values) = match evaluated {
            Ok(evaluated) => evaluated?,
            Err(error) => {
                log::debug!("cannot evaluate coordinates once per cell: {error}");
                return None;
            }
        };
        Some(Self { groups, values, rest })
    }
}

/// Numbers the groups of the first `keys` of `exprs`; cells for which one of the others is not true are in none. Also returns
/// the values of the keys by group number.
fn evaluate(
    exprs: &[PhysicalExprRef],
    keys: usize,
    scan: &GridScanExec,
    most_read: u64,
) -> Result<Option<(PlaneGroups, Vec<ArrayRef>)>> {
    let array = scan.array();
    let needed = columns_of(exprs);
    let scanned = scan.columns();
    let columns: Vec<ColumnSource> = needed.iter().map(|&at| scanned[at]).collect();
    let Some(axes) = plane_axes(array, columns.iter().copied()) else { return Ok(None) };
    // Kernels visit neighbouring axes as one.
    let (Some(first), Some(last)) = (axes.first(), axes.last()) else { return Ok(None) };
    let (first, last) = (*first, *last);
    if axes.len() != last + 1 - first {
        return Ok(None);
    }
    let exprs: Vec<PhysicalExprRef> =
        exprs.iter().map(|expr| over_columns(expr, &needed)).collect::<Result<_>>()?;
    let (keys, conditions) = exprs.split_at(keys);
    let condition = (!conditions.is_empty()).then(|| conjunction(conditions.iter().cloned()));
    let schema = Arc::new(scan.schema_ref().project(&needed)?);
    let selection = scan.plan().selection();
    if cells_to_read(array, &columns, selection) > most_read {
        return Ok(None);
    }
    let plane = Plane::new(axes, selection);
    let columns = PlaneColumns::of_rule(array, columns, Arc::clone(&schema), selection)?;
    let field = |key: &PhysicalExprRef| -> Result<Field> {
        Ok(Field::new("", key.data_type(&schema)?, true))
    };
    let fields = keys.iter().map(field).collect::<Result<Vec<_>>>()?;
    let mut distinct = match keys {
        [] => None,
        _ => Some(new_group_values(Arc::new(Schema::new(fields)), &GroupOrdering::None)?),
    };
    let mut numbers: Vec<u32> = vec![];
    let mut of_batch = vec![];
    for batch in columns.batches(&plane) {
        let batch = batch?;
        let keep = condition.as_ref().map(|it| satisfied(it, &batch)).transpose()?;
        match &mut distinct {
            Some(distinct) => {
                let values =
                    keys.iter().map(|key| key.evaluate(&batch)?.into_array(batch.num_rows()));
                number(distinct.as_mut(), &values.collect::<Result<Vec<_>>>()?, &mut of_batch)?;
            }
            None => of_batch = vec![0; batch.num_rows()],
        }
        let counted = |(at, group): (usize, &usize)| match &keep {
            Some(keep) if !keep.value(at) => PlaneGroups::NONE,
            _ => *group as u32,
        };
        numbers.extend(of_batch.iter().enumerate().map(counted));
    }
    let count = distinct.as_ref().map_or(1, |distinct| distinct.len() as u32);
    let values = distinct.as_mut().map(|distinct| distinct.emit(EmitTo::All)).transpose()?;
    let groups = PlaneGroups { axes: first..last + 1, numbers: numbers.into(), groups: count };
    Ok(Some((groups, values.unwrap_or_default())))
}

/// Numbers rows by the values of their keys. Neighbours with the same values are looked up once.
fn number(
    distinct: &mut dyn GroupValues,
    keys: &[ArrayRef],
    numbers: &mut Vec<usize>,
) -> Result<()> {
    let Ok(runs) = partition(keys) else { return distinct.intern(keys, numbers) };
    let runs = runs.ranges();
    let rows = runs.last().map_or(0, |last| last.end);
    if runs.len() * 2 > rows {
        return distinct.intern(keys, numbers);
    }
    let firsts = UInt64Array::from_iter_values(runs.iter().map(|run| run.start as u64));
    let firsts = keys.iter().map(|key| take(key, &firsts, None)).collect::<Result<Vec<_>, _>>()?;
    let mut of_runs = vec![];
    distinct.intern(&firsts, &mut of_runs)?;
    numbers.clear();
    for (run, group) in runs.iter().zip(of_runs) {
        numbers.resize(run.end, group);
    }
    Ok(())
}
