//! Aggregates without a dense kernel: DataFusion's own accumulators over batches of rows, with computed
//! group numbers instead of hashes.
//!
//! A table has a place for every possible group, but accumulators assume that every group has a row. So
//! groups get a second number when their first row comes:
//!
//! ```text
//!   place of each row    7 7 2 7        numbers   [_ _ 1 _ _ _ _ 0]     per place
//!   number of its group  0 0 1 0        met       [7, 2]                per number
//! ```

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch};
use arrow::compute::{filter_record_batch, prep_null_mask_filter};
use arrow::datatypes::SchemaRef;
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::{GroupsAccumulatorAdapter, PhysicalExprRef};

use super::gathered::{Gathered, is_of_sorted_values};
use super::query::{Aggregate, Query};
use crate::array::ColumnSource;
use crate::exec::GridScanExec;
use crate::exec::columns::{columns_of, over_columns};
use crate::exec::longest_run::RunsOfGroups;
use crate::exec::matching::known_aggregate;
use crate::exec::window::come_in_order;

/// A plan that computes aggregates of arbitrary expressions with accumulators.
#[derive(Debug, Clone)]
pub(in crate::exec) struct AccumulatePlan {
    /// The sources of the columns that the expressions use.
    pub(super) columns: Vec<ColumnSource>,
    /// The schema of these columns.
    pub(in crate::exec) schema: SchemaRef,
    /// The aggregates, over batches of `schema`, as is the predicate.
    pub(in crate::exec) calls: Vec<Aggregate>,
    /// The condition on rows; it is applied before the calls see them.
    predicate: Option<PhysicalExprRef>,
    /// The bytes that a row takes at most until its group is finished, in aggregates of all values.
    pub(super) gathered_bytes_per_row: usize,
    /// Whether DataFusion computes some of these aggregates from summaries, which may take less.
    pub(super) has_summaries: bool,
    /// Whether calls need the rows of a group in order. They are, if no other partition has rows of the group.
    pub(super) needs_order: bool,
}

/// Aggregates whose answer depends on the order of rows, whether or not the query sorts them.
const ORDERED: [&str; 5] = ["array_agg", "first_value", "last_value", "nth_value", "string_agg"];

impl AccumulatePlan {
    /// Plans `query` with accumulators; `None` if an aggregate depends on the order of rows.
    pub(super) fn try_new(query: &Query, scan: &GridScanExec) -> Result<Option<Self>> {
        let ordered = |call: &&Aggregate| {
            ORDERED.contains(&call.function.fun().name())
                || is_run(&call.function)
                || !call.order_by.is_empty() && !is_of_sorted_values(call)
        };
        let mut needs_order = false;
        for call in query.aggregates.iter().filter(ordered) {
            if !is_run(&call.function) || !come_in_order(&query.keys, &call.order_by, scan)? {
                return Ok(None);
            }
            needs_order = true;
        }
        let calls = query.aggregates.iter();
        let needed =
            columns_of(calls.clone().flat_map(Aggregate::expressions).chain(&query.predicate));
        let scanned = scan.columns();
        let schema = Arc::new(scan.schema_ref().project(&needed)?);
        let calls = calls.map(|call| call.over_columns(&needed)).collect::<Result<Vec<_>>>()?;
        let gathered = Gathered::of_calls(&calls, &schema, 0, true)?;
        Ok(Some(Self {
            columns: needed.iter().map(|&at| scanned[at]).collect(),
            gathered_bytes_per_row: gathered.iter().map(Gathered::bytes_per_row).sum(),
            has_summaries: gathered.iter().any(Gathered::has_summaries),
            schema,
            calls,
            needs_order,
            predicate: query
                .predicate
                .as_ref()
                .map(|predicate| over_columns(predicate, &needed))
                .transpose()?,
        }))
    }

