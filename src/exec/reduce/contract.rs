//! [`Contraction`]: weighs the statistics of fine groups, and adds them up to those of the query's groups.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array};
use datafusion::error::Result;

use super::call::Call;
use super::dense::{DenseCall, Input, Source};
use super::linear::{Linear, Term};
use super::refinement::{FactorId, Refinement};
use crate::reduce::{Coarser, GroupStats, GroupTable, WeightedStates};

/// The statistics of all members over a table of fine groups, and that table.
pub(super) struct Contraction<'a> {
    refinement: &'a Refinement,
    fine: &'a GroupTable,
    /// The number of groups of the query.
    groups: usize,
    /// The place of the query's group, for each fine group.
    places: Vec<usize>,
    /// The rows of each fine group; empty if no call needs them.
    rows: Vec<u64>,
    /// The statistics of each member.
    stats: Vec<GroupStats>,
    /// The products of functions that were needed so far.
    products: HashMap<(Vec<FactorId>, Vec<FactorId>), Arc<[f64]>>,
}

impl<'a> Contraction<'a> {
    pub(super) fn new(
        refinement: &'a Refinement,
        fine: &'a GroupTable,
        coarse: &GroupTable,
        rows: Vec<u64>,
        stats: Vec<GroupStats>,
    ) -> Self {
        let places = refinement.places(fine, coarse);
        let groups = coarse.len();
        Self { refinement, fine, groups, places, rows, stats, products: HashMap::new() }
    }

    /// Returns the columns of a call for the groups of the query: its value if `whole`, else its state.
    pub(super) fn columns(&mut self, call: &DenseCall, whole: bool) -> Result<Vec<ArrayRef>> {
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
        }
    }

    /// Returns the rows of each of the query's groups: the values of `member`, or all rows.
    pub(super) fn rows(&self, member: Option<usize>) -> Vec<u64> {
        let mut rows = vec![0; self.groups];
        let of_fine = member.map_or(&self.rows, |member| &self.stats[member].counts);
        self.places.iter().zip(of_fine).for_each(|(place, count)| rows[*place] += count);
        rows
    }

    /// Weighs and adds up the terms of a linear argument.
    fn linear(&mut self, linear: &Linear<Source>, call: Call) -> GroupStats {
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
    fn weighed(&mut self, terms: &[Term<Source>]) -> Vec<f64> {
        let mut sums = vec![0.0; self.groups];
        for term in terms {
            let products = self.products(&term.factors, &term.masks);
            let cells = self.places.iter().zip(products.iter());
            let mut add = |place: usize, product: f64, quantity: f64| {
                if !product.is_nan() {
                    sums[place] += term.constant * product * quantity;
                }
            };
            let weighted = |member: usize| self.stats[member].weighted.as_ref();
            let numbers: &[f64] = match term.quantity {
                Source::Rows | Source::Counts(_) => {
                    let counts = match term.quantity {
                        Source::Counts(member) => &self.stats[member].counts,
                        _ => &self.rows,
                    };
                    let cells = cells.zip(counts);
                    cells.for_each(|((place, product), count)| add(*place, *product, *count as f64));
                    continue;
                }
                Source::Sums(member) => self.stats[member].sums.as_deref().unwrap_or_default(),
                Source::WeightedSums(member) => weighted(member).map_or(&[], |it| &it.sums),
                Source::Weights(member) => weighted(member).map_or(&[], |it| &it.weights),
            };
            cells.zip(numbers).for_each(|((place, product), sum)| add(*place, *product, *sum));
        }
        sums
    }

    /// Returns the columns of a call without weights.
    fn added_up(
        &mut self,
        call: &DenseCall,
        member: Option<usize>,
        whole: bool,
    ) -> Result<Vec<ArrayRef>> {
        let counted = self.products(&[], &call.masks);
        let coarser = Coarser { places: &self.places, groups: self.groups, counted: &counted };
        let (mut stats, rows) = match member {
            Some(member) => (coarser.stats(&self.stats[member])?, vec![]),
            None => (GroupStats::default(), coarser.counts(&self.rows)),
        };
        match whole {
            true => Ok(vec![call.call.value(&mut stats, &rows, true)?]),
            false => call.call.state(&mut stats, &rows),
        }
    }

    fn products(&mut self, factors: &[FactorId], masks: &[FactorId]) -> Arc<[f64]> {
        let key = (factors.to_vec(), masks.to_vec());
        let products = || self.refinement.products(self.fine, factors, masks).into();
        Arc::clone(self.products.entry(key).or_insert_with(products))
    }
}
