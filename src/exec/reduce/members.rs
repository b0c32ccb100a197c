//! [`Members`]: the members that the calls of a query need, each once.

use std::sync::Arc;

use super::call::Call;
use super::condition::Values;
use super::dense::{DenseCall, DenseMember, Input, Source};
use super::factors::FactorId;
use super::linear::{Linear, Quantity, Term};
use super::pair::ParsedPair;
use super::parsed_call::ParsedCall;
use super::refinement::Refinement;
use crate::exec::GridScanExec;
use crate::reduce::{CellWeights, RequestedMember, RequestedStats, ValueRange};

/// The members that calls need so far.
pub(super) struct Members<'a> {
    pub(super) list: Vec<DenseMember>,
    /// The variables that members test besides their own, with the values that pass.
    pub(super) tests: Vec<(usize, ValueRange)>,
    /// The weights of cells that were made so far, with the functions that they multiply.
    weights: Vec<(Vec<FactorId>, Arc<CellWeights>)>,
    refinement: Option<&'a Refinement>,
    scan: &'a GridScanExec,
}

impl<'a> Members<'a> {
    /// No members yet, whose weights are those of `refinement`.
    pub(super) fn new(refinement: Option<&'a Refinement>, scan: &'a GridScanExec) -> Self {
        Self { list: vec![], tests: vec![], weights: vec![], refinement, scan }
    }

    /// Returns the number of a member with these statistics of the values that count; an existing one gets those that it lacks.
    pub(super) fn add(&mut self, values: &Values, member: RequestedMember) -> usize {
        let (value, range) = (values.variable, values.range);
        let tests = values.others.each().map(|test| self.test(*test)).collect();
        let member = RequestedMember { range, tests, ..member };
        let are_one = |old: &Option<Arc<CellWeights>>, new: &Option<Arc<CellWeights>>| {
            old.as_ref().zip(new.as_ref()).is_none_or(|(old, new)| Arc::ptr_eq(old, new))
        };
        let serves = |existing: &DenseMember| {
            let old = &existing.member;
            let both_sums = old.requested.or(member.requested);
            existing.value == value
                && old.range == member.range
                && old.tests == member.tests
                && !(both_sums.sum && both_sums.wide_sum)
                && are_one(&old.weights, &member.weights)
                && are_one(&old.numbers, &member.numbers)
        };
        match self.list.iter_mut().enumerate().find(|(_, existing)| serves(existing)) {
            Some((at, DenseMember { member: old, .. })) => {
                old.requested = old.requested.or(member.requested);
                old.weights = old.weights.take().or(member.weights);
                old.numbers = old.numbers.take().or(member.numbers);
                old.cells = old.cells.or(member.cells);
                at
            }
            None => {
                self.list.push(DenseMember { value, member });
                self.list.len() - 1
            }
        }
    }

    /// Returns the number of a test.
    fn test(&mut self, test: (usize, ValueRange)) -> usize {
        self.tests.iter().position(|existing| *existing == test).unwrap_or_else(|| {
            self.tests.push(test);
            self.tests.len() - 1
        })
    }

    /// Chooses the members of a call. `None` if cells without a value would need weights of their own.
    pub(super) fn choose(&mut self, parsed: ParsedCall) -> Option<DenseCall> {
        Some(match parsed {
            ParsedCall::Plain { call, quantity, masks } => {
                let input = match quantity {
                    Quantity::Rows => Input::Rows,
                    Quantity::Count(values) | Quantity::Sum(values) => {
                        let requested = call.requested();
                        let member = RequestedMember { requested, ..RequestedMember::default() };
                        Input::Member(self.add(&values, member))
                    }
                };
                DenseCall { call, input, masks, first: None }
            }
            ParsedCall::Pair(ParsedPair { call, values, numbers, .. }) => {
                let call = Call::Pairs(call);
                let (requested, numbers) = (call.requested(), Some(numbers));
                let member = RequestedMember { requested, numbers, ..RequestedMember::default() };
                let input = Input::Member(self.add(&values, member));
                DenseCall { call, input, masks: vec![], first: None }
            }
            ParsedCall::Linear { call, linear } => {
                let Linear { sum, count, weights } = linear;
                let mut chosen = |terms: Vec<Term>| -> Option<Vec<Term<Source>>> {
                    terms.into_iter().map(|term| self.source(term)).collect()
                };
                let (sum, count, weights) = match call {
                    Call::Count => (vec![], chosen(count)?, vec![]),
                    _ => (chosen(sum)?, chosen(count)?, chosen(weights)?),
                };
                let input = Input::Linear(Linear { sum, count, weights });
                DenseCall { call, input, masks: vec![], first: None }
            }
            ParsedCall::Labels(labels) => {
                let input = Input::Labels(Arc::new(labels));
                DenseCall { call: Call::OfLabels, input, masks: vec![], first: None }
            }
            ParsedCall::First { first, values, masks } => {
                let cells = first.requested();
                let member = RequestedMember { cells, ..RequestedMember::default() };
                let (call, input) = (Call::FirstCell, Input::Member(self.add(&values, member)));
                DenseCall { call, input, masks, first: Some(Arc::new(first)) }
            }
        })
    }

    /// Returns the weights of cells of a term with these functions; `None` if it weighs groups only.
    fn cell_weights(&mut self, factors: &[FactorId]) -> Option<Arc<CellWeights>> {
        let refinement = self.refinement?;
        let of_cells = refinement.of_cells(factors);
        if of_cells.is_empty() {
            return None;
        }
        if let Some((_, made)) = self.weights.iter().find(|(functions, _)| *functions == of_cells) {
            return Some(Arc::clone(made));
        }
        let made = Arc::new(refinement.weights(&of_cells, self.scan));
        self.weights.push((of_cells, Arc::clone(&made)));
        Some(made)
    }

    /// Chooses the member of a term.
    fn source(&mut self, term: Term) -> Option<Term<Source>> {
        let Term { constant, factors, masks, quantity } = term;
        let weights = self.cell_weights(&factors);
        let is_weighted = weights.is_some();
        let quantity = match quantity {
            Quantity::Rows if is_weighted => return None,
            Quantity::Rows => Source::Rows,
            Quantity::Count(values) => {
                let member = RequestedMember { weights, ..RequestedMember::default() };
                let member = self.add(&values, member);
                if is_weighted { Source::Weights(member) } else { Source::Counts(member) }
            }
            Quantity::Sum(values) => {
                let requested = RequestedStats { sum: !is_weighted, ..RequestedStats::default() };
                let member = RequestedMember { requested, weights, ..RequestedMember::default() };
                let member = self.add(&values, member);
                if is_weighted { Source::WeightedSums(member) } else { Source::Sums(member) }
            }
        };
        Some(Term { constant, factors, masks, quantity })
    }
}
