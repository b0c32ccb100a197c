//! [`Contraction`]: weighs the statistics of fine groups, and adds them up to those of the query's groups.

use std::cell::OnceCell;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array};
use datafusion::common::internal_err;
use datafusion::error::Result;

use super::call::Call;
use super::dense::{DenseCall, Input, Source};
use super::linear::{Linear, Term};
use super::refinement::{Refinement, WeighedAxis};
use crate::reduce::{Coarser, GroupStats, GroupTable, WeightedStates};

/// The statistics of all members over a table of fine groups, and that table.
pub(super) struct Contraction<'a> {
    refinement: &'a Refinement,
    fine: &'a GroupTable,
    coarse: &'a GroupTable,
    /// The number of groups of the query.
    groups: usize,
    /// The rows of each fine group; empty if no call needs them.
    rows: Vec<u64>,
    /// The statistics of each member.
    stats: Vec<GroupStats>,
    /// The place of the query's group, for each fine group; computed for the first call that needs it.
    places: OnceCell<Vec<usize>>,
}

impl<'a> Contraction<'a> {
    pub(super) fn new(
        refinement: &'a Refinement,
        fine: &'a GroupTable,
        coarse: &'a GroupTable,
        rows: Vec<u64>,
        stats: Vec<GroupStats>,
    ) -> Self {
        Self {
            refinement,
            fine,
            coarse,
            groups: coarse.len(),
            rows,
            stats,
            places: OnceCell::new(),
        }
    }

    /// Returns the columns of a call for the groups of the query: its value if `whole`, else its state.
    pub(super) fn columns(&self, call: &DenseCall, whole: bool) -> Result<Vec<ArrayRef>> {
        match &call.input {
            Input::Linear(linear) => {
                let mut stats = self.linear(linear, call.call);
                match whole {
                    true => Ok(vec![call.call.value(&mut stats, &[], true)?]),
                    false => call.call.state(&mut stats, &[]),
                }
            }
            Input::Rows => self.added_up(call, None, whole),
            Input::Member(member) => self.added_up(call, Some(*member), whole),
            Input::Labels(_) => internal_err!("labels have no statistics"),
        }
    }

    /// Returns the rows of each of the query's groups: the values of `member`, or all rows.
    pub(super) fn rows(&self, member: Option<usize>) -> Vec<u64> {
        let quantity = member.map_or(Source::Rows, Source::Counts);
        let all = Term { constant: 1.0, factors: vec![], masks: vec![], quantity };
        self.weighed(&[all]).into_iter().map(|rows| rows as u64).collect()
    }

    /// Weighs and adds up the terms of a linear argument.
    fn linear(&self, linear: &Linear<Source>, call: Call) -> GroupStats {
        let count = |count: f64| count.max(0.0) as u64;
        let counts = self.weighed(&linear.count).into_iter().map(count).collect();
        let sums = self.weighed(&linear.sum);
        let weights = self.weighed(&linear.weights);
        let mut stats = GroupStats { counts, ..GroupStats::default() };
        match call {
            Call::WideSum => {
                // Counts times small integers, which doubles hold exactly.
                let sums = sums.into_iter().map(|sum| sum as i64);
                stats.wide_sums = Some(Arc::new(Int64Array::from_iter_values(sums)));
            }
            Call::WeightedAverage => stats.weighted = Some(WeightedStates { sums, weights }),
            _ => stats.sums = Some(sums),
        }
        stats
    }

