//! [`Sides`]: the two scans of a join, and which axes of theirs correspond.

use std::ops::Range;
use std::sync::Arc;

use datafusion::common::{JoinSide, JoinType, NullEquality};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::Column as PhysicalColumn;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::HashJoinExec;

use crate::array::ColumnSource;
use crate::exec::GridScanExec;
use crate::exec::matching::{ScanBelow, ScanCells};
use crate::grid::Selection;

/// The scans of a join of arrays.
pub(super) struct Sides {
    /// The operators between the join and the scan of each side: left, right.
    pub(super) below: [ScanBelow; 2],
    /// The number of the side whose dimensions the result has.
    pub(super) first: usize,
    /// For each axis of the other side, the axis of the first one.
    pub(super) axes: Vec<usize>,
    /// Per side and axis, the indices whose labels both arrays have.
    pub(super) ranges: [Vec<Range<u64>>; 2],
    /// The cells of the result.
    pub(super) selection: Selection,
}

impl Sides {
    /// Takes a join apart. `None` unless both sides are scans of grids, joined on all dimensions of one of them, whose labels do
    /// not repeat. The labels that both have must follow one another in both. NULL may stand among them.
    pub(super) fn try_new(join: &HashJoinExec) -> Result<Option<Self>> {
        let nulls_match = join.null_equality() == NullEquality::NullEqualsNull;
        if join.null_aware || join.fetch().is_some() {
            return Ok(None);
        }
        let [Some(left), Some(right)] = [whole_scan(join.left())?, whole_scan(join.right())?]
        else {
            return Ok(None);
        };
        let below = [left, right];
        let ranks = [rank(&below[0]), rank(&below[1])];
        // The probe side is the larger one.
        let first = usize::from(ranks[1] >= ranks[0]);
        let Some(axes) = axes(join, &below, first) else { return Ok(None) };
        let (of_first, of_other) = (&below[first].scan, &below[1 - first].scan);
        let whole = |scan: &GridScanExec| -> Vec<Range<u64>> {
            scan.array().grid().shape().iter().map(|len| 0..*len).collect()
        };
        let mut ranges = [whole(of_first), whole(of_other)];
        for (own, axis) in axes.iter().enumerate() {
            let a = of_first.array().dims()[*axis].labels();
            let b = of_other.array().dims()[own].labels();
            if nulls_match && (a.has_nulls() || b.has_nulls()) {
                return Ok(None);
            }
            let Some((of_a, of_b)) = a.common(b)? else { return Ok(None) };
            (ranges[0][*axis], ranges[1][own]) = (of_a, of_b);
        }
        let [mut selection, other] = [(of_first, &ranges[0]), (of_other, &ranges[1])]
            .map(|(scan, ranges)| within(scan.plan().selection(), ranges));
        for (own, axis) in axes.iter().enumerate() {
            selection.restrict(*axis, &other.axes()[own]);
            // Both have NULL at the same places of these ranges, and it equals no label.
            let labels = of_first.array().dims()[*axis].labels();
            selection.restrict(*axis, &labels.known_within(ranges[0][*axis].clone())?);
        }
        if first == 1 {
            ranges.swap(0, 1);
        }
        let sides = Self { below, first, axes, ranges, selection };
        let shows_all = (0..2).all(|side| !sides.is_sliced(side) || !sides.shows_indices(side));
        Ok((shows_all && sides.keeps_rows(join)).then_some(sides))
    }

    /// Whether a side has labels that the other one has not.
    fn is_sliced(&self, side: usize) -> bool {
        let shape = self.scan(side).array().grid().shape();
        self.ranges[side].iter().zip(shape).any(|(range, len)| *range != (0..*len))
    }

    /// Whether a side shows indices, which count from the first label of its own array.
    fn shows_indices(&self, side: usize) -> bool {
        self.scan(side).columns().iter().any(|column| matches!(column, ColumnSource::Index(_)))
    }