    /// Plans aggregates over the rows of another operator than a scan, in batches of `schema`. `None` if one depends on the order of
    /// rows.
    pub(in crate::exec) fn over_rows(
        calls: Vec<Aggregate>,
        predicate: Option<PhysicalExprRef>,
        schema: SchemaRef,
    ) -> Result<Option<Self>> {
        let is_ordered = |call: &Aggregate| {
            ORDERED.contains(&call.function.fun().name())
                || is_run(&call.function)
                || !call.order_by.is_empty()
        };
        if calls.iter().any(is_ordered) {
            return Ok(None);
        }
        let gathered = Gathered::of_calls(&calls, &schema, 0, true)?;
        Ok(Some(Self {
            columns: vec![],
            gathered_bytes_per_row: gathered.iter().map(Gathered::bytes_per_row).sum(),
            has_summaries: gathered.iter().any(Gathered::has_summaries),
            schema,
            calls,
            needs_order: false,
            predicate,
        }))
    }

    /// Whether the state of an accumulator is a list of its input values, rather than a summary of them.
    pub(super) fn holds_values(&self) -> bool {
        let has_list = |call: &Aggregate| {
            let states = call.function.state_fields();
            states.is_ok_and(|states| states.iter().any(|state| state.data_type().is_nested()))
        };
        self.calls.iter().any(has_list)
    }

    /// Estimates the bytes of the arguments of a row, which accumulators that hold values take.
    pub(in crate::exec) fn bytes_per_row(&self) -> Result<usize> {
        /// The assumed bytes of a text, or of another value without a fixed width.
        const TEXT: usize = 32;
        let mut bytes = 0;
        for arg in self.calls.iter().flat_map(|call| &call.args) {
            bytes += arg.data_type(&self.schema)?.primitive_width().unwrap_or(TEXT);
        }
        Ok(bytes)
    }

    /// Returns every expression that is evaluated per row.
    pub(in crate::exec) fn expressions(&self) -> impl Iterator<Item = &PhysicalExprRef> {
        self.calls.iter().flat_map(Aggregate::expressions).chain(&self.predicate)
    }
}

/// The accumulators of one partition.
pub(in crate::exec) enum Accumulators {
    /// A single group, which is in the result even without rows.
    Ungrouped(SingleGroup),
    /// Any number of groups; only groups with a row are in the result.
    Grouped(GroupAccumulators),
}

impl Accumulators {
    /// Makes accumulators for a table of `places` groups, or for the single group of a query without keys. `summaries` is that of
    /// [`Gathered::of_calls`].
    pub(in crate::exec) fn new(
        plan: &AccumulatePlan,
        places: usize,
        has_keys: bool,
        summaries: bool,
    ) -> Result<Self> {
        Ok(if has_keys {
            Self::Grouped(GroupAccumulators::new(plan, places, summaries)?)
        } else {
            Self::Ungrouped(SingleGroup::new(plan)?)
        })
    }

    /// Adds rows. `places` holds the place of each row's group. `repeated` means that they are the places
    /// of the last batch.
    pub(in crate::exec) fn update(
        &mut self,
        batch: &RecordBatch,
        places: &[usize],
        repeated: bool,
    ) -> Result<()> {
        match self {
            Self::Ungrouped(one) => one.update(batch),
            Self::Grouped(groups) => groups.update(batch, places, repeated),
        }
    }

    /// Returns the number of groups so far.
    pub(in crate::exec) fn groups(&self) -> usize {
        match self {
            Self::Ungrouped(_) => 1,
            Self::Grouped(groups) => groups.met.len(),
        }
    }

    /// Returns the memory that the accumulators hold, in bytes.
    pub(in crate::exec) fn size(&self) -> usize {
        match self {
            Self::Ungrouped(one) => one.accumulators.iter().map(|held| held.size()).sum(),
            Self::Grouped(groups) => groups.size(),
        }
    }

