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

use datafusion::physical_expr::PhysicalExprRef;

use super::call::Call;
use super::condition::Condition;
use super::factors::FactorId;
use super::first_cell::FirstCell;
use super::keys::Keys;
use super::label_call::LabelCall;
use super::linear::{Linear, Term};
use super::members::Members;
use super::parsed_call::{Functions, ParsedCall};
use super::query::Query;
use super::refinement::Refinement;
use crate::array::{GridArray, ValueColumn};
use crate::exec::GridScanExec;
use crate::reduce::{CellTest, Reducer, RequestedMember, ValueRange, reducer_of_forms};

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
        let mut functions = Functions::new(query, scan, keys, is_whole);
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
        let mut members = Members::new(refinement.as_ref(), scan);
        let rows = rows.cells().map(|cells| members.add(&cells, RequestedMember::default()));
        let of_pair = |call: &ParsedCall| match call {
            ParsedCall::Pair(pair) => Some(Arc::clone(&pair.label)),
            _ => None,
        };
        let labels: Vec<PhysicalExprRef> = parsed.iter().filter_map(of_pair).collect();
        let calls: Vec<DenseCall> =
            parsed.into_iter().map(|call| members.choose(call)).collect::<Option<_>>()?;
        let Members { list: members, tests, .. } = members;
        let variables = each_once(members.iter().map(|member| member.value));
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
        let tested = self.tests.iter().map(|(variable, _)| *variable);
        each_once(self.variables.iter().copied().chain(tested))
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

/// Returns each number once, in the order in which they come first.
fn each_once(numbers: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut found = vec![];
    for number in numbers {
        if !found.contains(&number) {
            found.push(number);
        }
    }
    found
}
