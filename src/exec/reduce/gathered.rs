//! [`Gathered`]: aggregates that need all values of a group at once: medians, percentiles, numbers of different values, and modes.
//!
//! DataFusion computes some of them from summaries: approximate quantiles from t-digests, and numbers of different values from hash tables.
//! Updates of a summary per group and batch take far longer than gathering, so summaries are for values that do not fit in memory.
//!
//! Calls with the same argument share the values:
//!
//! ```text
//!   percentile_cont(v, 0.1), percentile_cont(v, 0.9), median(v), count(DISTINCT v)      one copy of v
//! ```

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, ListArray, PrimitiveArray, RecordBatch, make_array,
};
use arrow::buffer::NullBuffer;
use arrow::compute::prep_null_mask_filter;
use arrow::datatypes::{
    DataType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    Schema, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
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

/// A statistic of all values of a group.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Statistic {
    Quantile(Quantile),
    /// A quantile that may be approximate.
    ApproximateQuantile(Quantile),
    DistinctCount,
    Mode,
}

impl Statistic {
    /// Returns the statistic that `call` computes; `None` if it is another one, or if DataFusion refuses the call.
    fn of(call: &Aggregate, schema: &Schema) -> Option<Self> {
        let value = call.args.first()?.data_type(schema).ok()?;
        stored(&value)?;
        match (known_aggregate(call.function.fun())?, call.function.is_distinct()) {
            ("count", true) if call.args.len() == 1 => Some(Self::DistinctCount),
            ("mode", false) => Some(Self::Mode),
            ("approx_median", false) if value.is_floating() => {
                // The digest of rows is of doubles, in which the mean of two large values is finite.
                Some(Self::ApproximateQuantile(Quantile::Fraction(0.5)))
            }
            ("approx_percentile_cont", false) if value.is_floating() && call.args.len() == 2 => {
                fraction(call).map(Self::ApproximateQuantile)
            }
            ("median", false) if value.is_floating() => Some(Self::Quantile(Quantile::Median)),
            ("percentile_cont", false) if value.is_floating() => fraction(call).map(Self::Quantile),
            _ => None,
        }
    }

    /// Whether DataFusion computes the statistic from a summary of the values.
    fn has_summary(self) -> bool {
        matches!(self, Self::DistinctCount | Self::ApproximateQuantile(_))
    }

    /// Returns the quantile; `None` for another statistic.
    fn quantile(&self) -> Option<Quantile> {
        match self {
            Self::Quantile(quantile) | Self::ApproximateQuantile(quantile) => Some(*quantile),
            Self::DistinctCount | Self::Mode => None,
        }
    }
}

/// Returns the quantile of a call whose second argument is its fraction.
fn fraction(call: &Aggregate) -> Option<Quantile> {
    let fraction = match call.args.get(1)?.downcast_ref::<Literal>()?.value() {
        ScalarValue::Float32(Some(fraction)) => f64::from(*fraction),
        ScalarValue::Float64(Some(fraction)) => *fraction,
        _ => return None,
    };
    let falls = call.function.order_bys().first().is_some_and(|it| it.options.descending);
    let fraction_of_least = if falls { 1.0 - fraction } else { fraction };
    (0.0..=1.0).contains(&fraction).then_some(Quantile::Fraction(fraction_of_least))
}

/// Returns the type of numbers as which Arrow stores values of a type; `None` if they are no numbers of at most 64 bits.
fn stored(data_type: &DataType) -> Option<DataType> {
    Some(match data_type {
        number if number.is_integer() || number.is_floating() => number.clone(),
        DataType::Date32 | DataType::Time32(_) => DataType::Int32,
        DataType::Date64
        | DataType::Time64(_)
        | DataType::Timestamp(..)
        | DataType::Duration(_) => DataType::Int64,
        _ => return None,
    })
}

/// The values of one argument, and the statistics of them.
pub(super) struct Gathered {
    arg: PhysicalExprRef,
    filter: Option<PhysicalExprRef>,
    /// The numbers of the calls, and their statistics.
    calls: Vec<(usize, Statistic)>,
    values: Box<dyn Values>,
}

impl Gathered {
    /// Returns the arguments of `calls` that are gathered, over batches of `schema`, for at most so many groups. `summaries` includes
    /// statistics that DataFusion computes from summaries.
    pub(super) fn of_calls(
        calls: &[Aggregate],
        schema: &Schema,
        groups: usize,
        summaries: bool,
    ) -> Result<Vec<Self>> {
        let mut all: Vec<Self> = Vec::new();
        if groups > GatheredValues::<Float64Type>::MOST_GROUPS {
            return Ok(all);
        }
        for (at, call) in calls.iter().enumerate() {
            let Some(statistic) = Statistic::of(call, schema) else { continue };
            if statistic.has_summary() && !summaries {
                continue;
            }
            let same = |it: &&mut Self| it.arg.eq(&call.args[0]) && it.filter == call.filter;
            if let Some(of_arg) = all.iter_mut().find(same) {
                of_arg.calls.push((at, statistic));
                continue;
            }
            let Some(values) = values_of(call.args[0].data_type(schema)?) else { continue };
            let (arg, filter) = (Arc::clone(&call.args[0]), call.filter.clone());
            all.push(Self { arg, filter, calls: vec![(at, statistic)], values });
        }
        Ok(all)
    }

