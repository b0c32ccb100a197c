//! [`GridLookup`]: a hash join with a scan on one side, taken apart.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::common::{JoinSide, JoinType, NullEquality};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};

use crate::exec::GridScanExec;
use crate::exec::columns::axes_of;
use crate::exec::reduce::{InputOperators, number_axis};
use crate::exec::zeros::with_one_zero;
use crate::reduce::AxisGroups;

/// Which rows of the array a join returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    /// Each match.
    Matches,
    /// Each match, and rows without one.
    All,
    /// Rows with a match, once.
    WithMatch,
    /// Rows without a match.
    WithoutMatch,
}

/// The keys of a join over one axis of the array.
#[derive(Debug)]
pub(super) struct AxisKeys {
    pub(super) axis: usize,
    /// Per key its values, by the number of their group on the axis.
    pub(super) values: Vec<ArrayRef>,
    /// The keys of the other side.
    pub(super) built: Vec<PhysicalExprRef>,
}

/// A join of an array with rows that are looked up.
#[derive(Debug)]
pub(super) struct GridLookup {
    /// The join that it replaces.
    pub(super) join: Arc<dyn ExecutionPlan>,
    /// The side of the array.
    pub(super) side: JoinSide,
    pub(super) scan: GridScanExec,
    pub(super) kept: Kept,
    /// The numbers of the keys along each axis.
    pub(super) groups: Vec<AxisGroups>,
    pub(super) keys: Vec<AxisKeys>,
    /// The condition for rows of the array, over the columns of the scan.
    pub(super) predicate: Option<PhysicalExprRef>,
    /// Whether NULL matches NULL.
    pub(super) null_equals_null: bool,
    /// The columns of the scan, and behind them those of the other side if the join returns them.
    pub(super) schema: SchemaRef,
}

/// A lookup, with the operators between the join and the scan.
pub(super) struct OverScan {
    pub(super) lookup: GridLookup,
    pub(super) below: InputOperators,
}

