//! [`Condition`]: what a `WHERE`, a `FILTER` or a `CASE` asks of a cell, as an interval of values and
//! conditions on dimensions.
//!
//! ```text
//!   t > 280 AND lat < 0 AND t IS NOT NULL AND p <= 5    ─▶    t     280, exclusive, and more
//!                                                             p     up to 5
//!                                                             lat   lat < 0
//! ```

use std::sync::Arc;

use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, IsNotNullExpr};
use datafusion::physical_expr::{PhysicalExprRef, split_conjunction};

use super::number::{number, number_of, plain_value};
use crate::exec::GridScanExec;
use crate::exec::matching::Over;
use crate::reduce::{Limit, Number, ValueRange};

/// A condition that the kernels test: all parts must be true.
#[derive(Debug, Clone, Default)]
pub(super) struct Condition {
    /// The intervals in which values lie.
    pub(super) values: Intervals,
    /// Conditions on the labels of an axis each.
    pub(super) labels: Vec<(usize, PhysicalExprRef)>,
}

/// Variables and the intervals in which their values lie, in the order of variables. NULL is in no interval.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Intervals(Vec<(usize, ValueRange)>);

/// The values of a variable that count: those in `range`, of cells in which other variables lie in intervals, too.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Values {
    pub(super) variable: usize,
    pub(super) range: ValueRange,
    pub(super) others: Intervals,
}

impl Condition {
    /// Translates `expr`; `None` if a part of it is over several dimensions or several variables, or is not
    /// an interval.
    pub(super) fn try_new(expr: &PhysicalExprRef, scan: &GridScanExec) -> Option<Self> {
        let mut condition = Self::default();
        for conjunct in split_conjunction(expr) {
            match Over::new(conjunct, scan) {
                Over::Nothing => condition.labels.push((0, Arc::clone(conjunct))),
                Over::Axis(axis) => condition.labels.push((axis, Arc::clone(conjunct))),
                Over::Axes => return None,
                Over::Variable => {
                    let interval = Intervals(vec![interval(conjunct, scan)?]);
                    condition.values = condition.values.and(&interval)?;
                }
            }
        }
        Some(condition)
    }
}

impl Intervals {
    /// Returns the intervals of the cells that are in both. `None` if the limits of a variable cannot be compared.
    pub(super) fn and(&self, other: &Self) -> Option<Self> {
        let mut both = self.0.clone();
        for (variable, range) in &other.0 {
            match both.binary_search_by_key(variable, |(of, _)| *of) {
                Ok(at) => both[at].1 = both[at].1.and(range)?,
                Err(at) => both.insert(at, (*variable, *range)),
            }
        }
        Some(Self(both))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns each variable with its interval.
    pub(super) fn each(&self) -> impl Iterator<Item = &(usize, ValueRange)> {
        self.0.iter()
    }

    /// Whether the variable has an interval.
    pub(super) fn restrict(&self, variable: usize) -> bool {
        self.0.iter().any(|(of, _)| *of == variable)
    }

    /// Returns the values of a variable in the cells that are in all intervals.
    pub(super) fn values_of(&self, variable: usize) -> Values {
        let (own, others): (Vec<_>, Vec<_>) =
            self.0.iter().copied().partition(|(of, _)| *of == variable);
        let range = own.first().map_or_else(ValueRange::default, |(_, range)| *range);
        Values { variable, range, others: Self(others) }
    }

    /// Returns the values whose number is that of the cells in all intervals: no cell in an interval is NULL. `None` if there is no
    /// interval.
    pub(super) fn cells(&self) -> Option<Values> {
        self.0.first().map(|(variable, _)| self.values_of(*variable))
    }
}

/// Returns the variable that `conjunct` is over, and the interval for which it is true. `None` unless it
/// compares a variable with a number.
///
/// `10 >= value` is the interval up to 10, inclusive. NULL is in no interval, so `value IS NOT NULL` is the
/// interval without limits.
fn interval(conjunct: &PhysicalExprRef, scan: &GridScanExec) -> Option<(usize, ValueRange)> {
    if let Some(not_null) = conjunct.downcast_ref::<IsNotNullExpr>() {
        return Some((plain_value(not_null.arg(), scan)?, ValueRange::default()));
    }
    let comparison = conjunct.downcast_ref::<BinaryExpr>()?;
    let (left, right) = (comparison.left(), comparison.right());
    let (side, number, operator) = match (number(left), number(right)) {
        (None, Some(number)) => (left, number, *comparison.op()),
        (Some(number), None) => (right, number, comparison.op().swap()?),
        _ => return None,
    };
    let value = compared_exactly(side, number, scan)?;
    let limit = |inclusive| Some(Limit { number, inclusive });
    let (least, greatest) = match operator {
        Operator::Gt => (limit(false), None),
        Operator::GtEq => (limit(true), None),
        Operator::Lt => (None, limit(false)),
        Operator::LtEq => (None, limit(true)),
        Operator::Eq => (limit(true), limit(true)),
        _ => return None,
    };
    Some((value, ValueRange { least, greatest }))
}

/// Returns the variable of `side`, if its elements compare with `number` exactly as `side` does: nothing
/// is rounded.
///
/// DataFusion compares both sides in one type. `CAST(value AS Float64) > 0.1` is exact for singles and for
/// integers of up to 4 bytes. An `Int64` may be rounded to a double, so the kernels do not take it.
fn compared_exactly(side: &PhysicalExprRef, number: Number, scan: &GridScanExec) -> Option<usize> {
    let (value, compared_as) = number_of(side, scan)?;
    let from = scan.array().value(value).data_type();
    let exact = match number {
        Number::Integer(_) => compared_as.is_integer() && from.is_integer(),
        Number::Float(number) => {
            let narrow =
                from.is_floating() || from.primitive_width().is_some_and(|width| width <= 4);
            compared_as.is_floating() && narrow && !number.is_nan()
        }
    };
    exact.then_some(value)
}
