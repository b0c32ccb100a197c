//! [`DensePlan`]: the aggregations that the dense kernels support.
//!
//! ```text
//!   SELECT avg(t), avg(t) FILTER (WHERE t > 0), sum(p * w(lat)) … GROUP BY time
//!
//!   variables   t   members   all values          count, sum  ─▶ avg(t)
//!                             values above 0      count, sum  ─▶ avg(t) FILTER …
//!               p   members   all values          count, sum  ─▶ × w(lat) ─▶ sum(p * w(lat))
//! ```
//!
//! All members share one pass over the cells, batch by batch. A member adds and counts the cells that pass its test in
//! one loop. Packed integers are added as stored, and unpacked per group. Conditions on other variables are tests, which
//! leave out cells.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::physical_expr::PhysicalExprRef;

use super::call::Call;
use super::condition::{Condition, Intervals, Values};
use super::factors::{FactorId, Factors};
use super::first_cell::FirstCell;
use super::keys::Keys;
use super::label_call::LabelCall;
use super::linear::{Linear, Quantity, Term, linear, weighted};
use super::pair::{LabelFunctions, ParsedPair};
use super::query::{Aggregate, Query};
use super::refinement::Refinement;
use crate::array::{GridArray, ValueColumn};
use crate::exec::GridScanExec;
use crate::exec::matching::{Over, known_aggregate};
use crate::reduce::{
    CellTest, CellWeights, Reducer, RequestedMember, RequestedStats, ValueRange, reducer_of_forms,
};

/// A plan to compute aggregates with the dense kernels.
#[derive(Debug, Clone)]
pub(super) struct DensePlan {
    /// The aggregates, in the order of the query.
    pub(super) calls: Vec<DenseCall>,
    /// The members, over all variables.
    pub(super) members: Vec<DenseMember>,
    /// The variables of the members, each once.
    pub(super) variables: Vec<usize>,
    /// The variables that members test besides their own, with the values that pass.
    pub(super) tests: Vec<(usize, ValueRange)>,
    /// The member whose values are the rows of the query, if it has a predicate.
    pub(super) rows: Option<usize>,
    /// The groups in which weights and conditions on labels are constant, if the query has any.
    pub(super) refinement: Option<Refinement>,
    /// The functions of dimensions, for `EXPLAIN`.
    pub(super) functions: Vec<PhysicalExprRef>,
}

/// One aggregate of a query.
#[derive(Debug, Clone)]
pub(super) struct DenseCall {
    pub(super) call: Call,
    pub(super) input: Input,
    /// The conditions on labels, for a call that is not linear.
    pub(super) masks: Vec<FactorId>,
    /// The labels of a call whose result is that of a cell.
    pub(super) first: Option<Arc<FirstCell>>,
}

/// The statistics from which a call is computed.
#[derive(Debug, Clone)]
pub(super) enum Input {
    /// The number of rows.
    Rows,
    /// The statistics of a member.
    Member(usize),
    /// Weighed statistics of members.
    Linear(Linear<Source>),
    /// The labels of an axis, without cells.
    Labels(Arc<LabelCall>),
}

/// A statistic of a group, by the number of its member.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Source {
    Rows,
    Counts(usize),
    Sums(usize),
    WeightedSums(usize),
    Weights(usize),
}

/// A member of a variable.
#[derive(Debug, Clone)]
pub(super) struct DenseMember {
    /// The number of the variable in the array.
    pub(super) value: usize,
    pub(super) member: RequestedMember,
}

/// A call as the query has it, before members are chosen.
enum ParsedCall {
    Plain { call: Call, quantity: Quantity, masks: Vec<FactorId> },
    Linear { call: Call, linear: Linear },
    Pair(ParsedPair),
    First { first: FirstCell, values: Values, masks: Vec<FactorId> },
    Labels(LabelCall),
}

