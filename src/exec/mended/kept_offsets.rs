//! The rules `GridKeptOffsets` and `GridOpenOffsets`: an `OFFSET` below operators that need another order of its rows.
//!
//! DataFusion sorts below the limit what is to be sorted above it, although the limit then skips other rows, or skips rows twice:
//!
//! ```text
//!   SortExec  x, y                     GlobalLimitExec  skip=2               SortExec  x, y
//!     GlobalLimitExec  skip=2     ▶      SortExec  x, y, fetch=2     or        OffsetBarrierExec
//!       SortExec  x, fetch=4             what DataFusion makes                   GlobalLimitExec  skip=2
//!                                                                                  SortExec  x, fetch=4
//! ```
//!
//! A barrier stands there only while `EnsureRequirements` runs: it declares no order, and needs the one that the limit has.

use std::sync::Arc;

use datafusion::common::tree_node::TransformedResult;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{
    Distribution, EquivalenceProperties, LexRequirement, OrderingRequirements,
};
use datafusion::physical_optimizer::output_requirements::OutputRequirementExec;
use datafusion::physical_plan::execution_plan::{
    ChildrenPropertiesMode, EmissionType, ReplaceChildrenOptions,
};
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, Partitioning};

use crate::exec::operator::{Frame, Operator, declared, operator_methods, shown_by_text};
use crate::exec::rules::walk::up;

/// Puts a barrier above each `OFFSET` that is below a sort, or below another operator that needs an order.
pub(in crate::exec) fn with_kept_offsets(
    plan: Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    Ok(kept(&plan, false)?.unwrap_or(plan))
}

/// Takes the barriers away.
pub(in crate::exec) fn with_open_offsets(
    plan: Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    up(plan, |node| {
        Ok(node.downcast_ref::<OffsetBarrierExec>().map(|barrier| Arc::clone(&barrier.input)))
    })
    .data()
}

/// Returns `plan` with barriers; `None` if it has none.
fn kept(
    plan: &Arc<dyn ExecutionPlan>,
    is_below_order: bool,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let needs_order = is_below_order || needs_order(plan.as_ref());
    let mut is_changed = false;
    let mut inputs = vec![];
    for input in plan.children() {
        let changed = kept(input, needs_order)?;
        is_changed |= changed.is_some();
        inputs.push(changed.unwrap_or_else(|| Arc::clone(input)));
    }
    let changed = match is_changed {
        true => {
            let recompute = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
            Some(Arc::clone(plan).replace_children(inputs, recompute)?)
        }
        false => None,
    };
    let skips = plan.downcast_ref::<GlobalLimitExec>().is_some_and(|limit| limit.skip() > 0);
    if skips && is_below_order {
        let limit = changed.unwrap_or_else(|| Arc::clone(plan));
        return Ok(Some(Arc::new(OffsetBarrierExec::new(limit))));
    }
    Ok(changed)
}

/// Whether an operator needs an order, besides that which the query asks for at its end: the limit has that order itself.
fn needs_order(plan: &dyn ExecutionPlan) -> bool {
    plan.is::<SortExec>()
        || !plan.is::<OutputRequirementExec>()
            && plan.required_input_ordering().iter().any(Option::is_some)
}

/// Passes rows on, and hides that they are those of a limit.
#[derive(Debug, Clone)]
struct OffsetBarrierExec {
    input: Arc<dyn ExecutionPlan>,
    frame: Frame,
}

impl OffsetBarrierExec {
    fn new(input: Arc<dyn ExecutionPlan>) -> Self {
        let properties = declared(
            EquivalenceProperties::new(input.schema()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
        );
        Self { input, frame: Frame::new(properties) }
    }
}

shown_by_text!(OffsetBarrierExec);

impl Operator for OffsetBarrierExec {
    fn frame(&self) -> &Frame {
        &self.frame
    }

    fn with_frame(&self, frame: Frame) -> Self {
        Self { frame, ..self.clone() }
    }

    fn inputs(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn over(&self, inputs: &[Arc<dyn ExecutionPlan>]) -> Result<Self> {
        let input = inputs.first().unwrap_or(&self.input);
        Ok(Self::new(Arc::clone(input)))
    }

    fn stream(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }
}

impl ExecutionPlan for OffsetBarrierExec {
    operator_methods!();

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![Distribution::SinglePartition]
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        let order = self.input.output_ordering().cloned();
        vec![order.map(|order| OrderingRequirements::from(LexRequirement::from(order)))]
    }
}
