//! Aggregations above joins that look up rows as messages, and back.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};

use super::converters::{Decoder, Encoder};
use super::declarations::Declarations;
use super::messages::{JoinReduce, Node};
use super::recipe::Recipe;
use super::travelled_exec::with_nodes_made;
use crate::error::Error;
use crate::exec::{GridJoinReduceExec, GridLookupExec};

/// How to make an aggregation above a join that looks up rows.
#[derive(Debug, Clone)]
pub(super) struct JoinReduceRecipe {
    /// The aggregation over rows that it replaces, above a lookup of nothing. The lookup may be one that travelled.
    rows: Arc<dyn ExecutionPlan>,
    is_whole: bool,
    input: Arc<dyn ExecutionPlan>,
}

impl JoinReduceRecipe {
    /// Returns how to make an aggregation again.
    pub(super) fn try_new(reduce: &GridJoinReduceExec) -> Result<Self> {
        let [input] = reduce.children().try_into().map_err(|_| corrupt())?;
        let nothing: Arc<dyn ExecutionPlan> = Arc::new(EmptyExec::new(input.schema()));
        let rows = with_looked_up(Arc::new(reduce.rows()?), &nothing)?;
        Ok(Self { rows, is_whole: reduce.is_whole(), input: Arc::clone(input) })
    }

    /// Returns the recipe of a message about an aggregation over its input, which travelled on its own.
    pub(super) fn from_message(
        message: &JoinReduce,
        inputs: &[Arc<dyn ExecutionPlan>],
        decoder: Decoder<'_>,
    ) -> Result<Self> {
        let [input] = inputs else { return Err(corrupt().into()) };
        let (rows, input) = (decoder.plan(&message.rows)?, Arc::clone(input));
        Ok(Self { rows, is_whole: message.is_whole, input })
    }
}

fn corrupt() -> Error {
    Error::corrupt_region("plan", "an aggregation of a join has no join with one input")
}

/// Returns a plan with another input of its lookup.
fn with_looked_up(
    plan: Arc<dyn ExecutionPlan>,
    input: &Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let replace = |node: Arc<dyn ExecutionPlan>| {
        if !node.is::<GridLookupExec>() {
            return Ok(Transformed::no(node));
        }
        let keep = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        let node = node.replace_children(vec![Arc::clone(input)], keep)?;
        Ok(Transformed::new(node, true, TreeNodeRecursion::Jump))
    };
    plan.transform_down(replace).data()
}

#[async_trait]
impl Recipe for JoinReduceRecipe {
    fn message(&self, encoder: Encoder<'_>) -> Result<Node> {
        let (rows, is_whole) = (encoder.plan(&self.rows)?, self.is_whole);
        Ok(Node::JoinReduce(JoinReduce { rows, is_whole }))
    }

    async fn make(
        &self,
        declared: &Declarations,
        context: &Arc<TaskContext>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let rows = with_nodes_made(Arc::clone(&self.rows), context).await?;
        let input = with_nodes_made(Arc::clone(&self.input), context).await?;
        let rows = with_looked_up(rows, &input)?;
        let rows = rows.downcast_ref::<AggregateExec>().ok_or_else(corrupt)?;
        let whole = self.is_whole.then(|| Arc::clone(declared.schema()));
        Ok(Arc::new(GridJoinReduceExec::as_planned(rows, whole)?))
    }

    fn nested(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.rows]
    }

    fn has_scan(&self) -> bool {
        true
    }

    fn inputs(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn with_inputs(&self, inputs: &[Arc<dyn ExecutionPlan>]) -> Option<Arc<dyn Recipe>> {
        let [input] = inputs else { return None };
        Some(Arc::new(Self { input: Arc::clone(input), ..self.clone() }))
    }
}
