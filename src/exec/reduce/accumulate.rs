//! Aggregates that the kernels do not know: DataFusion's own accumulators, over batches of rows, fed
//! with places in the table of groups instead of hashes.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch};
use arrow::compute::{filter_record_batch, prep_null_mask_filter};
use arrow::datatypes::SchemaRef;
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};
use datafusion::physical_expr::GroupsAccumulatorAdapter;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;

use super::query::{Aggregate, Query};
use crate::array::Column;
use crate::exec::GridScanExec;
use crate::exec::columns::{Expr, columns_of, over_columns};

/// Aggregates of expressions, by accumulators.
#[derive(Debug, Clone)]
pub(super) struct AccumulatePlan {
    /// What of the array the expressions are over.
    pub(super) columns: Vec<Column>,
    /// The schema of these columns.
    pub(super) schema: SchemaRef,
    /// Over batches of that schema, as the predicate is.
    pub(super) calls: Vec<Aggregate>,
    predicate: Option<Expr>,
}

/// Aggregates whose answer depends on the order of rows, whether or not the query gives one.
const ORDERED: [&str; 5] = ["array_agg", "first_value", "last_value", "nth_value", "string_agg"];

impl AccumulatePlan {
    /// How accumulators would do `query`, or `None` if they need rows in order.
    pub(super) fn of(query: &Query, scan: &GridScanExec) -> Result<Option<Self>> {
        let ordered = |call: &Aggregate| ORDERED.contains(&call.function.fun().name());
        if query.aggregates.iter().any(ordered) {
            return Ok(None);
        }
        let calls = query.aggregates.iter();
        let needed =
            columns_of(calls.clone().flat_map(Aggregate::expressions).chain(&query.predicate));
        let scanned = scan.columns();
        Ok(Some(Self {
            columns: needed.iter().map(|&at| scanned[at]).collect(),
            schema: Arc::new(scan.schema_ref().project(&needed)?),
            calls: calls.map(|call| call.over_columns(&needed)).collect::<Result<_>>()?,
            predicate: query
                .predicate
                .as_ref()
                .map(|predicate| over_columns(predicate, &needed))
                .transpose()?,
        }))
    }

    /// Whether an accumulator hands on values that it was given, rather than a summary of them.
    pub(super) fn holds_values(&self) -> bool {
        let has_list = |call: &Aggregate| {
            let states = call.function.state_fields();
            states.is_ok_and(|states| states.iter().any(|state| state.data_type().is_nested()))
        };
        self.calls.iter().any(has_list)
    }

    /// Bytes of the arguments of a row.
    pub(super) fn bytes_per_row(&self) -> Result<usize> {
        /// A text, or whatever else has no width of its own.
        const TEXT: usize = 32;
        let mut bytes = 0;
        for arg in self.calls.iter().flat_map(|call| &call.args) {
            bytes += arg.data_type(&self.schema)?.primitive_width().unwrap_or(TEXT);
        }
        Ok(bytes)
    }

    /// Every expression that is evaluated per row.
    pub(super) fn expressions(&self) -> impl Iterator<Item = &Expr> {
        self.calls.iter().flat_map(Aggregate::expressions).chain(&self.predicate)
    }
}

/// The accumulators of one partition.
pub(super) enum Accumulators {
    /// One group that is there even without rows.
    Ungrouped(Ungrouped),
    /// Any number of groups, those with a row.
    Grouped(Grouped),
}

impl Accumulators {
    /// Accumulators for a table of `places` groups, or of the one group that has no keys.
    pub(super) fn new(plan: &AccumulatePlan, places: usize, has_keys: bool) -> Result<Self> {
        Ok(if has_keys {
            Self::Grouped(Grouped::new(plan, places)?)
        } else {
            Self::Ungrouped(Ungrouped::new(plan)?)
        })
    }

