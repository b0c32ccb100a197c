//! Aggregates that the kernels do not know: DataFusion's own accumulators, over batches of rows, fed
//! with places in the table of groups instead of hashes.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, RecordBatch};
use arrow::compute::{filter_record_batch, prep_null_mask_filter};
use arrow::datatypes::SchemaRef;
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};
use datafusion::physical_expr::GroupsAccumulatorAdapter;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;

use super::query::{Expr, Query, columns_of, over_columns};

/// Aggregates of expressions, by accumulators.
#[derive(Debug, Clone)]
pub(super) struct AccumulatePlan {
    /// The columns of the scan that the expressions are over, ascending.
    pub(super) columns: Vec<usize>,
    calls: Vec<AccumulatorCall>,
    predicate: Option<Expr>,
}

#[derive(Debug, Clone)]
struct AccumulatorCall {
    function: Arc<AggregateFunctionExpr>,
    args: Vec<Expr>,
    filter: Option<Expr>,
}

/// Aggregates whose answer depends on the order of rows, whether or not the query gives one.
const ORDERED: [&str; 5] = ["array_agg", "first_value", "last_value", "nth_value", "string_agg"];

impl AccumulatePlan {
    /// How accumulators would do `query`, or `None` if they need rows in order.
    pub(super) fn of(query: &Query) -> Result<Option<Self>> {
        let ordered = |name: &str| ORDERED.contains(&name);
        if query.aggregates.iter().any(|call| ordered(call.function.fun().name())) {
            return Ok(None);
        }
        let needed = query
            .aggregates
            .iter()
            .flat_map(|call| call.args.iter().chain(&call.filter))
            .chain(&query.predicate);
        let columns = columns_of(needed);
        let over = |expr: &Expr| over_columns(expr, &columns);
        let mut calls = Vec::new();
        for call in &query.aggregates {
            calls.push(AccumulatorCall {
                function: Arc::clone(&call.function),
                args: call.args.iter().map(over).collect::<Result<_>>()?,
                filter: call.filter.as_ref().map(over).transpose()?,
            });
        }
        let predicate = query.predicate.as_ref().map(over).transpose()?;
        Ok(Some(Self { columns, calls, predicate }))
    }

    /// How many aggregates there are.
    pub(super) fn calls(&self) -> usize {
        self.calls.len()
    }

    /// Every expression that is evaluated per row.
    pub(super) fn expressions(&self) -> impl Iterator<Item = &Expr> {
        let of_calls = self.calls.iter().flat_map(|call| call.args.iter().chain(&call.filter));
        of_calls.chain(&self.predicate)
    }
}

/// The accumulators of one partition.
pub(super) struct Accumulators {
    plan: AccumulatePlan,
    schema: SchemaRef,
    accumulators: Vec<Box<dyn GroupsAccumulator>>,
    groups: usize,
    /// Whether a row of the group passed the predicate; absent if there is none.
    seen: Option<Vec<bool>>,
    /// The places of the rows that passed, batch after batch.
    passed: Vec<usize>,
}

impl Accumulators {
    /// Accumulators for batches of `schema`.
    pub(super) fn new(plan: &AccumulatePlan, schema: SchemaRef, groups: usize) -> Result<Self> {
        let accumulators =
            plan.calls.iter().map(|call| accumulator(&call.function)).collect::<Result<_>>()?;
        let seen = plan.predicate.is_some().then(|| vec![false; groups]);
        Ok(Self { plan: plan.clone(), schema, accumulators, groups, seen, passed: Vec::new() })
    }

    /// Adds rows; `places` says which group each belongs to.
    pub(super) fn update(&mut self, batch: &RecordBatch, places: &[usize]) -> Result<()> {
        let Some(predicate) = &self.plan.predicate else {
            return update(&self.plan.calls, &mut self.accumulators, batch, places, self.groups);
        };
        let mask = predicate.evaluate(batch)?.into_array(batch.num_rows())?;
        let Some(mask) = mask.as_boolean_opt() else {
            return internal_err!("a predicate of type {}", mask.data_type());
        };
        let mask = prep_null_mask_filter(mask);
        self.passed.clear();
        self.passed.extend(mask.values().set_indices().map(|row| places[row]));
        for &place in &self.passed {
            if let Some(seen) = &mut self.seen {
                seen[place] = true;
            }
        }
        let batch = filter_record_batch(batch, &mask)?;
        update(&self.plan.calls, &mut self.accumulators, &batch, &self.passed, self.groups)
    }

    /// Memory that the accumulators hold, in bytes.
    pub(super) fn size(&self) -> usize {
        self.accumulators.iter().map(|accumulator| accumulator.size()).sum()
    }

    /// The columns of all groups, and which groups had a row, where that is in doubt. `last` asks for
    /// final values instead of states.
    pub(super) fn finish(mut self, last: bool) -> Result<(Vec<ArrayRef>, Option<BooleanArray>)> {
        // An accumulator that never saw a batch does not know yet how many groups there are.
        let none = RecordBatch::new_empty(Arc::clone(&self.schema));
        update(&self.plan.calls, &mut self.accumulators, &none, &[], self.groups)?;
        let mut columns = Vec::new();
        for accumulator in &mut self.accumulators {
            if last {
                columns.push(accumulator.evaluate(EmitTo::All)?);
            } else {
                columns.extend(accumulator.state(EmitTo::All)?);
            }
        }
        Ok((columns, self.seen.map(BooleanArray::from)))
    }
}

fn update(
    calls: &[AccumulatorCall],
    accumulators: &mut [Box<dyn GroupsAccumulator>],
    batch: &RecordBatch,
    places: &[usize],
    groups: usize,
) -> Result<()> {
    for (call, accumulator) in calls.iter().zip(accumulators) {
        let rows = batch.num_rows();
        let args = call
            .args
            .iter()
            .map(|arg| arg.evaluate(batch)?.into_array(rows))
            .collect::<Result<Vec<_>>>()?;
        let filter = match &call.filter {
            Some(filter) => Some(filter.evaluate(batch)?.into_array(rows)?),
            None => None,
        };
        let filter = filter.as_ref().and_then(|filter| filter.as_boolean_opt());
        accumulator.update_batch(&args, places, filter, groups)?;
    }
    Ok(())
}

/// As DataFusion makes them for its own aggregation.
fn accumulator(function: &Arc<AggregateFunctionExpr>) -> Result<Box<dyn GroupsAccumulator>> {
    if function.groups_accumulator_supported() {
        return function.create_groups_accumulator();
    }
    let function = Arc::clone(function);
    Ok(Box::new(GroupsAccumulatorAdapter::new(move || function.create_accumulator())))
}
