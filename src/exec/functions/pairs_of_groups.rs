//! [`PairsOfGroups`]: `corr`, `covar` and `regr_…` by group.
//!
//! DataFusion's `corr` by group adds up squares, which lose the digits of a small spread around a large mean. The other functions have an
//! accumulator per group there, each of which is called for its rows.

use arrow::array::{ArrayRef, AsArray, BooleanArray, Float64Array};
use arrow::datatypes::{Float64Type, UInt64Type};
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};

use super::pairs::PairFunction;
use crate::reduce::{PairSums, Pairs};

/// The pairs of all groups, for one function.
pub(super) struct PairsOfGroups {
    function: PairFunction,
    sums: Vec<PairSums>,
}

impl PairsOfGroups {
    pub(super) fn new(function: PairFunction) -> Self {
        Self { function, sums: vec![] }
    }

    /// Returns the pairs of the rows; none for rows that do not pass.
    fn rows(&self, arguments: &[ArrayRef], passes: Option<&BooleanArray>) -> Result<Vec<Pairs>> {
        let mut rows = self.function.rows(arguments)?;
        for (pairs, passes) in rows.iter_mut().zip(passes.into_iter().flatten()) {
            if passes != Some(true) {
                *pairs = Pairs::NONE;
            }
        }
        Ok(rows)
    }

    fn add(&mut self, pairs: &[Pairs], group_indices: &[usize], groups: usize) {
        self.sums.resize(groups, PairSums::default());
        for (pairs, group) in pairs.iter().zip(group_indices) {
            self.sums[*group].add(pairs);
        }
    }

    fn take(&mut self, emit_to: EmitTo) -> Vec<Pairs> {
        emit_to.take_needed(&mut self.sums).iter().map(PairSums::pairs).collect()
    }
}

impl GroupsAccumulator for PairsOfGroups {
    fn update_batch(
        &mut self,
        arguments: &[ArrayRef],
        group_indices: &[usize],
        passes: Option<&BooleanArray>,
        groups: usize,
    ) -> Result<()> {
        let rows = self.rows(arguments, passes)?;
        self.add(&rows, group_indices, groups);
        Ok(())
    }

    fn merge_batch(
        &mut self,
        states: &[ArrayRef],
        group_indices: &[usize],
        groups: usize,
    ) -> Result<()> {
        let pairs = self.function.pairs_of_state(states)?;
        self.add(&pairs, group_indices, groups);
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        Ok(self.function.values(self.take(emit_to).into_iter()))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(self.function.state(&self.take(emit_to)))
    }

    fn convert_to_state(
        &self,
        arguments: &[ArrayRef],
        passes: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        Ok(self.function.state(&self.rows(arguments, passes)?))
    }

    fn size(&self) -> usize {
        self.sums.capacity() * size_of::<PairSums>()
    }
}

/// Returns the columns of a state: counts, then numbers.
fn numbers(states: &[ArrayRef]) -> Result<Vec<&Float64Array>> {
    let numbers = states.iter().map(|state| state.as_primitive_opt::<Float64Type>());
    match numbers.collect::<Option<_>>() {
        Some(numbers) => Ok(numbers),
        None => internal_err!("a state of pairs has other columns than numbers"),
    }
}

impl PairFunction {
    /// Returns pairs from columns of a state, which are those of [`Self::state`].
    fn pairs_of_state(self, states: &[ArrayRef]) -> Result<Vec<Pairs>> {
        let Some((counts, others)) = states.split_first() else {
            return internal_err!("a state of pairs without columns");
        };
        let (Some(counts), columns) = (counts.as_primitive_opt::<UInt64Type>(), numbers(others)?)
        else {
            return internal_err!("a state of pairs has no counts");
        };
        // The place of each part among the columns.
        let [mean_x, mean_y, xx, yy, xy] = match (self, columns.len()) {
            (Self::Correlation, 5) => [Some(0), Some(2), Some(1), Some(3), Some(4)],
            (Self::Covariance { .. }, 3) => [Some(0), Some(1), None, None, Some(2)],
            (_, 5) => [Some(0), Some(1), Some(2), Some(3), Some(4)],
            (_, found) => return internal_err!("a state of pairs with {found} columns"),
        };
        let part = |column: Option<usize>, row| column.map_or(0.0, |it| columns[it].value(row));
        let pairs = |row: usize| Pairs {
            count: counts.value(row),
            mean_x: part(mean_x, row),
            mean_y: part(mean_y, row),
            xx: part(xx, row),
            yy: part(yy, row),
            xy: part(xy, row),
        };
        Ok((0..counts.len()).map(pairs).collect())
    }
}
