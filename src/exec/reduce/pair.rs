//! [`PairCall`]: `regr_…`, `corr` and `covar_…` of a variable and a function of one dimension, such as the trend of each grid point.
//!
//! ```text
//!   regr_slope(value, date_part('year', time)) GROUP BY lat, lon
//!              y      x, once per label of time
//! ```
//!
//! The kernels compute [`Pairs`](crate::reduce::Pairs), from which all of these functions follow.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, UInt64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::{BinaryExpr, case};

use super::condition::{Condition, Values};
use super::number::number_of;
use super::query::Aggregate;
use crate::exec::GridScanExec;
use crate::exec::functions::PairFunction;
use crate::exec::matching::{Over, number_axis};
use crate::exec::own_functions::is_own_aggregate;
use crate::reduce::{CellWeights, Pairs};

/// A function of pairs of a value and the number of its label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::exec) struct PairCall {
    /// The function; `None` for `regr_count`.
    function: Option<PairFunction>,
    /// Whether the function takes the value as x.
    value_is_x: bool,
    /// Whether the final stage is DataFusion's own `corr` by group, whose state has squares.
    adds_squares: bool,
}

/// A call, with the values that count, and the numbers of labels.
pub(super) struct ParsedPair {
    pub(super) call: PairCall,
    pub(super) values: Values,
    pub(super) label: PhysicalExprRef,
    pub(super) numbers: Arc<CellWeights>,
}

/// The functions of labels of a query, each with its numbers.
#[derive(Debug, Default)]
pub(super) struct LabelFunctions {
    made: Vec<(PhysicalExprRef, Arc<CellWeights>)>,
}

impl LabelFunctions {
    /// Translates an aggregate, known as `name`, over the cells that meet `base`. `None` unless it is a function of a variable and a
    /// function of one dimension, which is finite for all labels or NULL.
    pub(super) fn parse(
        &mut self,
        name: &str,
        aggregate: &Aggregate,
        base: &Condition,
        scan: &GridScanExec,
        has_keys: bool,
    ) -> Option<ParsedPair> {
        let function = PairFunction::named(name);
        if function.is_none() && name != "regr_count" {
            return None;
        }
        let [first, second] = aggregate.args.as_slice() else { return None };
        let pair = |value: &PhysicalExprRef, label: &PhysicalExprRef| {
            let (value, number_type) = number_of(value, scan)?;
            let Over::Axis(axis) = Over::new(label, scan) else { return None };
            (number_type == DataType::Float64).then(|| (value, axis, Arc::clone(label)))
        };
        let of_second = pair(second, first);
        let value_is_first = of_second.is_none();
        let (value, axis, label) = of_second.or_else(|| pair(first, second))?;
        let values = base.values.values_of(value);
        let label = where_labels_meet(base, axis, label)?;
        let numbers = self.numbers(axis, &label, scan)?;
        let begins_with_x = !function.is_some_and(PairFunction::begins_with_y);
        let adds_squares = has_keys && !is_own_aggregate(aggregate.function.fun());
        let value_is_x = begins_with_x == value_is_first;
        let call = PairCall { function, value_is_x, adds_squares };
        Some(ParsedPair { call, values, label, numbers })
    }

    /// Returns the numbers of the labels of an axis; NaN for NULL.
    fn numbers(
        &mut self,
        axis: usize,
        label: &PhysicalExprRef,
        scan: &GridScanExec,
    ) -> Option<Arc<CellWeights>> {
        /// Squares of greater numbers may be infinite where those of their distances are not.
        const GREATEST: f64 = 1e150;
        if let Some((_, numbers)) = self.made.iter().find(|(made, _)| made == label) {
            return Some(Arc::clone(numbers));
        }
        let (groups, values) = number_axis(scan, axis, std::slice::from_ref(label))?;
        let numbers = cast(values.first()?, &DataType::Float64).ok()?;
        let numbers = numbers.as_primitive::<Float64Type>();
        if numbers.iter().flatten().any(|number| !number.is_finite() || number.abs() > GREATEST) {
            return None;
        }
        let selection = scan.plan().selection().axes();
        let number =
            |group: usize| if numbers.is_valid(group) { numbers.value(group) } else { f64::NAN };
        let mut axes = vec![None; selection.len()];
        axes[axis] = Some(groups.of_labels(selection[axis].count(), number));
        let made = Arc::new(CellWeights::from_selected(selection, &axes));
        self.made.push((Arc::clone(label), Arc::clone(&made)));
        Some(made)
    }
}

/// Returns a function of labels that is NULL where `base` has a condition on labels that is not true. `None` if a condition is over another
/// axis.
fn where_labels_meet(
    base: &Condition,
    axis: usize,
    label: PhysicalExprRef,
) -> Option<PhysicalExprRef> {
    let mut all: Option<PhysicalExprRef> = None;
    for (of, condition) in &base.labels {
        if *of != axis {
            return None;
        }
        let condition = Arc::clone(condition);
        all = Some(match all {
            Some(before) => Arc::new(BinaryExpr::new(before, Operator::And, condition)),
            None => condition,
        });
    }
    match all {
        Some(when) => case(None, vec![(when, label)], None).ok(),
        None => Some(label),
    }
}

impl PairCall {
    /// Returns the pairs as the function takes them.
    fn pairs(self, pairs: &[Pairs]) -> impl Iterator<Item = Pairs> {
        pairs.iter().map(move |pairs| if self.value_is_x { pairs.swapped() } else { *pairs })
    }

    /// Returns the column of final values.
    pub(super) fn value(self, pairs: &[Pairs]) -> ArrayRef {
        match self.function {
            Some(function) => function.values(self.pairs(pairs)),
            None => Arc::new(UInt64Array::from_iter_values(pairs.iter().map(|pairs| pairs.count))),
        }
    }

    /// Returns the columns of the partial state, in the form of the function of the final stage.
    pub(super) fn state(self, pairs: &[Pairs]) -> Vec<ArrayRef> {
        let pairs: Vec<Pairs> = self.pairs(pairs).collect();
        let function = match self.function {
            Some(PairFunction::Correlation) if self.adds_squares => return squares(&pairs),
            Some(function) => function,
            // It has the state of the other functions of its family.
            None => PairFunction::Slope,
        };
        function.state(&pairs)
    }
}

/// Returns the state of DataFusion's own `corr` by group.
fn squares(pairs: &[Pairs]) -> Vec<ArrayRef> {
    let column = |part: fn(f64, &Pairs) -> f64| -> ArrayRef {
        let parts = pairs.iter().map(|pairs| part(pairs.count as f64, pairs));
        Arc::new(Float64Array::from_iter_values(parts))
    };
    let counts = UInt64Array::from_iter_values(pairs.iter().map(|pairs| pairs.count));
    vec![
        Arc::new(counts),
        column(|n, it| n * it.mean_x),
        column(|n, it| n * it.mean_y),
        column(|n, it| it.xy + n * it.mean_x * it.mean_y),
        column(|n, it| it.xx + n * it.mean_x * it.mean_x),
        column(|n, it| it.yy + n * it.mean_y * it.mean_y),
    ]
}
