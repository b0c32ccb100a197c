//! [`LabelCall`]: aggregates of functions of one dimension, from its labels and the sizes of groups.
//!
//! In a box of cells, each label of an axis occurs equally often in a group: as often as the group has indices on the other
//! axes. So an aggregate is computed once per group of its own axis, and shown for all groups of the query:
//!
//! ```text
//!   max(s), sum(s) … GROUP BY t % 3       array over t, s: 200,000 × 100,000
//!
//!     axis s     one group                max 99,999    sum 4,999,950,000      100,000 labels are read
//!     axis t     groups 0, 1, 2           of 66,667, 66,667 and 66,666 indices
//!     answer     per group                max           sum × indices
//! ```
//!
//! | function | partial state | value |
//! |---|---|---|
//! | `min`, `max`, `bool_and`, `bool_or`, `bit_and`, `bit_or`, `approx_distinct` | that of the labels | that of the labels |
//! | those with `DISTINCT`; `avg`, `median`, `mode`, `var_pop`, `stddev_pop` | | that of the labels |
//! | `count`, `sum` | | that of the labels, times their repeats |
//!
//! Where a state is missing, partitions must not share groups. A query that reads no variable has one partition, so it has no
//! such groups.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, UInt64Array, new_empty_array,
};
use arrow::compute::{filter, prep_null_mask_filter, take};
use arrow::datatypes::{DataType, Float64Type, Int64Type, UInt64Type};
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::logical_expr::EmitTo;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;

use super::accumulate::accumulator;
use super::query::Aggregate;
use crate::exec::GridScanExec;
use crate::exec::matching::{Over, known_aggregate, values_of_labels};
use crate::grid::AxisSelection;
use crate::reduce::{AxisGroups, GroupTable};

/// An aggregate of functions of the labels of one axis.
#[derive(Debug, Clone)]
pub(super) struct LabelCall {
    function: Arc<AggregateFunctionExpr>,
    axis: usize,
    /// The expressions that the function aggregates.
    exprs: Vec<PhysicalExprRef>,
    /// Their values for each selected label.
    args: Vec<ArrayRef>,
    /// Whether a `FILTER` keeps each label.
    kept: Option<BooleanArray>,
    /// Whether the value is that of the labels times their repeats.
    multiplies: bool,
}

/// The effect of repeats on an aggregate, if each value is repeated equally often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Repeats {
    /// None, neither on the state nor on the value.
    Ignored,
    /// None on the value.
    IgnoredAtEnd,
    /// The value is multiplied.
    Multiplied,
}

impl Repeats {
    /// Returns the effect on a function; `None` if it is another one, or unknown.
    fn of(function: &AggregateFunctionExpr) -> Option<Self> {
        let name = known_aggregate(function.fun())?;
        if function.is_distinct() {
            let is_known = matches!(name, "count" | "sum" | "avg" | "min" | "max");
            return is_known.then_some(Self::IgnoredAtEnd);
        }
        let has_product = || {
            let multiplied = [DataType::Int64, DataType::UInt64, DataType::Float64];
            multiplied.contains(function.field().data_type())
        };
        match name {
            "min" | "max" | "bool_and" | "bool_or" | "bit_and" | "bit_or" | "approx_distinct" => {
                Some(Self::Ignored)
            }
            "avg" | "median" | "mode" | "var_pop" | "stddev_pop" => Some(Self::IgnoredAtEnd),
            "count" | "sum" if has_product() => Some(Self::Multiplied),
            _ => None,
        }
    }
}

/// The groups of a query, and the cells that they have.
pub(super) struct LabelGroups<'a> {
    pub(super) table: &'a GroupTable,
    /// The groups of each axis, over `selection`.
    pub(super) axes: &'a [AxisGroups],
    pub(super) selection: &'a [AxisSelection],
    pub(super) has_keys: bool,
}

impl LabelCall {
    /// Translates `aggregate` over a scan without a predicate. `None` if an expression is not over one axis alone, fails on a
    /// label, or if repeats matter. `only_states` wants a partial state of fixed size.
    pub(super) fn try_new(
        aggregate: &Aggregate,
        scan: &GridScanExec,
        only_states: bool,
    ) -> Option<Self> {
        let function = &aggregate.function;
        let repeats = Repeats::of(function)?;
        if !aggregate.order_by.is_empty() || (only_states && repeats != Repeats::Ignored) {
            return None;
        }
        // Masks and limits leave out some repeats and not others.
        scan.whole_box()?;
        let exprs: Vec<PhysicalExprRef> =
            aggregate.args.iter().chain(&aggregate.filter).cloned().collect();
        let mut axes = exprs.iter().map(|expr| match Over::new(expr, scan) {
            Over::Axis(axis) => Some(axis),
            _ => None,
        });
        let axis = axes.next()??;
        if axes.any(|other| other != Some(axis)) {
            return None;
        }
        let mut args = values_of_labels(scan, axis, &exprs)?;
        let kept = match &aggregate.filter {
            Some(_) => Some(without_nulls(args.pop()?.as_boolean_opt()?)),
            None => None,
        };
        let (function, multiplies) = (Arc::clone(function), repeats == Repeats::Multiplied);
        Some(Self { function, axis, exprs, args, kept, multiplies })
    }

    /// Returns the functions of labels.
    pub(super) fn functions(&self) -> impl Iterator<Item = &PhysicalExprRef> {
        self.exprs.iter()
    }

    /// Returns the bytes of the arguments, which accumulators may hold.
    pub(super) fn bytes(&self) -> usize {
        self.args.iter().map(|array| array.get_array_memory_size()).sum()
    }

