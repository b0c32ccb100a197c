//! `first_value` and `last_value` with `IGNORE NULLS`: the next value before or behind a gap.

use std::borrow::Cow;
use std::marker::PhantomData;

use arrow::array::{Array, ArrayRef};
use arrow::buffer::NullBuffer;
use arrow::datatypes::DataType;
use datafusion::error::Result;

use super::steps::Steps;
use crate::exec::order_keys::{of_order_keys, order_keys};
use crate::reduce::Fold;

/// The first or the last value that is not NULL. Order keys stand for numbers of all types.
pub(super) struct EdgeValue<F> {
    data_type: DataType,
    fold: PhantomData<F>,
}

impl<F> EdgeValue<F> {
    /// Returns results of `data_type`.
    pub(super) fn new(data_type: &DataType) -> Self {
        Self { data_type: data_type.clone(), fold: PhantomData }
    }
}

impl<F: Fold<Item = Option<i64>> + Send> Steps for EdgeValue<F> {
    type Fold = F;
    const COUNTS: bool = false;

    fn cells<'a>(&self, values: &'a dyn Array) -> Result<Cow<'a, [Option<i64>]>> {
        let keys = order_keys(values, 0)?.into_iter();
        Ok(match values.logical_nulls() {
            None => keys.map(Some).collect(),
            Some(nulls) => {
                keys.zip(&nulls).map(|(key, is_valid)| is_valid.then_some(key)).collect()
            }
        })
    }

    fn results(&self, aggregates: Vec<Option<i64>>, _: &[u32]) -> Result<ArrayRef> {
        let nulls = NullBuffer::from_iter(aggregates.iter().map(Option::is_some));
        let keys: Vec<i64> = aggregates.into_iter().map(Option::unwrap_or_default).collect();
        of_order_keys(&keys, Some(nulls).filter(|nulls| nulls.null_count() > 0), &self.data_type)
    }
}
