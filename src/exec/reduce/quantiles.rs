//! [`Quantiles`]: medians and percentiles of groups, which need all values of a group at once.
//!
//! Calls that differ only in their fraction share the values:
//!
//! ```text
//!   percentile_cont(v, 0.1), percentile_cont(v, 0.9), median(v)      one copy of v
//! ```

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, RecordBatch};
use arrow::buffer::NullBuffer;
use arrow::compute::prep_null_mask_filter;
use arrow::datatypes::{DataType, Float16Type, Float32Type, Float64Type, Schema};
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::Literal;
use datafusion::scalar::ScalarValue;

use super::query::Aggregate;
use crate::exec::matching::known_aggregate;
use crate::reduce::{GatheredValues, Quantile, TotalOrder};

/// Whether the function takes `ORDER BY` only to tell which fractions are low: then the order of rows does not matter.
pub(super) fn is_of_sorted_values(call: &Aggregate) -> bool {
    let name = known_aggregate(call.function.fun());
    name.is_some_and(|name| {
        ["approx_percentile_cont", "approx_percentile_cont_with_weight", "percentile_cont"]
            .contains(&name)
    })
}

/// Returns the quantile that `call` computes; `None` if it is no quantile of floats, or one that DataFusion refuses.
fn quantile(call: &Aggregate, schema: &Schema) -> Option<Quantile> {
    let value = call.args.first()?.data_type(schema).ok()?;
    if !value.is_floating() || call.function.is_distinct() {
        return None;
    }
    match known_aggregate(call.function.fun())? {
        "median" => Some(Quantile::Median),
        "percentile_cont" => {
            let fraction = match call.args.get(1)?.downcast_ref::<Literal>()?.value() {
                ScalarValue::Float32(Some(fraction)) => f64::from(*fraction),
                ScalarValue::Float64(Some(fraction)) => *fraction,
                _ => return None,
            };
            let falls = call.function.order_bys().first().is_some_and(|it| it.options.descending);
            (0.0..=1.0).contains(&fraction).then_some(Quantile::Fraction(if falls {
                1.0 - fraction
            } else {
                fraction
            }))
        }
        _ => None,
    }
}

/// The values of one argument, and the quantiles of them.
pub(super) struct Quantiles {
    arg: PhysicalExprRef,
    filter: Option<PhysicalExprRef>,
    /// The numbers of the calls, and their quantiles.
    calls: Vec<(usize, Quantile)>,
    values: Box<dyn Gathered>,
}

impl Quantiles {
    /// Returns the quantiles among `calls`, over batches of `schema`, for at most so many groups.
    pub(super) fn of_calls(
        calls: &[Aggregate],
        schema: &Schema,
        groups: usize,
    ) -> Result<Vec<Self>> {
        let mut all: Vec<Self> = Vec::new();
        if groups > GatheredValues::<Float64Type>::MOST_GROUPS {
            return Ok(all);
        }
        for (at, call) in calls.iter().enumerate() {
            let Some(quantile) = quantile(call, schema) else { continue };
            let same = |it: &&mut Self| it.arg.eq(&call.args[0]) && it.filter == call.filter;
            if let Some(of_arg) = all.iter_mut().find(same) {
                of_arg.calls.push((at, quantile));
                continue;
            }
            let values: Box<dyn Gathered> = match call.args[0].data_type(schema)? {
                DataType::Float16 => Box::<GatheredValues<Float16Type>>::default(),
                DataType::Float32 => Box::<GatheredValues<Float32Type>>::default(),
                DataType::Float64 => Box::<GatheredValues<Float64Type>>::default(),
                other => return internal_err!("a quantile of {other}"),
            };
            let (arg, filter) = (Arc::clone(&call.args[0]), call.filter.clone());
            all.push(Self { arg, filter, calls: vec![(at, quantile)], values });
        }
        Ok(all)
    }

    /// The numbers of the calls.
    pub(super) fn calls(&self) -> impl Iterator<Item = usize> {
        self.calls.iter().map(|(call, _)| *call)
    }

    /// Adds the rows of `batch`, whose groups are `groups`.
    pub(super) fn push(&mut self, batch: &RecordBatch, groups: &[usize]) -> Result<()> {
        let rows = batch.num_rows();
        let mask = match &self.filter {
            Some(filter) => Some(filter.evaluate(batch)?.into_array(rows)?),
            None => None,
        };
        let mask = mask.as_ref().and_then(|mask| mask.as_boolean_opt()).map(kept);
        self.values.push(&self.arg.evaluate(batch)?.into_array(rows)?, groups, mask.as_ref());
        Ok(())
    }

    /// Returns the memory that a row takes at most, in bytes.
    pub(super) fn bytes_per_row(&self) -> usize {
        self.values.bytes_per_value()
    }

    /// Returns the memory of the values now and when they are grouped, in bytes.
    pub(super) fn size(&self) -> usize {
        self.values.bytes()
    }

    /// Returns the column of each call, by its number: answers if `last` is true, else lists of the values.
    pub(super) fn finish(self, groups: usize, last: bool) -> Result<Vec<(usize, ArrayRef)>> {
        let (calls, quantiles): (Vec<_>, Vec<_>) = self.calls.into_iter().unzip();
        let columns = match last {
            true => self.values.quantiles(groups, &quantiles),
            false => vec![self.values.lists(groups)?; calls.len()],
        };
        Ok(calls.into_iter().zip(columns).collect())
    }
}

/// Returns the rows for which a filter is true.
fn kept(mask: &BooleanArray) -> NullBuffer {
    let mask = if mask.null_count() > 0 { &prep_null_mask_filter(mask) } else { mask };
    NullBuffer::new(mask.values().clone())
}

/// Gathered values of some type.
trait Gathered: Send {
    fn push(&mut self, values: &ArrayRef, groups: &[usize], mask: Option<&NullBuffer>);

    fn bytes_per_value(&self) -> usize;

    fn bytes(&self) -> usize;

    fn quantiles(self: Box<Self>, groups: usize, wanted: &[Quantile]) -> Vec<ArrayRef>;

    fn lists(self: Box<Self>, groups: usize) -> Result<ArrayRef>;
}

impl<T: TotalOrder + ArrowPrimitiveType> Gathered for GatheredValues<T> {
    fn push(&mut self, values: &ArrayRef, groups: &[usize], mask: Option<&NullBuffer>) {
        Self::push(self, values.as_primitive::<T>(), groups, mask);
    }

    fn bytes_per_value(&self) -> usize {
        Self::BYTES_PER_VALUE
    }

    fn bytes(&self) -> usize {
        Self::bytes(self)
    }

    fn quantiles(self: Box<Self>, groups: usize, wanted: &[Quantile]) -> Vec<ArrayRef> {
        let columns = self.grouped(groups).quantiles(wanted);
        columns.into_iter().map(|column| Arc::new(column) as ArrayRef).collect()
    }

    fn lists(self: Box<Self>, groups: usize) -> Result<ArrayRef> {
        Ok(Arc::new(self.grouped(groups).lists()?))
    }
}
