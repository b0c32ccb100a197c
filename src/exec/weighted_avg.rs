//! The SQL function `weighted_avg(value, weight)`: the sum of value × weight divided by the sum of the weights,
//! over the rows in which both are not NULL.
//!
//! ```text
//!   value    10   NULL   30          sum      10 × 1 + 30 × 2 = 70
//!   weight    1    5      2          weights  1 + 2           =  3       weighted_avg 23.3…
//! ```
//!
//! `sum(value * weight) / sum(weight)` is the same only without NULLs: it counts the weights of rows without a
//! value. Over dimensions, the function is reduced like the other aggregates; over other rows, the
//! accumulators of this file compute it.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array, UInt64Array};
use arrow::datatypes::{DataType, Field, FieldRef, Float64Type, UInt64Type};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature, Volatility,
};

use super::functions::{SlidingFunction, SlidingRows};
use crate::reduce::Fold;

/// Returns `weighted_avg(value, weight)`: the sum of value × weight divided by the sum of the weights, over the rows in which both
/// are not NULL.
///
/// ```
/// use datafusion::prelude::SessionContext;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> datafusion::error::Result<()> {
/// let ctx = SessionContext::new();
/// ctx.register_udaf(gridfusion::functions::weighted_avg_udaf().as_ref().clone());
/// let found = ctx.sql("SELECT weighted_avg(v, w) FROM (VALUES (10.0, 1), (NULL, 5), (40.0, 2)) AS t (v, w)").await?;
/// assert!(found.to_string().await?.contains("| 30.0 "));
/// # Ok(())
/// # }
/// ```
pub fn weighted_avg_udaf() -> Arc<AggregateUDF> {
    static FUNCTION: LazyLock<Arc<AggregateUDF>> =
        LazyLock::new(|| Arc::new(AggregateUDF::from(WeightedAvg::new())));
    Arc::clone(&FUNCTION)
}

/// The definition of the function.
#[derive(Debug, PartialEq, Eq, Hash)]
struct WeightedAvg {
    signature: Signature,
}

impl WeightedAvg {
    fn new() -> Self {
        let arguments = vec![DataType::Float64, DataType::Float64];
        Self { signature: Signature::exact(arguments, Volatility::Immutable) }
    }
}

impl AggregateUDFImpl for WeightedAvg {
    fn name(&self) -> &str {
        "weighted_avg"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(OneGroup::default()))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let field = |name: &str, data_type: DataType| -> FieldRef {
            Arc::new(Field::new(format_state_name(args.name, name), data_type, true))
        };
        Ok(vec![
            field("count", DataType::UInt64),
            field("sum", DataType::Float64),
            field("weights", DataType::Float64),
        ])
    }

    fn create_sliding_accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(SlidingRows::new(FrameFunction)))
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs<'_>) -> bool {
        true
    }

    fn create_groups_accumulator(
        &self,
        _: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(Groups::default()))
    }
}

/// The state of a group.
#[derive(Debug, Clone, Copy, Default)]
struct GroupSums {
    /// The rows in which neither the value nor the weight is NULL.
    count: u64,
    /// The sum of value × weight of these rows.
    sum: f64,
    /// The sum of the weights of these rows.
    weights: f64,
}

impl GroupSums {
    fn add(&mut self, value: f64, weight: f64) {
        self.merge(Self { count: 1, sum: value * weight, weights: weight });
    }

    fn merge(&mut self, other: Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.weights += other.weights;
    }

    fn average(self) -> Option<f64> {
        let average = self.sum / self.weights;
        // NaN without a sign, as of other aggregates.
        (self.count > 0).then_some(if average.is_nan() { f64::NAN } else { average })
    }
}

/// Returns the rows of two arguments in which both are not NULL.
fn pairs(values: &[ArrayRef]) -> impl Iterator<Item = (usize, f64, f64)> {
    let pairs = values[0].as_primitive::<Float64Type>().iter();
    let pairs = pairs.zip(values[1].as_primitive::<Float64Type>());
    pairs.enumerate().filter_map(|(row, (value, weight))| Some((row, value?, weight?)))
}

