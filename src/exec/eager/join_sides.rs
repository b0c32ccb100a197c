//! [`HashJoinSides`]: a join with an array on one side.

use std::ops::Range;
use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::common::{JoinSide, JoinType};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::HashJoinExec;

use crate::exec::columns::{columns_of, move_columns};

/// A hash join, one side of which is to be aggregated.
///
/// Expressions are over all columns of both sides, whatever the join returns: first those of the left side, then those
/// of the right side.
#[derive(Clone, Copy)]
pub(super) struct HashJoinSides<'a> {
    pub(super) join: &'a HashJoinExec,
    /// The side that is aggregated.
    pub(super) side: JoinSide,
}

impl<'a> HashJoinSides<'a> {
    /// Returns the join with `side` to be aggregated. `None` if the join does not return the rows of this side, or returns
    /// only some of those that match.
    pub(super) fn new(join: &'a HashJoinExec, side: JoinSide) -> Option<Self> {
        let returns = match (join.join_type(), side) {
            (JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full, _) => true,
            (JoinType::LeftSemi | JoinType::LeftAnti, side) => side == JoinSide::Left,
            (JoinType::RightSemi | JoinType::RightAnti, side) => side == JoinSide::Right,
            (JoinType::LeftMark | JoinType::RightMark, _) => false,
        };
        // A null-aware join decides by all rows of the other side, not by each match.
        let is_plain = !join.null_aware && join.fetch().is_none();
        (returns && is_plain).then_some(Self { join, side })
    }

    /// The input that is aggregated.
    pub(super) fn input(&self) -> &'a Arc<dyn ExecutionPlan> {
        match self.side {
            JoinSide::Left => self.join.left(),
            _ => self.join.right(),
        }
    }

    /// The columns of that input, among those of both sides.
    pub(super) fn own(&self) -> Range<usize> {
        let (left, right) = (width(self.join.left()), width(self.join.right()));
        match self.side {
            JoinSide::Left => 0..left,
            _ => left..left + right,
        }
    }

    /// Whether the join returns columns of one side only.
    pub(super) fn returns_one_side(&self) -> bool {
        use JoinType::{LeftAnti, LeftSemi, RightAnti, RightSemi};
        matches!(self.join.join_type(), LeftSemi | LeftAnti | RightSemi | RightAnti)
    }

    /// The schema of the columns of both sides.
    pub(super) fn schema(&self) -> Schema {
        let (left, right) = (self.join.left().schema(), self.join.right().schema());
        Schema::new(left.fields().iter().chain(right.fields()).cloned().collect::<Vec<_>>())
    }

    /// Whether the join also returns rows of the other side without a match, with NULLs as columns of this side.
    pub(super) fn adds_null_rows(&self) -> bool {
        match self.join.join_type() {
            JoinType::Full => true,
            JoinType::Left => self.side == JoinSide::Right,
            JoinType::Right => self.side == JoinSide::Left,
            _ => false,
        }
    }

    /// Rewrites an expression over the output of the join, over the columns of both sides.
    ///
    /// # Errors
    /// Internal errors only.
    pub(super) fn over_sides(&self, expr: &PhysicalExprRef) -> Result<PhysicalExprRef> {
        let before = match self.join.join_type() {
            JoinType::RightSemi | JoinType::RightAnti => width(self.join.left()),
            _ => 0,
        };
        let projection = self.join.projection.as_deref();
        let place = |at: usize| match projection {
            Some(columns) => columns.get(at).map(|column| column + before),
            None => Some(at + before),
        };
        move_columns(expr, &place)
    }
}

/// Whether an expression uses one of the columns `own`.
pub(super) fn uses(expr: &PhysicalExprRef, own: &Range<usize>) -> bool {
    columns_of([expr]).iter().any(|at| own.contains(at))
}

fn width(plan: &Arc<dyn ExecutionPlan>) -> usize {
    plan.schema().fields().len()
}