    /// Whether DataFusion computes a statistic from a summary of the values.
    pub(super) fn has_summaries(&self) -> bool {
        self.calls.iter().any(|(_, statistic)| statistic.has_summary())
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
        self.values.push(&self.arg.evaluate(batch)?.into_array(rows)?, groups, mask.as_ref())
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
        let (calls, statistics): (Vec<_>, Vec<_>) = self.calls.into_iter().unzip();
        let columns = match last {
            true => self.values.statistics(groups, &statistics)?,
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

/// Values of some type.
trait Values: Send {
    fn push(
        &mut self,
        values: &ArrayRef,
        groups: &[usize],
        mask: Option<&NullBuffer>,
    ) -> Result<()>;

    fn bytes_per_value(&self) -> usize;

    fn bytes(&self) -> usize;

    fn statistics(self: Box<Self>, groups: usize, wanted: &[Statistic]) -> Result<Vec<ArrayRef>>;

    fn lists(self: Box<Self>, groups: usize) -> Result<ArrayRef>;
}

/// Values of the type `shown`, which are stored as those of `T`.
struct StoredValues<T: TotalOrder> {
    values: GatheredValues<T>,
    shown: DataType,
}

/// Returns values of a type, as yet none; `None` if they are not [`stored`] as numbers.
fn values_of(shown: DataType) -> Option<Box<dyn Values>> {
    fn of<T: TotalOrder>(shown: DataType) -> Box<dyn Values> {
        Box::new(StoredValues::<T> { values: GatheredValues::default(), shown })
    }
    Some(match stored(&shown)? {
        DataType::Float16 => of::<Float16Type>(shown),
        DataType::Float32 => of::<Float32Type>(shown),
        DataType::Float64 => of::<Float64Type>(shown),
        DataType::Int8 => of::<Int8Type>(shown),
        DataType::Int16 => of::<Int16Type>(shown),
        DataType::Int32 => of::<Int32Type>(shown),
        DataType::Int64 => of::<Int64Type>(shown),
        DataType::UInt8 => of::<UInt8Type>(shown),
        DataType::UInt16 => of::<UInt16Type>(shown),
        DataType::UInt32 => of::<UInt32Type>(shown),
        DataType::UInt64 => of::<UInt64Type>(shown),
        _ => return None,
    })
}

/// Returns an array as one of another type that is stored in the same way.
fn as_type(array: &dyn Array, data_type: &DataType) -> Result<ArrayRef> {
    Ok(make_array(array.to_data().into_builder().data_type(data_type.clone()).build()?))
}

impl<T: TotalOrder> StoredValues<T> {
    fn column(&self, values: PrimitiveArray<T>) -> Result<ArrayRef> {
        match self.shown == T::DATA_TYPE {
            true => Ok(Arc::new(values)),
            false => as_type(&values, &self.shown),
        }
    }
}

impl<T: TotalOrder> Values for StoredValues<T> {
    fn push(
        &mut self,
        values: &ArrayRef,
        groups: &[usize],
        mask: Option<&NullBuffer>,
    ) -> Result<()> {
        match self.shown == T::DATA_TYPE {
            true => self.values.push(values.as_primitive(), groups, mask),
            false => {
                let values = as_type(values, &T::DATA_TYPE)?;
                self.values.push(values.as_primitive(), groups, mask);
            }
        }
        Ok(())
    }

    fn bytes_per_value(&self) -> usize {
        GatheredValues::<T>::BYTES_PER_VALUE
    }

    fn bytes(&self) -> usize {
        self.values.bytes()
    }

    fn statistics(
        mut self: Box<Self>,
        groups: usize,
        wanted: &[Statistic],
    ) -> Result<Vec<ArrayRef>> {
        let mut grouped = std::mem::take(&mut self.values).grouped(groups);
        let quantiles: Vec<Quantile> = wanted.iter().filter_map(Statistic::quantile).collect();
        let mut quantiles = match quantiles.is_empty() {
            true => vec![],
            false => grouped.quantiles(&quantiles),
        }
        .into_iter();
        if wanted.iter().any(|statistic| statistic.quantile().is_none()) {
            grouped.sort();
        }
        let column = |statistic: &Statistic| match statistic {
            Statistic::Quantile(_) | Statistic::ApproximateQuantile(_) => match quantiles.next() {
                Some(column) => self.column(column),
                None => internal_err!("a quantile is missing"),
            },
            Statistic::DistinctCount => Ok(Arc::new(grouped.distinct_counts()) as ArrayRef),
            Statistic::Mode => self.column(grouped.modes()),
        };
        wanted.iter().map(column).collect()
    }

    fn lists(self: Box<Self>, groups: usize) -> Result<ArrayRef> {
        let Self { values, shown } = *self;
        let lists = values.grouped(groups).lists()?;
        if shown == T::DATA_TYPE {
            return Ok(Arc::new(lists));
        }
        let (field, offsets, values, nulls) = lists.into_parts();
        let field = Arc::new(field.as_ref().clone().with_data_type(shown.clone()));
        Ok(Arc::new(ListArray::try_new(field, offsets, as_type(&values, &shown)?, nulls)?))
    }
}
