//! [`ParsedCall`]: an aggregate of a query in terms of variables and functions of labels, before members are chosen.

use arrow::datatypes::DataType;
use datafusion::physical_expr::PhysicalExprRef;

use super::call::Call;
use super::condition::{Condition, Intervals, Values};
use super::factors::{FactorId, Factors};
use super::first_cell::FirstCell;
use super::keys::Keys;
use super::label_call::LabelCall;
use super::linear::{Linear, Quantity, linear, weighted};
use super::pair::{LabelFunctions, ParsedPair};
use super::query::{Aggregate, Query};
use crate::exec::GridScanExec;
use crate::exec::matching::{Over, known_aggregate};

/// A call as the query has it, before members are chosen.
pub(super) enum ParsedCall {
    Plain { call: Call, quantity: Quantity, masks: Vec<FactorId> },
    Linear { call: Call, linear: Linear },
    Pair(ParsedPair),
    First { first: FirstCell, values: Values, masks: Vec<FactorId> },
    Labels(LabelCall),
}

/// The functions of labels that calls need so far.
pub(super) struct Functions {
    pub(super) factors: Factors,
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
    /// No functions yet. `is_whole` allows aggregates that have values and no states.
    pub(super) fn new(query: &Query, scan: &GridScanExec, keys: &Keys, is_whole: bool) -> Self {
        let labels = Labels::of(query, scan, keys, is_whole);
        Self { factors: Factors::default(), of_pairs: LabelFunctions::default(), labels }
    }

    /// Translates an aggregate of `query`; `rows` are the intervals of its predicate.
    pub(super) fn parse(
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
        match weighs {
            true => self.parse_products(aggregate, &base, query, scan),
            false => None,
        }
    }

    /// Translates an aggregate of products with functions of labels, for the rows that pass the condition `base`.
    fn parse_products(
        &mut self,
        aggregate: &Aggregate,
        base: &Condition,
        query: &Query,
        scan: &GridScanExec,
    ) -> Option<ParsedCall> {
        let function = &aggregate.function;
        let (name, result) = (known_aggregate(function.fun())?, function.field());
        if name == "weighted_avg" {
            let [value, weight] = aggregate.args.as_slice() else { return None };
            let linear = weighted(value, weight, base, scan, &mut self.factors)?;
            return Some(ParsedCall::Linear { call: Call::WeightedAverage, linear });
        }
        let has_keys = !query.keys.is_empty();
        if let Some(pair) = self.of_pairs.parse(name, aggregate, base, scan, has_keys) {
            return Some(ParsedCall::Pair(pair));
        }
        let [arg] = aggregate.args.as_slice() else { return None };
        let linear = linear(arg, base, scan, &mut self.factors)?;
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