impl GridLookup {
    /// Takes a join apart; `None` if neither side is a whole scan of a grid whose keys are each over one dimension. Also `None`
    /// if the other side seems to have more rows than the array.
    pub(super) fn of(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<OverScan>> {
        // DataFusion keeps the left side in memory, so it takes it for the smaller one.
        for side in [JoinSide::Right, JoinSide::Left] {
            let Some(found) = Self::on_side(plan, side)? else { continue };
            let Some(other) = found.lookup.other() else { continue };
            let rows = rows_of(other)?;
            let is_smaller = |rows| rows as u64 <= found.lookup.scan.plan().rows(None);
            if rows.map_or(side == JoinSide::Right, is_smaller) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Takes a join apart whose array is on `side`; `None` if it is none.
    pub(super) fn on_side(
        plan: &Arc<dyn ExecutionPlan>,
        side: JoinSide,
    ) -> Result<Option<OverScan>> {
        let Some(join) = plan.downcast_ref::<HashJoinExec>() else { return Ok(None) };
        if join.null_aware || join.fetch().is_some() {
            return Ok(None);
        }
        Self::with_array(plan, join, side)
    }

    /// Returns the input whose rows are looked up.
    pub(super) fn other(&self) -> Option<&Arc<dyn ExecutionPlan>> {
        let join = self.join.downcast_ref::<HashJoinExec>()?;
        Some(if self.side == JoinSide::Left { join.right() } else { join.left() })
    }

    /// Takes a join apart whose array is on `side`.
    fn with_array(
        plan: &Arc<dyn ExecutionPlan>,
        join: &HashJoinExec,
        side: JoinSide,
    ) -> Result<Option<OverScan>> {
        let Some(kept) = kept(*join.join_type(), side) else { return Ok(None) };
        if join.filter().is_some() && kept != Kept::Matches {
            return Ok(None);
        }
        let (input, other) = match side {
            JoinSide::Left => (join.left(), join.right()),
            _ => (join.right(), join.left()),
        };
        let Some(below) = InputOperators::above(input, &|it| it.is::<GridScanExec>())? else {
            return Ok(None);
        };
        let Some(scan) = below.input.downcast_ref::<GridScanExec>().filter(|it| it.is_as_planned())
        else {
            return Ok(None);
        };
        if below.columns.iter().chain(&below.predicate).any(is_volatile) {
            return Ok(None);
        }
        let mut keys: Vec<(PhysicalExprRef, PhysicalExprRef)> = vec![];
        for (left, right) in join.on() {
            let (own, built) = if side == JoinSide::Left { (left, right) } else { (right, left) };
            let own = with_one_zero(&below.over_input(own)?, scan.schema_ref())?;
            keys.push((own, with_one_zero(built, &other.schema())?));
        }
        let Some((groups, keys)) = number(&keys, scan, &other.schema()) else { return Ok(None) };
        let mut fields: Vec<Arc<Field>> = scan.schema_ref().fields().iter().cloned().collect();
        if matches!(kept, Kept::Matches | Kept::All) {
            let nullable = |field: &Arc<Field>| match kept {
                Kept::All => Arc::new(field.as_ref().clone().with_nullable(true)),
                _ => Arc::clone(field),
            };
            fields.extend(other.schema().fields().iter().map(nullable));
        }
        let lookup = Self {
            join: Arc::clone(plan),
            side,
            scan: scan.clone(),
            kept,
            groups,
            keys,
            predicate: below.predicate.clone(),
            null_equals_null: join.null_equality() == NullEquality::NullEqualsNull,
            schema: Arc::new(Schema::new(fields)),
        };
        Ok(Some(OverScan { lookup, below }))
    }

    /// Returns the greatest number of places of the table.
    pub(super) fn places(&self) -> u64 {
        let selected = self.scan.plan().selection().axes();
        let count = |(axis, groups): (usize, &AxisGroups)| groups.count(selected[axis].count());
        self.groups.iter().enumerate().map(count).fold(1, u64::saturating_mul)
    }
}

/// Returns about how many rows a plan returns; `None` if that is not known.
fn rows_of(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<usize>> {
    let statistics = StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new())?;
    Ok(statistics.num_rows.get_value().copied())
}

/// Returns which rows of the array on `side` a join returns; `None` if it returns others, too.
fn kept(join: JoinType, side: JoinSide) -> Option<Kept> {
    let is_left = side == JoinSide::Left;
    match join {
        JoinType::Inner => Some(Kept::Matches),
        JoinType::Left if is_left => Some(Kept::All),
        JoinType::Right if !is_left => Some(Kept::All),
        JoinType::LeftSemi if is_left => Some(Kept::WithMatch),
        JoinType::RightSemi if !is_left => Some(Kept::WithMatch),
        JoinType::LeftAnti if is_left => Some(Kept::WithoutMatch),
        JoinType::RightAnti if !is_left => Some(Kept::WithoutMatch),
        _ => None,
    }
}

/// Numbers the keys of the array along their axes. `None` if one is over several axes or over a variable.
fn number(
    keys: &[(PhysicalExprRef, PhysicalExprRef)],
    scan: &GridScanExec,
    other: &Schema,
) -> Option<(Vec<AxisGroups>, Vec<AxisKeys>)> {
    let columns = scan.columns();
    let rank = scan.array().grid().rank();
    let mut of_axis: Vec<Vec<&(PhysicalExprRef, PhysicalExprRef)>> = vec![vec![]; rank];
    for key in keys {
        match axes_of(&key.0, &columns)?.as_slice() {
            [axis] => of_axis[*axis].push(key),
            _ => return None,
        }
    }
    let mut groups = vec![AxisGroups::One; rank];
    let mut numbered = vec![];
    for (axis, keys) in of_axis.into_iter().enumerate().filter(|(_, keys)| !keys.is_empty()) {
        let own: Vec<PhysicalExprRef> = keys.iter().map(|(own, _)| Arc::clone(own)).collect();
        let (of_axis, values) = number_axis(scan, axis, &own)?;
        // Planning gives both sides one type, but a message may not.
        let is_same = |(values, (_, built)): (&ArrayRef, &&(_, PhysicalExprRef))| {
            built.data_type(other).is_ok_and(|it| it == *values.data_type() && !it.is_null())
        };
        if !values.iter().zip(&keys).all(is_same) {
            return None;
        }
        let built = keys.iter().map(|(_, built)| Arc::clone(built)).collect();
        groups[axis] = of_axis;
        numbered.push(AxisKeys { axis, values, built });
    }
    (!numbered.is_empty()).then_some((groups, numbered))
}
