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
use crate::exec::matching::{
    InputOperators, KeysByAxis, NumberedKeys, ScanBelow, ScanCells, group_count, with_one_zero,
};
use crate::reduce::AxisGroups;

/// Which rows of the array a join returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::exec) enum ReturnedRows {
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
pub(in crate::exec) struct AxisKeys {
    pub(in crate::exec) axis: usize,
    /// Per key its values, by the number of their group on the axis.
    pub(super) values: Vec<ArrayRef>,
    /// The keys of the other side.
    pub(super) built: Vec<PhysicalExprRef>,
}

/// A join of an array with rows that are looked up.
#[derive(Debug)]
pub(in crate::exec) struct GridLookup {
    /// The join that it replaces.
    pub(super) join: Arc<dyn ExecutionPlan>,
    /// The side of the array.
    pub(super) side: JoinSide,
    pub(in crate::exec) scan: GridScanExec,
    pub(in crate::exec) kept: ReturnedRows,
    /// The numbers of the keys along each axis.
    pub(in crate::exec) groups: Vec<AxisGroups>,
    pub(in crate::exec) keys: Vec<AxisKeys>,
    /// The condition for rows of the array, over the columns of the scan.
    pub(in crate::exec) predicate: Option<PhysicalExprRef>,
    /// Whether NULL matches NULL.
    pub(super) null_equals_null: bool,
    /// The columns of the scan, and behind them those of the other side if the join returns them.
    pub(in crate::exec) schema: SchemaRef,
}

impl GridLookup {
    /// Takes a join apart. Also returns the operators between it and the scan. `None` if no side is a scan whose keys are each
    /// over one dimension. `None` too if the other side seems to have more rows than the array.
    pub(super) fn try_new(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<(Self, InputOperators)>> {
        // DataFusion keeps the left side in memory, so it takes it for the smaller one.
        for side in [JoinSide::Right, JoinSide::Left] {
            let Some((lookup, below)) = Self::on_side(plan, side)? else { continue };
            let Some(other) = lookup.other() else { continue };
            let rows = rows_of(other)?;
            let is_smaller = |rows| rows as u64 <= lookup.scan.plan().rows(None);
            if rows.map_or(side == JoinSide::Right, is_smaller) {
                return Ok(Some((lookup, below)));
            }
        }
        Ok(None)
    }

    /// Takes a join apart whose array is on `side`; `None` if it is none.
    pub(super) fn on_side(
        plan: &Arc<dyn ExecutionPlan>,
        side: JoinSide,
    ) -> Result<Option<(Self, InputOperators)>> {
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
    ) -> Result<Option<(Self, InputOperators)>> {
        let Some(kept) = kept(*join.join_type(), side) else { return Ok(None) };
        if join.filter().is_some() && kept != ReturnedRows::Matches {
            return Ok(None);
        }
        let (input, other) = match side {
            JoinSide::Left => (join.left(), join.right()),
            _ => (join.right(), join.left()),
        };
        let Some(below) = ScanBelow::find(input, ScanCells::Read)? else { return Ok(None) };
        if below.expressions().any(is_volatile) {
            return Ok(None);
        }
        let ScanBelow { scan, operators } = below;
        let mut keys: Vec<(PhysicalExprRef, PhysicalExprRef)> = vec![];
        for (left, right) in join.on() {
            let (own, built) = if side == JoinSide::Left { (left, right) } else { (right, left) };
            let own = with_one_zero(&operators.over_input(own)?, scan.schema_ref())?;
            keys.push((own, with_one_zero(built, &other.schema())?));
        }
        let Some((groups, keys)) = number(&keys, &scan, &other.schema()) else { return Ok(None) };
        let mut fields: Vec<Arc<Field>> = scan.schema_ref().fields().iter().cloned().collect();
        if matches!(kept, ReturnedRows::Matches | ReturnedRows::All) {
            let nullable = |field: &Arc<Field>| match kept {
                ReturnedRows::All => Arc::new(field.as_ref().clone().with_nullable(true)),
                _ => Arc::clone(field),
            };
            fields.extend(other.schema().fields().iter().map(nullable));
        }
        let lookup = Self {
            join: Arc::clone(plan),
            side,
            scan,
            kept,
            groups,
            keys,
            predicate: operators.predicate.clone(),
            null_equals_null: join.null_equality() == NullEquality::NullEqualsNull,
            schema: Arc::new(Schema::new(fields)),
        };
        Ok(Some((lookup, operators)))
    }

    /// Returns the greatest number of places of the table.
    pub(super) fn places(&self) -> u64 {
        group_count(&self.groups, &self.scan).unwrap_or(u64::MAX)
    }
}

/// Returns about how many rows a plan returns; `None` if that is not known.
fn rows_of(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<usize>> {
    let statistics = StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new())?;
    Ok(statistics.num_rows.get_value().copied())
}

/// Returns which rows of the array on `side` a join returns; `None` if it returns others, too.
fn kept(join: JoinType, side: JoinSide) -> Option<ReturnedRows> {
    let is_left = side == JoinSide::Left;
    match join {
        JoinType::Inner => Some(ReturnedRows::Matches),
        JoinType::Left if is_left => Some(ReturnedRows::All),
        JoinType::Right if !is_left => Some(ReturnedRows::All),
        JoinType::LeftSemi if is_left => Some(ReturnedRows::WithMatch),
        JoinType::RightSemi if !is_left => Some(ReturnedRows::WithMatch),
        JoinType::LeftAnti if is_left => Some(ReturnedRows::WithoutMatch),
        JoinType::RightAnti if !is_left => Some(ReturnedRows::WithoutMatch),
        _ => None,
    }
}

/// Numbers the keys of the array along their axes. `None` if one is over several axes, over a variable, or constant.
fn number(
    keys: &[(PhysicalExprRef, PhysicalExprRef)],
    scan: &GridScanExec,
    other: &Schema,
) -> Option<(Vec<AxisGroups>, Vec<AxisKeys>)> {
    let own: Vec<PhysicalExprRef> = keys.iter().map(|(own, _)| Arc::clone(own)).collect();
    let by_axis = KeysByAxis::try_new(&own, scan).filter(|it| it.constants.is_empty())?;
    let NumberedKeys { groups, values } = by_axis.number()?;
    let mut numbered = vec![];
    for (axis, of_axis) in by_axis.axes.iter().enumerate().filter(|(_, keys)| !keys.is_empty()) {
        let (mut of_labels, mut built) = (vec![], vec![]);
        for &at in of_axis {
            let (values, key) = (values[at].as_ref()?, &keys[at].1);
            // Planning gives both sides one type, but a message may not.
            let data_type = key.data_type(other).ok()?;
            if data_type != *values.data_type() || data_type.is_null() {
                return None;
            }
            of_labels.push(Arc::clone(values));
            built.push(Arc::clone(key));
        }
        numbered.push(AxisKeys { axis, values: of_labels, built });
    }
    (!numbered.is_empty()).then_some((groups, numbered))
}
