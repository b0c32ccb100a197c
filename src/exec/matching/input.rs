//! [`InputOperators`]: projections, filters and the like below an operator, as expressions over their input.

use std::sync::Arc;

use arrow::datatypes::Field;
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::Column as PhysicalColumn;
use datafusion::physical_expr::projection::ProjectionExpr;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, Partitioning};

use crate::exec::columns::replace_columns;

/// The operators between an aggregation and an input, such as a scan, as expressions over the columns of that input.
pub(in crate::exec) struct InputOperators {
    pub(in crate::exec) input: Arc<dyn ExecutionPlan>,
    /// The input columns of the aggregation, over the input's columns.
    pub(in crate::exec) columns: Vec<PhysicalExprRef>,
    /// The condition for rows to pass, over the input's columns.
    pub(in crate::exec) predicate: Option<PhysicalExprRef>,
}

impl InputOperators {
    /// Walks down from the node below the aggregation to the first one that `is_input`. `None` if an operator in between
    /// cannot be taken out.
    pub(in crate::exec) fn above(
        plan: &Arc<dyn ExecutionPlan>,
        is_input: &dyn Fn(&dyn ExecutionPlan) -> bool,
    ) -> Result<Option<Self>> {
        if is_input(plan.as_ref()) {
            // At the input, every column is itself. Each operator on the way back up rewrites them.
            let fields = plan.schema();
            let column = |(at, field): (usize, &Arc<_>)| column(field, at);
            let columns = fields.fields().iter().enumerate().map(column).collect();
            return Ok(Some(Self { input: Arc::clone(plan), columns, predicate: None }));
        }
        if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
            let Some(mut below) = Self::above(projection.input(), is_input)? else {
                return Ok(None);
            };
            let over_input = |projected: &ProjectionExpr| below.over_input(&projected.expr);
            below.columns = projection.expr().iter().map(over_input).collect::<Result<_>>()?;
            return Ok(Some(below));
        }
        if let Some(filter) = plan.downcast_ref::<FilterExec>() {
            if filter.fetch().is_some() {
                return Ok(None);
            }
            let Some(mut below) = Self::above(filter.input(), is_input)? else { return Ok(None) };
            if below.predicate.is_some() {
                // The outer filter may fail on rows that the inner one removes.
                return Ok(None);
            }
            below.predicate = Some(below.over_input(filter.predicate())?);
            if let Some(kept) = filter.projection() {
                below.columns = kept.iter().map(|&at| Arc::clone(&below.columns[at])).collect();
            }
            return Ok(Some(below));
        }
        // These operators pass on rows unchanged, only in other partitions.
        let passes = plan.is::<CooperativeExec>()
            || plan.is::<RepartitionExec>()
                && matches!(plan.output_partitioning(), Partitioning::RoundRobinBatch(_));
        match plan.children().as_slice() {
            [below] if passes => Self::above(below, is_input),
            _ => Ok(None),
        }
    }

    /// Rewrites `expr`, which is over the aggregation's input columns, over the columns of the input.
    pub(in crate::exec) fn over_input(&self, expr: &PhysicalExprRef) -> Result<PhysicalExprRef> {
        replace_columns(expr, &|column| self.columns.get(column.index()).cloned())
    }
}

fn column(field: &Field, at: usize) -> PhysicalExprRef {
    Arc::new(PhysicalColumn::new(field.name(), at))
}
