//! Scans and reductions of grids as messages, and back.

use std::sync::Arc;

use arrow::compute::SortOptions;
use arrow::datatypes::Schema;
use async_trait::async_trait;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_expr::PhysicalSortExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;

use super::converters::{Decoder, Encoder};
use super::declarations::Declarations;
use super::messages::{First, Node, Origin, Plan, Reduce, Scan};
use super::numbers::{plan_message, plan_of};
use super::origins::origin_message;
use super::recipe::Recipe;
use super::tables;
use super::travelled_exec::with_nodes_made;
use crate::error::Error;
use crate::exec::{GridReduceExec, GridScanExec, PushedDown};

/// How to make a scan.
#[derive(Debug, Clone)]
pub(super) struct ScanRecipe {
    origin: Arc<Origin>,
    plan: Arc<Plan>,
    projection: Vec<u64>,
    ordering: Vec<PhysicalSortExpr>,
    non_null_columns: Vec<u64>,
    first: Option<First>,
}

fn numbers(columns: &[usize]) -> Vec<u64> {
    columns.iter().map(|column| *column as u64).collect()
}

fn columns(numbers: &[u64]) -> Vec<usize> {
    numbers.iter().map(|number| *number as usize).collect()
}

impl ScanRecipe {
    /// Returns how to make a scan again.
    ///
    /// # Errors
    /// As [`origin_message`].
    pub(super) fn try_new(scan: &GridScanExec) -> Result<Self> {
        let array = scan.array();
        let origin = scan.origin().map(Arc::as_ref);
        let pushed = scan.pushed_down();
        let first = pushed.priority.map(|(column, options)| First {
            column: column as u64,
            descending: options.descending,
            nulls_first: options.nulls_first,
        });
        Ok(Self {
            origin: Arc::new(origin_message(
                array.name(),
                origin,
                array.versions(),
                &array.contents(),
            )?),
            plan: Arc::new(plan_message(scan.plan())),
            projection: numbers(&pushed.projection),
            ordering: pushed.ordering,
            non_null_columns: numbers(&pushed.non_null_columns),
            first,
        })
    }

    /// Returns the recipe of a message about a scan with this output.
    pub(super) fn from_message(
        message: Scan,
        schema: &Schema,
        decoder: Decoder<'_>,
    ) -> Result<Self> {
        Ok(Self {
            ordering: decoder.sort_keys(&message.ordering, schema)?,
            origin: Arc::new(message.origin),
            plan: Arc::new(message.plan),
            projection: message.projection,
            non_null_columns: message.non_null_columns,
            first: message.first,
        })
    }
}

#[async_trait]
impl Recipe for ScanRecipe {
    fn message(&self, encoder: Encoder<'_>) -> Result<Node> {
        Ok(Node::Scan(Scan {
            origin: Origin::clone(&self.origin),
            plan: Plan::clone(&self.plan),
            projection: self.projection.clone(),
            ordering: encoder.sort_keys(&self.ordering)?,
            non_null_columns: self.non_null_columns.clone(),
            first: self.first,
        }))
    }

    async fn make(
        &self,
        declared: &Declarations,
        context: &Arc<TaskContext>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let table = tables::open(&self.origin, context).await?;
        let Some(table) = table.as_grid() else {
            let message = "it was made for a dense array, and the array is sparse";
            return Err(Error::corrupt_region("plan", message).into());
        };
        let array = table.array();
        let plan = plan_of(&self.plan, array.grid())?;
        let options = |first: First| SortOptions {
            descending: first.descending,
            nulls_first: first.nulls_first,
        };
        let pushed = PushedDown {
            projection: columns(&self.projection),
            ordering: self.ordering.clone(),
            filters: declared.frame.filters().to_vec(),
            non_null_columns: columns(&self.non_null_columns),
            priority: self.first.map(|first| (first.column as usize, options(first))),
        };
        let scan = GridScanExec::from_pushed_down(Arc::clone(&array), plan, pushed)?;
        Ok(Arc::new(scan))
    }
}

/// How to make a reduction.
#[derive(Debug, Clone)]
pub(super) struct ReduceRecipe {
    /// The aggregation over rows that it replaces. Its scan may be one that travelled.
    rows: Arc<dyn ExecutionPlan>,
    is_whole: bool,
    weighs: bool,
}

impl ReduceRecipe {
    /// Returns how to make a reduction again.
    pub(super) fn new(reduce: &GridReduceExec) -> Self {
        Self {
            rows: Arc::new(reduce.rows().clone()),
            is_whole: reduce.is_whole(),
            weighs: reduce.weighs(),
        }
    }

    /// Returns the recipe of a message.
    pub(super) fn from_message(message: &Reduce, decoder: Decoder<'_>) -> Result<Self> {
        Ok(Self {
            rows: decoder.plan(&message.rows)?,
            is_whole: message.is_whole,
            weighs: message.weighs,
        })
    }
}

#[async_trait]
impl Recipe for ReduceRecipe {
    fn message(&self, encoder: Encoder<'_>) -> Result<Node> {
        Ok(Node::Reduce(Reduce {
            rows: encoder.plan(&self.rows)?,
            is_whole: self.is_whole,
            weighs: self.weighs,
        }))
    }

    async fn make(
        &self,
        declared: &Declarations,
        context: &Arc<TaskContext>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let rows = with_nodes_made(Arc::clone(&self.rows), context).await?;
        let Some(rows) = rows.downcast_ref::<AggregateExec>() else {
            return Err(Error::corrupt_region("plan", "a reduction of no aggregation").into());
        };
        let whole = self.is_whole.then(|| Arc::clone(declared.schema()));
        let reduce = GridReduceExec::as_planned(rows, whole, self.weighs)?;
        Ok(Arc::new(reduce.with_filters(declared.frame.filters().to_vec())))
    }

    fn nested(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.rows]
    }
}