/// Returns states as columns.
fn columns(states: &[GroupSums]) -> Vec<ArrayRef> {
    let column = |part: fn(&GroupSums) -> f64| -> ArrayRef {
        Arc::new(Float64Array::from_iter_values(states.iter().map(part)))
    };
    let counts = UInt64Array::from_iter_values(states.iter().map(|state| state.count));
    vec![Arc::new(counts), column(|state| state.sum), column(|state| state.weights)]
}

/// Returns the states in columns. The state of a group without rows may be NULL.
fn states(columns: &[ArrayRef]) -> impl Iterator<Item = GroupSums> {
    let counts = columns[0].as_primitive::<UInt64Type>().iter();
    let numbers = |at: usize| columns[at].as_primitive::<Float64Type>().iter();
    counts.zip(numbers(1)).zip(numbers(2)).map(|((count, sum), weights)| GroupSums {
        count: count.unwrap_or_default(),
        sum: sum.unwrap_or_default(),
        weights: weights.unwrap_or_default(),
    })
}

/// The function of a frame that moves.
struct FrameFunction;

impl Fold for FrameFunction {
    type Item = GroupSums;
    const IDENTITY: GroupSums = GroupSums { count: 0, sum: 0.0, weights: 0.0 };

    fn combine(mut earlier: GroupSums, later: GroupSums) -> GroupSums {
        earlier.merge(later);
        earlier
    }
}

impl SlidingFunction for FrameFunction {
    type Fold = Self;

    fn cells(&self, arguments: &[ArrayRef]) -> Result<Vec<GroupSums>> {
        let mut cells = vec![Self::IDENTITY; arguments[0].len()];
        pairs(arguments).for_each(|(row, value, weight)| cells[row].add(value, weight));
        Ok(cells)
    }

    fn value(&self, aggregate: GroupSums) -> Result<ScalarValue> {
        Ok(ScalarValue::Float64(aggregate.average()))
    }
}

/// The accumulator of a query without keys, and of frames that only grow.
#[derive(Debug, Default)]
struct OneGroup(GroupSums);

impl Accumulator for OneGroup {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        pairs(values).for_each(|(_, value, weight)| self.0.add(value, weight));
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Float64(self.0.average()))
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let GroupSums { count, sum, weights } = self.0;
        Ok(vec![ScalarValue::from(count), ScalarValue::from(sum), ScalarValue::from(weights)])
    }

    fn merge_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        states(columns).for_each(|state| self.0.merge(state));
        Ok(())
    }
}

/// The accumulator of a query with keys.
#[derive(Debug, Default)]
struct Groups {
    states: Vec<GroupSums>,
}

impl GroupsAccumulator for Groups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        filter: Option<&BooleanArray>,
        groups: usize,
    ) -> Result<()> {
        self.states.resize(groups, GroupSums::default());
        let passes = |row| filter.is_none_or(|it| it.is_valid(row) && it.value(row));
        for (row, value, weight) in pairs(values).filter(|(row, ..)| passes(*row)) {
            self.states[group_indices[row]].add(value, weight);
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let states = emit_to.take_needed(&mut self.states);
        Ok(Arc::new(states.into_iter().map(GroupSums::average).collect::<Float64Array>()))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(columns(&emit_to.take_needed(&mut self.states)))
    }

    fn merge_batch(
        &mut self,
        columns: &[ArrayRef],
        group_indices: &[usize],
        groups: usize,
    ) -> Result<()> {
        self.states.resize(groups, GroupSums::default());
        let states = states(columns).zip(group_indices);
        states.for_each(|(state, group)| self.states[*group].merge(state));
        Ok(())
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let rows = values[0].len();
        let mut groups = Self::default();
        let each: Vec<usize> = (0..rows).collect();
        groups.update_batch(values, &each, filter, rows)?;
        Ok(columns(&groups.states))
    }

    fn size(&self) -> usize {
        self.states.capacity() * size_of::<GroupSums>()
    }
}