impl DensePlan {
    /// Plans `query` with the kernels; `None` if they do not support it. Without `weighs`, weights, arithmetic
    /// and conditions of single aggregates are not supported. `is_whole` allows aggregates that have values and no states.
    pub(super) fn try_new(
        query: &Query,
        scan: &GridScanExec,
        keys: &Keys,
        weighs: bool,
        is_whole: bool,
    ) -> Option<Self> {
        // Cells of a plane for which a condition is not true are in no group.
        let predicate = match &keys.plane {
            Some(plane) => plane.rest.as_ref(),
            None => query.predicate.as_ref(),
        };
        let predicate = match predicate {
            Some(predicate) => Some(Condition::try_new(predicate, scan)?),
            None => None,
        };
        if predicate.as_ref().is_some_and(|it| !it.labels.is_empty() || it.values.is_empty()) {
            return None;
        }
        let rows = predicate.unwrap_or_default().values;
        let mut functions = Functions {
            factors: Factors::default(),
            of_pairs: LabelFunctions::default(),
            labels: Labels::of(query, scan, keys, is_whole),
        };
        let mut parsed = Vec::new();
        for aggregate in &query.aggregates {
            parsed.push(functions.parse(aggregate, &rows, query, scan, weighs)?);
        }
        let factors = functions.factors;
        let has_pairs = parsed.iter().any(|call| matches!(call, ParsedCall::Pair(_)));
        if has_pairs && keys.plane.is_some() {
            return None; // the axes of a plane are one
        }
        let is_linear = |call: &ParsedCall| matches!(call, ParsedCall::Linear { .. });
        let refinement = match factors.is_empty() && !parsed.iter().any(is_linear) {
            true => None,
            // Groups of a plane are not weighed.
            false if keys.plane.is_some() => return None,
            false => Some(Refinement::try_new(query, scan, keys, &factors)?),
        };
        let mut members = Members {
            list: vec![],
            tests: vec![],
            weights: vec![],
            refinement: refinement.as_ref(),
            scan,
        };
        let rows = rows.cells().map(|cells| members.add(&cells, RequestedMember::default()));
        let of_pair = |call: &ParsedCall| match call {
            ParsedCall::Pair(pair) => Some(Arc::clone(&pair.label)),
            _ => None,
        };
        let labels: Vec<PhysicalExprRef> = parsed.iter().filter_map(of_pair).collect();
        let calls: Vec<DenseCall> =
            parsed.into_iter().map(|call| members.choose(call)).collect::<Option<_>>()?;
        let Members { list: members, tests, .. } = members;
        let mut variables: Vec<usize> = Vec::new();
        for member in &members {
            if !variables.contains(&member.value) {
                variables.push(member.value);
            }
        }
        let of_labels = |call: &DenseCall| match &call.input {
            Input::Labels(labels) => labels.functions().cloned().collect(),
            _ => vec![],
        };
        let of_calls = calls.iter().flat_map(of_labels);
        let functions = factors.expressions().cloned().chain(labels).chain(of_calls).collect();
        let plan = Self { calls, members, variables, tests, rows, refinement, functions };
        // Makes tests, and reducers without groups, only to learn whether the kernels support the columns.
        plan.cell_tests(scan.array())?;
        for value in &plan.variables {
            plan.reducer(scan.array(), *value, 0)?;
        }
        Some(plan)
    }

    /// Makes the reducer of a variable; `None` if the kernels do not support it.
    pub(super) fn reducer(
        &self,
        array: &GridArray,
        value: usize,
        groups: usize,
    ) -> Option<Box<dyn Reducer>> {
        let forms: Option<Vec<_>> = array.forms_of(value).map(ValueColumn::as_number).collect();
        reducer_of_forms(&forms?, &self.members_of(value), groups)
    }

    /// Makes the tests; `None` if the kernels do not support one.
    pub(super) fn cell_tests(&self, array: &GridArray) -> Option<Vec<CellTest>> {
        let test = |(variable, range): &(usize, ValueRange)| {
            let forms: Option<Vec<_>> =
                array.forms_of(*variable).map(ValueColumn::as_number).collect();
            CellTest::of_forms(&forms?, range)
        };
        self.tests.iter().map(test).collect()
    }

    /// Returns the variables that are read, each once.
    pub(super) fn read(&self) -> Vec<usize> {
        let mut read = self.variables.clone();
        for (variable, _) in &self.tests {
            if !read.contains(variable) {
                read.push(*variable);
            }
        }
        read
    }

    /// Returns the members of a variable, in the order of the plan.
    fn members_of(&self, value: usize) -> Vec<RequestedMember> {
        let of_value = self.members.iter().filter(|member| member.value == value);
        of_value.map(|member| member.member.clone()).collect()
    }

    /// Whether a call needs the numbers of rows.
    pub(super) fn counts_rows(&self) -> bool {
        let of_rows = |terms: &[Term<Source>]| terms.iter().any(|it| it.quantity == Source::Rows);
        self.calls.iter().any(|call| match &call.input {
            Input::Rows => true,
            Input::Member(_) | Input::Labels(_) => false,
            Input::Linear(Linear { sum, count, weights }) => {
                of_rows(sum) || of_rows(count) || of_rows(weights)
            }
        })
    }

    /// Whether aggregates are computed of labels, and no variable is read.
    pub(super) fn is_of_labels(&self) -> bool {
        let is_of_labels = |call: &DenseCall| matches!(call.input, Input::Labels(_));
        self.variables.is_empty() && self.calls.iter().any(is_of_labels)
    }

    /// Returns the bytes of the states of a group.
    pub(super) fn bytes_per_group(&self) -> u64 {
        let of_member = |member: &DenseMember| 8 + member.member.bytes_per_group();
        let of_labels = |call: &&DenseCall| matches!(call.input, Input::Labels(_));
        let labels = self.calls.iter().filter(of_labels).count() as u64;
        8 + self.members.iter().map(of_member).sum::<u64>() + 8 * labels
    }
}

/// The functions of labels that calls need so far.
struct Functions {
    factors: Factors,
    of_pairs: LabelFunctions,
    labels: Labels,
}

