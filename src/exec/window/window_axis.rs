//! [`WindowAxis`]: the axis along which a window moves.
//!
//! Its lines are the selected indices. If they are in no order only because of NULL among the sort keys, lines with NULL come before or
//! behind all others (`lines`).

use std::ops::Range;

use arrow::array::{Array, ArrayRef, UInt32Array, UInt64Array, make_comparator};
use arrow::compute::{SortOptions, take};
use datafusion::error::Result;
use datafusion::physical_expr::{PhysicalExprRef, PhysicalSortExpr};
use datafusion::physical_expr_common::physical_expr::is_volatile;

use super::lines::NullLines;
use crate::exec::GridScanExec;
use crate::exec::matching::{KeysByAxis, Over, has_merged_zeros, number_axis};
use crate::exec::rows_because::{Attempt, because, if_made};
use crate::grid::AxisSelection;
use crate::reduce::AxisGroups;

/// The greatest number of positions. More frames would take more than 64 MiB, and planning too long.
const MOST_POSITIONS: u64 = 1 << 22;

/// The axis along which the frames of a window move, and its order there.
#[derive(Debug, Clone)]
pub(super) struct WindowAxis {
    pub(super) axis: usize,
    /// The partitions along the axis, as lines; they are in order and leave no gap.
    pub(super) partitions: Vec<Range<usize>>,
    /// Whether the window goes from the last line to the first.
    pub(super) backwards: bool,
    /// The sort key of each line, with its order.
    pub(super) key: Option<(ArrayRef, SortOptions)>,
    /// Per line, whether the one behind it is in the same partition and has the same sort key.
    pub(super) is_tied: Vec<bool>,
    /// The indices whose lines are apart, because their sort key is NULL. `None` if lines are the selected indices in order.
    pub(super) nulls: Option<NullLines>,
}

/// Whether the rows of each group of `keys` come in `order` or its reverse, if the chunks of `scan` are read one by one. No two rows
/// of a group may be equal.
pub(in crate::exec) fn come_in_order(
    keys: &[PhysicalExprRef],
    order: &[PhysicalSortExpr],
    scan: &GridScanExec,
) -> Result<bool> {
    let axis = if_made(WindowAxis::try_new(keys, order, scan))?;
    Ok(axis.is_some_and(|it| it.nulls.is_none() && !it.is_tied.contains(&true)))
}

impl WindowAxis {
    /// Finds the axis of a window over `scan`. The keys of partitions must tell all labels of the other axes apart.
    /// The rows of each partition must be in order along the axis, forwards or backwards.
    pub(super) fn try_new(
        partition_by: &[PhysicalExprRef],
        order_by: &[PhysicalSortExpr],
        scan: &GridScanExec,
    ) -> Attempt<Self> {
        let sort_keys = order_by.iter().map(|key| &key.expr);
        if partition_by.iter().chain(sort_keys).any(is_volatile) {
            return Err(because("a key of the window is random"));
        }
        let keys = KeysByAxis::try_new(partition_by, scan);
        let keys = keys.ok_or_else(|| because("PARTITION BY has a key of no single dimension"))?;
        let (axis, order) = ordered_axis(&keys.axes, order_by, scan)
            .ok_or_else(|| because("ORDER BY of the window is no single dimension"))?;
        let lines = scan.plan().selection().axes()[axis].count();
        if lines > MOST_POSITIONS {
            return Err(because(format!(
                "the window moves along {lines} labels, more than {MOST_POSITIONS}"
            )));
        }
        for other in (0..keys.axes.len()).filter(|other| *other != axis) {
            let are_apart = || Some(keys.number_axis(other)?.0 == AxisGroups::Each);
            let is_single = scan.plan().selection().axes()[other].count() == 1;
            if !is_single && are_apart() != Some(true) {
                let name = scan.array().dims()[other].name();
                return Err(because(format!(
                    "partitions of the window have several labels of {name}"
                )));
            }
        }
        let out_of_order = || {
            let name = scan.array().dims()[axis].name();
            because(format!("the window needs another order of rows than that of {name}"))
        };
        let partitions = partitions(scan, axis, &keys).ok_or_else(out_of_order)?;
        let key = match order {
            None => None,
            Some(order) => {
                let key = key_of(scan, axis, &order)?.ok_or_else(out_of_order)?;
                Some((key, order.options))
            }
        };
        let whole = Self { axis, partitions, backwards: false, key, is_tied: vec![], nulls: None };
        if let Some(found) = whole.in_order()? {
            return Ok(found);
        }
        for lead in [false, true] {
            let Some(apart) = whole.with_nulls_apart(lead, scan)? else { break };
            if let Some(found) = apart.in_order()? {
                return Ok(found);
            }
        }
        Err(out_of_order())
    }

    /// Returns the number of lines.
    pub(super) fn len(&self) -> usize {
        self.partitions.last().map_or(0, |last| last.end)
    }