    /// Returns the columns of all groups in the order of their places: final values if `whole`, else states.
    pub(super) fn columns(&self, groups: &LabelGroups<'_>, whole: bool) -> Result<Vec<ArrayRef>> {
        let len = groups.table.len();
        if len == 0 {
            return self.without_groups(whole);
        }
        let is_empty = groups.selection.iter().any(|axis| axis.count() == 0);
        let of_axis = match groups.has_keys {
            true => self.per_group(groups, whole)?,
            false => self.of_all(is_empty, whole)?,
        };
        let numbers = match &groups.axes[self.axis] {
            AxisGroups::One => vec![0; len],
            _ => groups.table.numbers_of(self.axis, 0..len),
        };
        let numbers = UInt64Array::from(numbers);
        let shown = of_axis.iter().map(|column| Ok(take(column, &numbers, None)?));
        let shown: Vec<ArrayRef> = shown.collect::<Result<_>>()?;
        match self.multiplies {
            true => shown.iter().map(|column| multiplied(column, &self.repeats(groups))).collect(),
            false => Ok(shown),
        }
    }

    /// Returns columns without rows.
    fn without_groups(&self, whole: bool) -> Result<Vec<ArrayRef>> {
        if whole {
            return Ok(vec![new_empty_array(self.function.field().data_type())]);
        }
        let states = self.function.state_fields()?.into_iter();
        Ok(states.map(|field| new_empty_array(field.data_type())).collect())
    }

    /// Aggregates all labels, or none, as DataFusion does for queries without keys.
    fn of_all(&self, is_empty: bool, whole: bool) -> Result<Vec<ArrayRef>> {
        let mut accumulator = self.function.create_accumulator()?;
        if !is_empty {
            let kept = |array: &ArrayRef| match &self.kept {
                Some(kept) => Ok(filter(array, kept)?),
                None => Ok(Arc::clone(array)),
            };
            let args = self.args.iter().map(kept).collect::<Result<Vec<_>>>()?;
            accumulator.update_batch(&args)?;
        }
        let columns = match whole {
            true => vec![accumulator.evaluate()?],
            false => accumulator.state()?,
        };
        columns.into_iter().map(|column| column.to_array()).collect()
    }

    /// Aggregates the labels of each group of the axis, of which there is one at least.
    fn per_group(&self, groups: &LabelGroups<'_>, whole: bool) -> Result<Vec<ArrayRef>> {
        let labels = groups.selection[self.axis].count() as usize;
        let of_axis = &groups.axes[self.axis];
        let numbers: Vec<usize> = match of_axis {
            AxisGroups::One => vec![0; labels],
            AxisGroups::Each => (0..labels).collect(),
            AxisGroups::Numbered { numbers, .. } => numbers.iter().map(|it| *it as usize).collect(),
        };
        let mut accumulator = accumulator(&self.function)?;
        let count = of_axis.count(labels as u64) as usize;
        accumulator.update_batch(&self.args, &numbers, self.kept.as_ref(), count)?;
        match whole {
            true => Ok(vec![accumulator.evaluate(EmitTo::All)?]),
            false => accumulator.state(EmitTo::All),
        }
    }

    /// Returns how often each label occurs, per group. Integers wrap, as those of rows do.
    fn repeats(&self, groups: &LabelGroups<'_>) -> Vec<u64> {
        let mut repeats = vec![1_u64; groups.table.len()];
        let others = (0..groups.axes.len()).filter(|axis| *axis != self.axis);
        for axis in others {
            let selected = groups.selection[axis].count();
            match &groups.axes[axis] {
                AxisGroups::Each => {}
                AxisGroups::One => {
                    repeats.iter_mut().for_each(|it| *it = it.wrapping_mul(selected));
                }
                AxisGroups::Numbered { numbers, groups: count } => {
                    let mut indices = vec![0_u64; *count as usize];
                    numbers.iter().for_each(|group| indices[*group as usize] += 1);
                    let of_places = groups.table.numbers_of(axis, 0..repeats.len());
                    for (repeats, group) in repeats.iter_mut().zip(of_places) {
                        *repeats = repeats.wrapping_mul(indices[group as usize]);
                    }
                }
            }
        }
        repeats
    }
}

/// Returns a condition that is false where it was NULL.
fn without_nulls(condition: &BooleanArray) -> BooleanArray {
    match condition.null_count() {
        0 => condition.clone(),
        _ => prep_null_mask_filter(condition),
    }
}

/// Multiplies the value of each group.
fn multiplied(values: &ArrayRef, repeats: &[u64]) -> Result<ArrayRef> {
    let nulls = values.nulls().cloned();
    if let Some(values) = values.as_primitive_opt::<Int64Type>() {
        let pairs = values.values().iter().zip(repeats);
        let all = pairs.map(|(value, repeats)| value.wrapping_mul(*repeats as i64));
        return Ok(Arc::new(Int64Array::new(all.collect(), nulls)));
    }
    if let Some(values) = values.as_primitive_opt::<UInt64Type>() {
        let pairs = values.values().iter().zip(repeats);
        let all = pairs.map(|(value, repeats)| value.wrapping_mul(*repeats));
        return Ok(Arc::new(UInt64Array::new(all.collect(), nulls)));
    }
    if let Some(values) = values.as_primitive_opt::<Float64Type>() {
        let pairs = values.values().iter().zip(repeats);
        let all = pairs.map(|(value, repeats)| value * *repeats as f64);
        return Ok(Arc::new(Float64Array::new(all.collect(), nulls)));
    }
    internal_err!("a product of {}", values.data_type())
}
