//! Accumulators that return [NaN of one sign](crate::exec::nans).

use std::fmt;

use arrow::array::{ArrayRef, BooleanArray};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};
use half::f16;

use crate::exec::nans::one_nan;

/// An accumulator whose value has no sign of NaN. Its states are those of the wrapped one.
pub(super) struct OneNan(pub(super) Box<dyn Accumulator>);

impl fmt::Debug for OneNan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Accumulator for OneNan {
    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(match self.0.evaluate()? {
            ScalarValue::Float16(Some(value)) if value.is_nan() => {
                ScalarValue::Float16(Some(f16::NAN))
            }
            ScalarValue::Float32(Some(value)) if value.is_nan() => ScalarValue::from(f32::NAN),
            ScalarValue::Float64(Some(value)) if value.is_nan() => ScalarValue::from(f64::NAN),
            value => value,
        })
    }

    fn update_batch(&mut self, arguments: &[ArrayRef]) -> Result<()> {
        self.0.update_batch(arguments)
    }

    fn retract_batch(&mut self, arguments: &[ArrayRef]) -> Result<()> {
        self.0.retract_batch(arguments)
    }

    fn supports_retract_batch(&self) -> bool {
        self.0.supports_retract_batch()
    }

    fn size(&self) -> usize {
        self.0.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.0.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.0.merge_batch(states)
    }
}

/// An accumulator of groups whose values have no sign of NaN. Its states are those of the wrapped one.
pub(super) struct OneNanPerGroup(pub(super) Box<dyn GroupsAccumulator>);

impl GroupsAccumulator for OneNanPerGroup {
    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        self.0.evaluate(emit_to).map(one_nan)
    }

    fn update_batch(
        &mut self,
        arguments: &[ArrayRef],
        group_indices: &[usize],
        passes: Option<&BooleanArray>,
        groups: usize,
    ) -> Result<()> {
        self.0.update_batch(arguments, group_indices, passes, groups)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        self.0.state(emit_to)
    }

    fn merge_batch(
        &mut self,
        states: &[ArrayRef],
        group_indices: &[usize],
        groups: usize,
    ) -> Result<()> {
        self.0.merge_batch(states, group_indices, groups)
    }

    fn convert_to_state(
        &self,
        arguments: &[ArrayRef],
        passes: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        self.0.convert_to_state(arguments, passes)
    }

    fn size(&self) -> usize {
        self.0.size()
    }
}