    /// Numbers the lines whose key is NULL before all others, or behind them. `None` if there are none, or none else.
    fn with_nulls_apart(&self, lead: bool, scan: &GridScanExec) -> Result<Option<Self>> {
        let selected = &scan.plan().selection().axes()[self.axis];
        let Some((key, options)) = &self.key else { return Ok(None) };
        // Partitions along the axis would no longer be ranges of lines.
        let Some(nulls) = key.logical_nulls().filter(|_| self.partitions.len() == 1) else {
            return Ok(None);
        };
        let (known, unknown): (Vec<usize>, Vec<usize>) =
            (0..key.len()).partition(|line| nulls.is_valid(*line));
        if known.is_empty() || unknown.is_empty() {
            return Ok(None);
        }
        let all = selected.ranges().iter().cloned().flatten().zip(nulls.iter());
        let unknown_indices = all.filter(|(_, is_known)| !is_known).map(|(at, _)| at..at + 1);
        let indices = AxisSelection::from_ranges(selected.len(), unknown_indices);
        let (first, second) = if lead { (unknown, known) } else { (known, unknown) };
        let lines = first.into_iter().chain(second).map(|line| line as u64);
        let key = take(key, &UInt64Array::from_iter_values(lines), None)?;
        let nulls = Some(NullLines { indices, lead });
        Ok(Some(Self { key: Some((key, *options)), nulls, ..self.clone() }))
    }

    /// Finds the direction of the window, and the lines of equal keys. `None` if keys are in neither order.
    fn in_order(&self) -> Result<Option<Self>> {
        let mut found = self.clone();
        let Some((key, options)) = &self.key else {
            // Without an order, all rows of a partition are peers.
            found.is_tied = vec![true; self.len()];
            return Ok(Some(found));
        };
        let compare = make_comparator(key, key, *options)?;
        found.is_tied = vec![false; self.len()];
        let (mut ascends, mut descends) = (true, true);
        for at in self.partitions.iter().flat_map(|it| it.start..it.end.saturating_sub(1)) {
            let order = compare(at, at + 1);
            ascends &= order.is_le();
            descends &= order.is_ge();
            found.is_tied[at] = order.is_eq();
        }
        found.backwards = !ascends;
        Ok((ascends || descends).then_some(found))
    }
}

/// Returns the axis of the order, and its sort key. Without an order, it is the one axis whose labels are not told apart.
fn ordered_axis(
    keys: &[Vec<usize>],
    order_by: &[PhysicalSortExpr],
    scan: &GridScanExec,
) -> Option<(usize, Option<PhysicalSortExpr>)> {
    let mut order = None;
    for key in order_by {
        match Over::new(&key.expr, scan) {
            Over::Nothing => {}
            Over::Axis(axis) if order.is_none() => order = Some((axis, Some(key.clone()))),
            _ => return None,
        }
    }
    let selected = scan.plan().selection().axes();
    let mut free = (0..keys.len()).filter(|&it| keys[it].is_empty() && selected[it].count() > 1);
    match order {
        Some(order) => Some(order),
        None => free.next().map(|axis| (axis, None)),
    }
}

/// Returns the partitions along the axis of the window. `None` if the positions of one do not follow one another.
fn partitions(
    scan: &GridScanExec,
    axis: usize,
    keys: &KeysByAxis<'_>,
) -> Option<Vec<Range<usize>>> {
    let len = scan.plan().selection().axes()[axis].count() as usize;
    let (groups, values) = keys.number_axis(axis)?;
    if has_merged_zeros(&groups, &values) {
        return None;
    }
    match groups {
        AxisGroups::One => Some((len > 0).then_some(0..len).into_iter().collect()),
        AxisGroups::Numbered { numbers, groups } => {
            let runs = numbers.chunk_by(|a, b| a == b).scan(0, |end, run| {
                let start = *end;
                *end += run.len();
                Some(start..*end)
            });
            let runs: Vec<Range<usize>> = runs.collect();
            (runs.len() == groups as usize).then_some(runs)
        }
        AxisGroups::Each => Some((0..len).map(|at| at..at + 1).collect()),
    }
}

/// Returns the sort key of each position. `None` if it cannot be evaluated, or if it has zeros of both signs.
fn key_of(scan: &GridScanExec, axis: usize, order: &PhysicalSortExpr) -> Result<Option<ArrayRef>> {
    let exprs = [PhysicalExprRef::clone(&order.expr)];
    let Some((groups, values)) = number_axis(scan, axis, &exprs) else { return Ok(None) };
    if has_merged_zeros(&groups, &values) {
        return Ok(None);
    }
    let Some(values) = values.into_iter().next() else { return Ok(None) };
    Ok(match groups {
        AxisGroups::Each => Some(values),
        AxisGroups::Numbered { numbers, .. } => {
            Some(take(&values, &UInt32Array::from(numbers.to_vec()), None)?)
        }
        AxisGroups::One => None,
    })
}
