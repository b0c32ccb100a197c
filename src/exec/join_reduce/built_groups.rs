//! [`BuiltGroups`]: the rows of the other side with the numbers of their groups.

use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt32Array};
use arrow::compute::{take, take_record_batch};
use arrow::datatypes::{Field, Float64Type, Schema};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::logical_expr::EmitTo;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_plan::aggregates::group_values::new_group_values;
use datafusion::physical_plan::aggregates::order::GroupOrdering;
use futures::future::{BoxFuture, Shared};

use super::products::RowTerm;
use super::reduction::JoinReduction;
use crate::exec::lookup::BuildSide;
use crate::exec::pruning::labels::satisfied;
use crate::reduce::AxisGroups;

/// The rows of the other side, with the numbers of their groups. All partitions share them.
pub(super) struct BuiltGroups {
    pub(super) side: Arc<BuildSide>,
    /// The number of each row's group. It is 0 for rows that match no label.
    pub(super) numbers: Vec<u32>,
    /// The number of groups.
    pub(super) count: usize,
    /// The values of each key, by the number of the group.
    pub(super) values: Vec<ArrayRef>,
    /// Per row term of the products the weight of each row, and NaN for rows that do not count. `None` if a weight is infinite
    /// or fails, which only single pairs can tell.
    pub(super) weights: Option<Vec<Vec<f64>>>,
    /// The number of pairs of all partitions together, before conditions.
    pub(super) pairs: u64,
    _reservation: MemoryReservation,
}

/// The groups, which the first partition to need them makes.
pub(super) type SharedGroups =
    Shared<BoxFuture<'static, std::result::Result<Arc<HeldGroups>, Arc<DataFusionError>>>>;

/// The groups until a partition aggregates rows, because memory is short. Later partitions do so, too.
pub(super) struct HeldGroups(Mutex<Option<Arc<BuiltGroups>>>);

impl HeldGroups {
    pub(super) fn new(groups: BuiltGroups) -> Self {
        Self(Mutex::new(Some(Arc::new(groups))))
    }