/// Which aggregates of labels a query may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Labels {
    /// None: some cells do not count, or groups are on a plane.
    Nowhere,
    /// Only aggregates with states, because partitions may share groups.
    AsStates,
    /// All, because no variable is read, so that there is one partition.
    Alone,
}

impl Labels {
    fn of(query: &Query, scan: &GridScanExec, keys: &Keys, is_whole: bool) -> Self {
        let has_variable = |expr: &PhysicalExprRef| Over::new(expr, scan) == Over::Variable;
        let mut exprs = query.aggregates.iter().flat_map(Aggregate::expressions);
        let is_ordered = query.aggregates.iter().any(|it| !it.order_by.is_empty());
        match keys.plane.is_some() || query.predicate.is_some() {
            true => Self::Nowhere,
            false if is_whole && !exprs.any(has_variable) => Self::Alone,
            // A share of the plan is no box, and accumulators would need the order of rows.
            false if is_ordered => Self::Nowhere,
            false => Self::AsStates,
        }
    }
}

impl Functions {
    /// Translates an aggregate of `query`; `rows` are the intervals of its predicate.
    fn parse(
        &mut self,
        aggregate: &Aggregate,
        rows: &Intervals,
        query: &Query,
        scan: &GridScanExec,
        weighs: bool,
    ) -> Option<ParsedCall> {
        if self.labels != Labels::Nowhere
            && Call::try_new(aggregate, scan).is_none_or(|(_, value)| value.is_some())
            && let Some(call) = LabelCall::try_new(aggregate, scan, self.labels == Labels::AsStates)
        {
            return Some(ParsedCall::Labels(call));
        }
        let factors = &mut self.factors;
        let function = &aggregate.function;
        if function.is_distinct() || (aggregate.filter.is_some() && !weighs) {
            return None;
        }
        let mut base = match &aggregate.filter {
            Some(filter) => Condition::try_new(filter, scan)?,
            None => Condition::default(),
        };
        base.values = rows.and(&base.values)?;
        let labels = base.labels.iter();
        let mut masks = || -> Vec<FactorId> {
            labels.clone().map(|(axis, expr)| factors.condition(*axis, expr)).collect()
        };
        if !aggregate.order_by.is_empty() {
            let (first, value) = FirstCell::try_new(aggregate, scan)?;
            let first = match base.values.restrict(value) {
                true => first.without_nulls(),
                false if base.values.is_empty() => first,
                false => return None, // cells that are left out would be NULL
            };
            let values = base.values.values_of(value);
            return Some(ParsedCall::First { first, values, masks: masks() });
        }
        if let Some((call, value)) = Call::try_new(aggregate, scan) {
            let masks = masks();
            let values = match value {
                Some(value) => Some(base.values.values_of(value)),
                None => base.values.cells(),
            };
            let quantity = values.map_or(Quantity::Rows, Quantity::Count);
            // A row that passes a condition on a variable has a value: counting values counts rows.
            let call = match (call, &quantity) {
                (Call::CountRows, Quantity::Count(_)) => Call::Count,
                (call, _) => call,
            };
            return Some(ParsedCall::Plain { call, quantity, masks });
        }
        if !weighs {
            return None;
        }
        let (name, result) = (known_aggregate(function.fun())?, function.field());
        if name == "weighted_avg" {
            let [value, weight] = aggregate.args.as_slice() else { return None };
            let linear = weighted(value, weight, &base, scan, factors)?;
            return Some(ParsedCall::Linear { call: Call::WeightedAverage, linear });
        }
        let has_keys = !query.keys.is_empty();
        if let Some(pair) = self.of_pairs.parse(name, aggregate, &base, scan, has_keys) {
            return Some(ParsedCall::Pair(pair));
        }
        let [arg] = aggregate.args.as_slice() else { return None };
        let linear = linear(arg, &base, scan, factors)?;
        let call = match (result.data_type(), name) {
            (DataType::Int64, "count") => Call::Count,
            (DataType::Int64, "sum") => Call::WideSum,
            (DataType::Float64, "sum") => Call::Sum,
            (DataType::Float64, "avg") => Call::Average,
            _ => return None,
        };
        Some(ParsedCall::Linear { call, linear })
    }
}

/// The members that calls need so far.
struct Members<'a> {
    list: Vec<DenseMember>,
    tests: Vec<(usize, ValueRange)>,
    /// The weights of cells that were made so far, with the functions that they multiply.
    weights: Vec<(Vec<FactorId>, Arc<CellWeights>)>,
    refinement: Option<&'a Refinement>,
    scan: &'a GridScanExec,
}

impl Members<'_> {
    /// Returns the number of a member with these statistics of the values that count; an existing one gets those that it lacks.
    fn add(&mut self, values: &Values, member: RequestedMember) -> usize {
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
    fn choose(&mut self, parsed: ParsedCall) -> Option<DenseCall> {
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
