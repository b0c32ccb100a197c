//! [`BuildSide`]: the rows of the other side of a join, by the numbers of their keys along the axes of the array.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::{Field, Schema};
use datafusion::common::internal_err;
use datafusion::common::utils::memory::RecordBatchMemoryCounter;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_plan::aggregates::group_values::new_group_values;
use datafusion::physical_plan::aggregates::order::GroupOrdering;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use futures::TryStreamExt;
use futures::future::{BoxFuture, Shared};

use super::grid_lookup::{AxisKeys, GridLookup};

/// The rows that are looked up. All partitions share them.
pub(in crate::exec) struct BuildSide {
    pub(in crate::exec) rows: RecordBatch,
    /// Per axis with keys, the number of each row; `None` for rows that match no label.
    pub(in crate::exec) numbers: Vec<Vec<Option<u32>>>,
    _reservation: MemoryReservation,
}

/// The rows of the other side, which the first partition to need them reads.
pub(in crate::exec) type SharedRows =
    Shared<BoxFuture<'static, std::result::Result<Arc<BuildSide>, Arc<DataFusionError>>>>;

impl BuildSide {
    /// Reads all rows of `input`, which has one partition.
    ///
    /// # Errors
    /// If the input fails, or the memory pool refuses memory for its rows.
    pub(super) async fn read(
        lookup: Arc<GridLookup>,
        input: Arc<dyn ExecutionPlan>,
        context: Arc<TaskContext>,
    ) -> Result<Self> {
        let consumer = MemoryConsumer::new("GridLookupExec: rows");
        let reservation = consumer.register(context.memory_pool());
        let schema = input.schema();
        if input.output_partitioning().partition_count() != 1 {
            return internal_err!("the rows of a lookup are in several partitions");
        }
        let mut batches = vec![];
        // Batches may be slices of the same memory.
        let mut memory = RecordBatchMemoryCounter::new();
        let mut stream = input.execute(0, context)?;
        while let Some(batch) = stream.try_next().await? {
            // The numbers of keys, on the way and as they stay.
            let numbers = batch.num_rows() * lookup.keys.len() * 2 * size_of::<Option<u32>>();
            reservation.try_grow(memory.count_batch(&batch) + numbers)?;
            batches.push(batch);
        }
        // All rows become one batch.
        reservation.try_grow(batches.iter().map(sliced_size).sum())?;
        let rows = concat_batches(&schema, &batches)?;
        drop(batches);
        if u32::try_from(rows.num_rows()).is_err() {
            return internal_err!("a join with more rows than can be numbered");
        }
        let null_equals_null = lookup.null_equals_null;
        let numbers =
            lookup.keys.iter().map(|keys| numbers(keys, &rows, null_equals_null, &reservation));
        Ok(Self { numbers: numbers.collect::<Result<_>>()?, rows, _reservation: reservation })
    }
}

/// Returns the bytes of the rows of a batch, which may be a slice of longer columns.
fn sliced_size(batch: &RecordBatch) -> usize {
    let size = |column: &ArrayRef| column.to_data().get_slice_memory_size().unwrap_or_default();
    batch.columns().iter().map(size).sum()
}

/// Returns the number of each row's keys among those of an axis.
fn numbers(
    keys: &AxisKeys,
    rows: &RecordBatch,
    null_equals_null: bool,
    reservation: &MemoryReservation,
) -> Result<Vec<Option<u32>>> {
    let field = |values: &ArrayRef| Field::new("", values.data_type().clone(), true);
    let schema = Arc::new(Schema::new(keys.values.iter().map(field).collect::<Vec<_>>()));
    // DataFusion's own grouping decides which keys are equal, as it has for the labels.
    let mut distinct = new_group_values(schema, &GroupOrdering::None)?;
    let mut found = vec![];
    distinct.intern(&keys.values, &mut found)?;
    let known = found.len();
    if !found.iter().copied().eq(0..known) {
        return internal_err!("keys of labels are not distinct");
    }
    let evaluate = |key: &PhysicalExprRef| -> Result<ArrayRef> {
        key.evaluate(rows)?.into_array(rows.num_rows())
    };
    let built: Vec<ArrayRef> = keys.built.iter().map(evaluate).collect::<Result<_>>()?;
    distinct.intern(&built, &mut found)?;
    // Keys that match no label are there, too, until all rows have their numbers.
    let interned = distinct.size();
    reservation.try_grow(interned)?;
    reservation.shrink(interned);
    let nulls: Vec<_> = match null_equals_null {
        true => vec![],
        false => built.iter().filter_map(|key| key.logical_nulls()).collect(),
    };
    let is_null = |row: usize| nulls.iter().any(|nulls| nulls.is_null(row));
    let number = |(row, number): (usize, &usize)| {
        (*number < known && !is_null(row)).then_some(*number as u32)
    };
    Ok(found.iter().enumerate().map(number).collect())
}