    /// Returns the columns of all groups, and the places of these groups. Columns hold final values if
    /// `last` is true, else states.
    pub(in crate::exec) fn finish(self, last: bool) -> Result<(Vec<ArrayRef>, Vec<usize>)> {
        match self {
            Self::Ungrouped(one) => Ok((one.finish(last)?, vec![0])),
            Self::Grouped(groups) => groups.finish(last),
        }
    }
}

/// Accumulators of a single group, as DataFusion uses them for queries without keys.
pub(in crate::exec) struct SingleGroup {
    plan: AccumulatePlan,
    /// One per call.
    accumulators: Vec<Box<dyn Accumulator>>,
}

impl SingleGroup {
    fn new(plan: &AccumulatePlan) -> Result<Self> {
        let accumulators = plan
            .calls
            .iter()
            .map(|call| call.function.create_accumulator())
            .collect::<Result<_>>()?;
        Ok(Self { plan: plan.clone(), accumulators })
    }

    /// Adds the rows that pass the predicate; for each call, those that pass its own filter too.
    fn update(&mut self, batch: &RecordBatch) -> Result<()> {
        let batch = match &self.plan.predicate {
            Some(predicate) => filter_record_batch(batch, &mask(predicate, batch)?)?,
            None => batch.clone(),
        };
        for (call, accumulator) in self.plan.calls.iter().zip(&mut self.accumulators) {
            match &call.filter {
                Some(filter) => {
                    let batch = filter_record_batch(&batch, &mask(filter, &batch)?)?;
                    accumulator.update_batch(&arguments(call, &batch)?)?;
                }
                None => accumulator.update_batch(&arguments(call, &batch)?)?,
            }
        }
        Ok(())
    }

    /// Returns columns of one row: one per call if `last` is true, else one per part of its state.
    fn finish(self, last: bool) -> Result<Vec<ArrayRef>> {
        let mut columns = Vec::new();
        for mut accumulator in self.accumulators {
            if last {
                columns.push(accumulator.evaluate()?.to_array()?);
            } else {
                for state in accumulator.state()? {
                    columns.push(state.to_array()?);
                }
            }
        }
        Ok(columns)
    }
}

/// Accumulators of groups. They assume that each group number has a row, so groups are numbered when their
/// first row occurs.
pub(in crate::exec) struct GroupAccumulators {
    plan: AccumulatePlan,
    /// The numbers of calls, and their accumulators.
    accumulators: Vec<(usize, Box<dyn GroupsAccumulator>)>,
    /// The other calls.
    gathered: Vec<Gathered>,
    /// Per place, the group's number, or `UNMET`.
    numbers: Vec<usize>,
    /// Per number, the group's place.
    met: Vec<usize>,
    /// The group numbers of the rows of the last batch.
    groups: Vec<usize>,
}

/// Stands for "no number yet" in `GroupAccumulators::numbers`.
const UNMET: usize = usize::MAX;

impl GroupAccumulators {
    fn new(plan: &AccumulatePlan, places: usize, summaries: bool) -> Result<Self> {
        let gathered = Gathered::of_calls(&plan.calls, &plan.schema, places, summaries)?;
        let of_gathered: Vec<usize> = gathered.iter().flat_map(Gathered::calls).collect();
        let others = plan.calls.iter().enumerate().filter(|(at, _)| !of_gathered.contains(at));
        let accumulators = others
            .map(|(at, call)| match is_run(&call.function) && plan.needs_order {
                true => Ok((at, Box::<RunsOfGroups>::default() as Box<dyn GroupsAccumulator>)),
                false => Ok((at, accumulator(&call.function)?)),
            })
            .collect::<Result<_>>()?;
        let (plan, numbers) = (plan.clone(), vec![UNMET; places]);
        Ok(Self { plan, accumulators, gathered, numbers, met: vec![], groups: vec![] })
    }

    fn size(&self) -> usize {
        let others = self.accumulators.iter().map(|(_, held)| held.size());
        others.chain(self.gathered.iter().map(Gathered::size)).sum()
    }