    /// The scan of a side.
    pub(super) fn scan(&self, side: usize) -> &GridScanExec {
        &self.below[side].scan
    }

    /// Whether each row that an outer join keeps has a match, so that it is an inner one.
    fn keeps_rows(&self, join: &HashJoinExec) -> bool {
        let kept: &[JoinSide] = match join.join_type() {
            JoinType::Inner => &[],
            JoinType::Left => &[JoinSide::Left],
            JoinType::Right => &[JoinSide::Right],
            JoinType::Full => &[JoinSide::Left, JoinSide::Right],
            _ => return false,
        };
        kept.iter().all(|side| {
            let kept = usize::from(*side == JoinSide::Right);
            join.filter().is_none() && self.covers(kept)
        })
    }

    /// Whether the other side has a row for each row of the `kept` one.
    fn covers(&self, kept: usize) -> bool {
        let other = 1 - kept;
        // With a predicate, some rows of the other side are missing. An array of fewer dimensions repeats.
        if self.below[other].operators.predicate.is_some()
            || kept != self.first && !self.is_of_one_rank()
        {
            return false;
        }
        let selection = self.scan(kept).plan().selection();
        let common = within(selection, &self.ranges[kept]);
        // Labels that only the kept side has are rows without a match.
        if common.cells() != selection.cells() {
            return false;
        }
        let mut of_kept = common.axes().to_vec();
        if kept != self.first {
            let mut in_order = self.selection.axes().to_vec();
            for (own, axis) in self.axes.iter().enumerate() {
                in_order[*axis] = of_kept[own].clone();
            }
            of_kept = in_order;
        }
        of_kept == self.selection.axes()
    }

    fn is_of_one_rank(&self) -> bool {
        self.axes.len() == self.selection.axes().len()
    }
}

/// Returns a scan of all selected cells below a join. `None` if it shows the files of rows, which the result cannot.
fn whole_scan(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<ScanBelow>> {
    let below = ScanBelow::find(plan, ScanCells::Selected)?;
    let is_file = |column: &ColumnSource| matches!(column, ColumnSource::File(_));
    Ok(below.filter(|it| !it.scan.columns().iter().any(is_file)))
}

/// Returns the selected indices within a range of each axis, counted from its start.
fn within(selection: &Selection, ranges: &[Range<u64>]) -> Selection {
    let lens: Vec<u64> = ranges.iter().map(|range| range.end - range.start).collect();
    let mut within = Selection::all(&lens);
    for (axis, range) in ranges.iter().enumerate() {
        within.restrict(axis, &selection.axes()[axis].within(range.clone()));
    }
    within
}

fn rank(below: &ScanBelow) -> usize {
    below.scan.array().grid().rank()
}

/// Returns for each axis of the other side the axis of the first one that it is joined with. `None` if an axis of the other
/// side is not joined, or anything else is.
fn axes(join: &HashJoinExec, below: &[ScanBelow; 2], first: usize) -> Option<Vec<usize>> {
    let mut axes = vec![None; rank(&below[1 - first])];
    for (left, right) in join.on() {
        let pair = [axis_of(left, &below[0])?, axis_of(right, &below[1])?];
        let (axis, own) = (pair[first], pair[1 - first]);
        let is_new = axes[own].is_none() && !axes.contains(&Some(axis));
        if axes[own] != Some(axis) && !is_new {
            return None;
        }
        axes[own] = Some(axis);
    }
    axes.into_iter().collect()
}

/// Returns the axis whose labels an expression over the output of a side shows.
fn axis_of(expr: &PhysicalExprRef, below: &ScanBelow) -> Option<usize> {
    let expr = below.over_scan(expr).ok()?;
    let column = expr.downcast_ref::<PhysicalColumn>()?;
    match below.scan.columns().get(column.index())? {
        ColumnSource::Label(axis) => Some(*axis),
        _ => None,
    }
}