    /// Adds rows; `places` says which group each belongs to, and `repeated` that these are the places
    /// of the last batch.
    pub(super) fn update(
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

    /// Groups that have been met.
    pub(super) fn groups(&self) -> usize {
        match self {
            Self::Ungrouped(_) => 1,
            Self::Grouped(groups) => groups.met.len(),
        }
    }

    /// Memory that the accumulators hold, in bytes.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Ungrouped(one) => one.accumulators.iter().map(|held| held.size()).sum(),
            Self::Grouped(groups) => groups.accumulators.iter().map(|held| held.size()).sum(),
        }
    }

    /// The columns of all groups, and the places of the groups. `last` asks for final values instead
    /// of states.
    pub(super) fn finish(self, last: bool) -> Result<(Vec<ArrayRef>, Vec<usize>)> {
        match self {
            Self::Ungrouped(one) => Ok((one.finish(last)?, vec![0])),
            Self::Grouped(groups) => groups.finish(last),
        }
    }
}

/// Accumulators without groups, as DataFusion uses them without keys.
pub(super) struct Ungrouped {
    plan: AccumulatePlan,
    accumulators: Vec<Box<dyn Accumulator>>,
}

impl Ungrouped {
    fn new(plan: &AccumulatePlan) -> Result<Self> {
        let accumulators = plan
            .calls
            .iter()
            .map(|call| call.function.create_accumulator())
            .collect::<Result<_>>()?;
        Ok(Self { plan: plan.clone(), accumulators })
    }

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

/// Accumulators of groups. They take for granted that each group they hear of has a row, so groups
/// are numbered as they are met.
pub(super) struct Grouped {
    plan: AccumulatePlan,
    accumulators: Vec<Box<dyn GroupsAccumulator>>,
    /// Per place the group's number, or `UNMET`.
    numbers: Vec<usize>,
    /// Per number the group's place.
    met: Vec<usize>,
    /// The groups of the rows of the last batch.
    groups: Vec<usize>,
}

const UNMET: usize = usize::MAX;

impl Grouped {
    fn new(plan: &AccumulatePlan, places: usize) -> Result<Self> {
        let accumulators =
            plan.calls.iter().map(|call| accumulator(&call.function)).collect::<Result<_>>()?;
        let numbers = vec![UNMET; places];
        Ok(Self { plan: plan.clone(), accumulators, numbers, met: vec![], groups: vec![] })
    }

    fn update(&mut self, batch: &RecordBatch, places: &[usize], repeated: bool) -> Result<()> {
        let Some(predicate) = self.plan.predicate.clone() else {
            if !repeated {
                self.meet(places.iter().copied());
            }
            return self.add(batch);
        };
        let mask = mask(&predicate, batch)?;
        self.meet(mask.values().set_indices().map(|row| places[row]));
        self.add(&filter_record_batch(batch, &mask)?)
    }

    /// Finds the groups of rows, numbering those that are new.
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

    fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        for (call, accumulator) in self.plan.calls.iter().zip(&mut self.accumulators) {
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

    fn finish(self, last: bool) -> Result<(Vec<ArrayRef>, Vec<usize>)> {
        let mut columns = Vec::new();
        if self.met.is_empty() {
            return Ok((columns, self.met)); // some accumulators cannot make columns of nothing
        }
        for mut accumulator in self.accumulators {
            if last {
                columns.push(accumulator.evaluate(EmitTo::All)?);
            } else {
                columns.extend(accumulator.state(EmitTo::All)?);
            }
        }
        Ok((columns, self.met))
    }
}

/// What `call` aggregates, evaluated.
fn arguments(call: &Aggregate, batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
    let array = |arg: &Expr| arg.evaluate(batch)?.into_array(batch.num_rows());
    call.args.iter().map(array).collect()
}

/// The rows for which `predicate` is true; without NULLs.
fn mask(predicate: &Expr, batch: &RecordBatch) -> Result<BooleanArray> {
    let mask = predicate.evaluate(batch)?.into_array(batch.num_rows())?;
    match mask.as_boolean_opt() {
        Some(mask) if mask.null_count() > 0 => Ok(prep_null_mask_filter(mask)),
        Some(mask) => Ok(mask.clone()),
        None => internal_err!("a predicate of type {}", mask.data_type()),
    }
}

/// As DataFusion makes them for its own aggregation.
fn accumulator(function: &Arc<AggregateFunctionExpr>) -> Result<Box<dyn GroupsAccumulator>> {
    if function.groups_accumulator_supported() {
        return function.create_groups_accumulator();
    }
    let function = Arc::clone(function);
    Ok(Box::new(GroupsAccumulatorAdapter::new(move || function.create_accumulator())))
}
