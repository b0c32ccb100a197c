//! `min` and `max` of floats. NaN of either sign is greater than all numbers, as `ORDER BY` and other databases have it.
//!
//! The states are [order keys](crate::exec::order_keys). No number has the key that means "no value yet", so groups need no
//! flags.

use std::fmt;
use std::marker::PhantomData;

use arrow::array::{ArrayRef, BooleanArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::DataType;
use datafusion::common::{ScalarValue, internal_err};
use datafusion::error::Result;
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};

use crate::exec::order_keys::{of_order_keys, value_keys};
use crate::reduce::Fold;

/// Returns the values of keys; NULL where there was no value.
fn values<F: Fold<Item = i64>>(keys: &[i64], data_type: &DataType) -> Result<ArrayRef> {
    let nulls = NullBuffer::from_iter(keys.iter().map(|key| *key != F::IDENTITY));
    of_order_keys(keys, Some(nulls).filter(|nulls| nulls.null_count() > 0), data_type)
}

/// Returns the only argument.
fn argument(arguments: &[ArrayRef]) -> Result<&ArrayRef> {
    match arguments {
        [argument] => Ok(argument),
        _ => internal_err!("a least or greatest value has one argument"),
    }
}

/// The accumulator of a query without keys.
pub(super) struct ExtremeOfAll<F> {
    key: i64,
    data_type: DataType,
    fold: PhantomData<F>,
}

impl<F: Fold<Item = i64>> ExtremeOfAll<F> {
    pub(super) fn new(data_type: &DataType) -> Self {
        Self { key: F::IDENTITY, data_type: data_type.clone(), fold: PhantomData }
    }
}

impl<F> fmt::Debug for ExtremeOfAll<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExtremeOfAll").field("key", &self.key).finish_non_exhaustive()
    }
}

impl<F: Fold<Item = i64> + Send + Sync + 'static> Accumulator for ExtremeOfAll<F> {
    fn update_batch(&mut self, arguments: &[ArrayRef]) -> Result<()> {
        let keys = value_keys(argument(arguments)?.as_ref(), F::IDENTITY)?;
        self.key = keys.into_iter().fold(self.key, F::combine);
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        ScalarValue::try_from_array(&values::<F>(&[self.key], &self.data_type)?, 0)
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }
}

/// The accumulator of a query with keys.
pub(super) struct ExtremeOfGroups<F> {
    keys: Vec<i64>,
    data_type: DataType,
    fold: PhantomData<F>,
}

impl<F: Fold<Item = i64>> ExtremeOfGroups<F> {
    pub(super) fn new(data_type: &DataType) -> Self {
        Self { keys: vec![], data_type: data_type.clone(), fold: PhantomData }
    }

    /// Returns a key per row; that of no value for rows that do not pass.
    fn row_keys(arguments: &[ArrayRef], passes: Option<&BooleanArray>) -> Result<Vec<i64>> {
        let mut keys = value_keys(argument(arguments)?.as_ref(), F::IDENTITY)?;
        for (key, passes) in keys.iter_mut().zip(passes.into_iter().flatten()) {
            if passes != Some(true) {
                *key = F::IDENTITY;
            }
        }
        Ok(keys)
    }
}

impl<F: Fold<Item = i64> + Send + 'static> GroupsAccumulator for ExtremeOfGroups<F> {
    fn update_batch(
        &mut self,
        arguments: &[ArrayRef],
        group_indices: &[usize],
        passes: Option<&BooleanArray>,
        groups: usize,
    ) -> Result<()> {
        self.keys.resize(groups, F::IDENTITY);
        for (key, group) in Self::row_keys(arguments, passes)?.into_iter().zip(group_indices) {
            let of_group = &mut self.keys[*group];
            *of_group = F::combine(*of_group, key);
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        values::<F>(&emit_to.take_needed(&mut self.keys), &self.data_type)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.evaluate(emit_to)?])
    }

    fn merge_batch(
        &mut self,
        states: &[ArrayRef],
        group_indices: &[usize],
        groups: usize,
    ) -> Result<()> {
        self.update_batch(states, group_indices, None, groups)
    }

    fn convert_to_state(
        &self,
        arguments: &[ArrayRef],
        passes: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        Ok(vec![values::<F>(&Self::row_keys(arguments, passes)?, &self.data_type)?])
    }

    fn size(&self) -> usize {
        self.keys.capacity() * size_of::<i64>()
    }
}