    fn update(&mut self, batch: &RecordBatch, places: &[usize], repeated: bool) -> Result<()> {
        // Without a predicate, equal places have equal group numbers, so `groups` may stay as it is.
        let Some(predicate) = self.plan.predicate.clone() else {
            if !repeated {
                self.meet(places.iter().copied());
            }
            return self.add(batch);
        };
        // Groups are met only by rows that pass: a group without one is not in the result.
        let mask = mask(&predicate, batch)?;
        self.meet(mask.values().set_indices().map(|row| places[row]));
        self.add(&filter_record_batch(batch, &mask)?)
    }

    /// Finds the group number of each row, and numbers new groups.
    fn meet(&mut self, places: impl Iterator<Item = usize>) {
        self.groups.clear();
        for place in places {
            let number = &mut self.numbers[place];
            if *number == UNMET {
                *number = self.met.len();
                self.met.push(place);
            }
            self.groups.push(*number);
        }
    }

    /// Adds rows to the groups in `groups`, one per row.
    fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        for gathered in &mut self.gathered {
            gathered.push(batch, &self.groups)?;
        }
        for (at, accumulator) in &mut self.accumulators {
            let call = &self.plan.calls[*at];
            let filter = match &call.filter {
                Some(filter) => Some(filter.evaluate(batch)?.into_array(batch.num_rows())?),
                None => None,
            };
            let filter = filter.as_ref().and_then(|filter| filter.as_boolean_opt());
            let args = arguments(call, batch)?;
            accumulator.update_batch(&args, &self.groups, filter, self.met.len())?;
        }
        Ok(())
    }

    /// Returns the columns of the groups that were met, and the places of these groups.
    fn finish(self, last: bool) -> Result<(Vec<ArrayRef>, Vec<usize>)> {
        if self.met.is_empty() {
            return Ok((vec![], self.met)); // some accumulators fail without groups
        }
        let mut columns = vec![vec![]; self.plan.calls.len()];
        for (at, mut accumulator) in self.accumulators {
            columns[at] = match last {
                true => vec![accumulator.evaluate(EmitTo::All)?],
                false => accumulator.state(EmitTo::All)?,
            };
        }
        for gathered in self.gathered {
            for (at, column) in gathered.finish(self.met.len(), last)? {
                columns[at] = vec![column];
            }
        }
        Ok((columns.concat(), self.met))
    }
}

/// Whether the function is `longest_run`.
fn is_run(function: &AggregateFunctionExpr) -> bool {
    known_aggregate(function.fun()) == Some("longest_run")
        && !function.is_distinct()
        && !function.ignore_nulls()
}

/// Evaluates the arguments of `call`.
fn arguments(call: &Aggregate, batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
    let array = |arg: &PhysicalExprRef| arg.evaluate(batch)?.into_array(batch.num_rows());
    call.args.iter().map(array).collect()
}

/// Returns a mask of the rows for which `predicate` is true; NULL becomes false.
fn mask(predicate: &PhysicalExprRef, batch: &RecordBatch) -> Result<BooleanArray> {
    let mask = predicate.evaluate(batch)?.into_array(batch.num_rows())?;
    match mask.as_boolean_opt() {
        Some(mask) if mask.null_count() > 0 => Ok(prep_null_mask_filter(mask)),
        Some(mask) => Ok(mask.clone()),
        None => internal_err!("a predicate has type {}, not Boolean", mask.data_type()),
    }
}

/// Makes an accumulator of groups in the same way as DataFusion's own aggregation.
pub(super) fn accumulator(
    function: &Arc<AggregateFunctionExpr>,
) -> Result<Box<dyn GroupsAccumulator>> {
    if function.groups_accumulator_supported() {
        return function.create_groups_accumulator();
    }
    let function = Arc::clone(function);
    Ok(Box::new(GroupsAccumulatorAdapter::new(move || function.create_accumulator())))
}