    /// Returns the sum of `terms` for each of the query's groups.
    fn weighed(&self, terms: &[Term<Source>]) -> Vec<f64> {
        let mut sums = vec![0.0; self.groups];
        for term in terms {
            let axes =
                self.refinement.weighed_axes(self.fine, self.coarse, &term.factors, &term.masks);
            let weighted = |member: usize| self.stats[member].weighted.as_ref();
            match term.quantity {
                Source::Rows => add(&axes, &mut sums, term.constant, &self.rows, |it| it as f64),
                Source::Counts(member) => {
                    let counts = &self.stats[member].counts;
                    add(&axes, &mut sums, term.constant, counts, |it| it as f64);
                }
                Source::Sums(member) => {
                    let numbers = self.stats[member].sums.as_deref().unwrap_or_default();
                    add(&axes, &mut sums, term.constant, numbers, |it| it);
                }
                Source::WeightedSums(member) => {
                    let numbers = weighted(member).map_or(&[][..], |it| &it.sums);
                    add(&axes, &mut sums, term.constant, numbers, |it| it);
                }
                Source::Weights(member) => {
                    let numbers = weighted(member).map_or(&[][..], |it| &it.weights);
                    add(&axes, &mut sums, term.constant, numbers, |it| it);
                }
            }
        }
        sums
    }

    /// Returns the columns of a call without weights.
    fn added_up(
        &self,
        call: &DenseCall,
        member: Option<usize>,
        whole: bool,
    ) -> Result<Vec<ArrayRef>> {
        let places = self.places.get_or_init(|| self.refinement.places(self.fine, self.coarse));
        let counted = self.refinement.counted(self.fine, &call.masks);
        let coarser = Coarser { places, groups: self.groups, counted: &counted };
        if let (Some(first), Some(member)) = (&call.first, member) {
            let cells = self.stats[member].cells.as_ref();
            let cells = cells.map(|cells| cells.coarser(coarser)).transpose()?;
            return first.columns(&GroupStats { cells, ..GroupStats::default() }, whole);
        }
        let (mut stats, rows) = match member {
            Some(member) => (coarser.stats(&self.stats[member], call.call.requested())?, vec![]),
            None => (GroupStats::default(), coarser.counts(&self.rows)),
        };
        match whole {
            true => Ok(vec![call.call.value(&mut stats, &rows, true)?]),
            false => call.call.state(&mut stats, &rows),
        }
    }
}

/// Adds the product of `constant`, the functions of `axes` and a statistic of each fine group to the sum of the
/// query's group. `states` are in the order of the table of fine groups.
fn add<S: Copy>(
    axes: &[WeighedAxis],
    sums: &mut [f64],
    constant: f64,
    states: &[S],
    number: impl Fn(S) -> f64 + Copy,
) {
    add_below(axes, sums, 0, constant, states, number);
}

/// Adds the fine groups of one index of each outer axis; `place` and `product` are those of these indices.
fn add_below<S: Copy>(
    axes: &[WeighedAxis],
    sums: &mut [f64],
    place: usize,
    product: f64,
    states: &[S],
    number: impl Fn(S) -> f64 + Copy,
) {
    let Some(first) = states.first() else { return };
    match axes {
        [] => sums[place] += product * number(*first),
        [inner] if inner.is_in_one_group => {
            // Independent sums, so that additions need not wait for each other.
            let mut lanes = [0.0; 4];
            for (at, (state, weight)) in states.iter().zip(&inner.products).enumerate() {
                // A group that does not count may be infinite, so it is no product with 0.
                lanes[at % 4] += if weight.is_nan() { 0.0 } else { weight * number(*state) };
            }
            sums[place] += product * lanes.iter().sum::<f64>();
        }
        [inner] => {
            let groups = inner.places.iter().zip(&inner.products);
            for (state, (of_axis, weight)) in states.iter().zip(groups) {
                if !weight.is_nan() {
                    sums[place + of_axis] += product * weight * number(*state);
                }
            }
        }
        [outer, inner @ ..] => {
            let below = states.chunks((states.len() / outer.places.len().max(1)).max(1));
            for (states, (of_axis, weight)) in below.zip(outer.places.iter().zip(&outer.products)) {
                if !weight.is_nan() {
                    add_below(inner, sums, place + of_axis, product * weight, states, number);
                }
            }
        }
    }
}