    /// Returns the groups; `None` once they are released.
    pub(super) fn get(&self) -> Option<Arc<BuiltGroups>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Gives up the memory as soon as no partition uses it.
    pub(super) fn release(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl BuiltGroups {
    /// Numbers the groups of the rows that match a label of each axis.
    ///
    /// # Errors
    /// If a key fails on a row that matches, or the memory pool refuses memory.
    pub(super) fn try_new(
        reduction: &JoinReduction,
        side: Arc<BuildSide>,
        reservation: MemoryReservation,
    ) -> Result<Self> {
        let rows = side.rows.num_rows();
        reservation.try_grow(2 * rows * size_of::<u32>())?;
        let matched = |row: &u32| side.numbers.iter().all(|it| it[*row as usize].is_some());
        let matched: Vec<u32> = (0..rows as u32).filter(matched).collect();
        let pairs = pairs(reduction, &side, &matched);
        // Without cells there are no pairs, for which keys could fail.
        let matched = if pairs == 0 { vec![] } else { matched };
        let mut numbers = vec![0; rows];
        let matched = UInt32Array::from(matched);
        let batch = take_record_batch(&side.rows, &matched)?;
        let weights = match &reduction.products {
            Some(plan) => {
                reservation.try_grow(plan.rows.len() * rows * size_of::<f64>())?;
                let of_term = |term| weights(term, &batch, &matched, rows);
                plan.rows.iter().map(of_term).collect()
            }
            None => None,
        };
        if reduction.built_keys.is_empty() {
            let (count, values) = (usize::from(!matched.is_empty()), vec![]);
            let _reservation = reservation;
            return Ok(Self { side, numbers, count, values, weights, pairs, _reservation });
        }
        let keys = reduction.built_keys.iter();
        let keys: Vec<ArrayRef> = keys
            .map(|key| key.evaluate(&batch)?.into_array(batch.num_rows()))
            .collect::<Result<_>>()?;
        let field = |key: &ArrayRef| Field::new("", key.data_type().clone(), true);
        let schema = Arc::new(Schema::new(keys.iter().map(field).collect::<Vec<_>>()));
        // DataFusion's own grouping decides which keys are equal.
        let mut distinct = new_group_values(schema, &GroupOrdering::None)?;
        let mut found = vec![];
        distinct.intern(&keys, &mut found)?;
        reservation.try_grow(distinct.size())?;
        for (row, number) in matched.values().iter().zip(found) {
            numbers[*row as usize] = number as u32;
        }
        let count = distinct.len();
        let values = match count {
            0 => keys.iter().map(|key| key.slice(0, 0)).collect(),
            _ => distinct.emit(EmitTo::All)?,
        };
        Ok(Self { side, numbers, count, values, weights, pairs, _reservation: reservation })
    }

    /// Returns the values of a key of the groups with these numbers.
    pub(super) fn key(&self, key: usize, numbers: Vec<u32>) -> Result<ArrayRef> {
        Ok(take(&self.values[key], &UInt32Array::from(numbers), None)?)
    }
}

/// Returns the weight of each of `rows` rows, and NaN for rows that do not count. `batch` has the rows with these numbers. `None` if a
/// weight is infinite, NaN or fails.
fn weights(
    term: &RowTerm,
    batch: &RecordBatch,
    matched: &UInt32Array,
    rows: usize,
) -> Option<Vec<f64>> {
    let passes = term.filter.as_ref().map(|filter| satisfied(filter, batch)).transpose().ok()?;
    let evaluate = |weight: &PhysicalExprRef| {
        weight.evaluate(batch).and_then(|it| it.into_array(batch.num_rows()))
    };
    let weight = term.weight.as_ref().map(evaluate).transpose().ok()?;
    let nulls = weight.as_ref().and_then(|weight| weight.logical_nulls());
    let doubles = weight.as_ref().filter(|_| !term.is_count);
    let doubles = doubles.map(|it| it.as_primitive_opt::<Float64Type>());
    let mut weights = vec![f64::NAN; rows];
    for (at, row) in matched.values().iter().enumerate() {
        let counts = passes.as_ref().is_none_or(|passes| passes.value(at))
            && nulls.as_ref().is_none_or(|nulls| nulls.is_valid(at));
        if counts {
            let weight = doubles.map_or(Some(1.0), |doubles| doubles.map(|it| it.value(at)))?;
            if !weight.is_finite() {
                return None;
            }
            weights[*row as usize] = weight;
        }
    }
    Some(weights)
}

/// Returns the number of pairs of the matched rows and cells.
fn pairs(reduction: &JoinReduction, side: &BuildSide, matched: &[u32]) -> u64 {
    let lookup = &reduction.lookup;
    let selection = lookup.scan.plan().selection().axes();
    let is_joined = |axis: &usize| lookup.keys.iter().any(|keys| keys.axis == *axis);
    let others = (0..selection.len()).filter(|axis| !is_joined(axis));
    let others = others.map(|axis| selection[axis].count()).fold(1, u64::saturating_mul);
    // Per axis of the join, how many labels have each number; `None` if each has its own.
    let labels: Vec<Option<Vec<u64>>> = lookup
        .keys
        .iter()
        .map(|keys| match &lookup.groups[keys.axis] {
            AxisGroups::Numbered { numbers, groups } => {
                let mut labels = vec![0; *groups as usize];
                numbers.iter().for_each(|number| labels[*number as usize] += 1);
                Some(labels)
            }
            AxisGroups::Each => None,
            AxisGroups::One => Some(vec![selection[keys.axis].count()]),
        })
        .collect();
    let of_row = |row: &u32| {
        let of_axes = labels.iter().zip(&side.numbers).map(|(labels, numbers)| {
            match (labels, numbers[*row as usize]) {
                (Some(labels), Some(number)) => labels[number as usize],
                _ => 1,
            }
        });
        of_axes.fold(others, u64::saturating_mul)
    };
    matched.iter().map(of_row).fold(0, u64::saturating_add)
}
