//! Joins that look up rows as messages, and back.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::common::JoinSide;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::joins::HashJoinExec;

use super::converters::{Decoder, Encoder};
use super::declarations::Declarations;
use super::messages::{Lookup, Node};
use super::recipe::Recipe;
use super::travelled_exec::with_nodes_made;
use crate::error::Error;
use crate::exec::GridLookupExec;

/// How to make a join that looks up rows.
#[derive(Debug, Clone)]
pub(super) struct LookupRecipe {
    /// The join that it replaces, with nothing on the side that is looked up. The scan may be one that travelled.
    join: Arc<dyn ExecutionPlan>,
    side: JoinSide,
    projection: Vec<u64>,
    input: Arc<dyn ExecutionPlan>,
}

impl LookupRecipe {
    /// Returns how to make a lookup again.
    pub(super) fn try_new(lookup: &GridLookupExec) -> Result<Self> {
        let [input] = lookup.children().try_into().map_err(|_| corrupt())?;
        let nothing = Arc::new(EmptyExec::new(input.schema()));
        let join = with_other_side(lookup.join(), lookup.side(), nothing)?;
        let projection = lookup.projection().iter().map(|column| *column as u64).collect();
        Ok(Self { join, side: lookup.side(), projection, input: Arc::clone(input) })
    }

    /// Returns the recipe of a message about a lookup over its input, which travelled on its own.
    pub(super) fn from_message(
        message: &Lookup,
        inputs: &[Arc<dyn ExecutionPlan>],
        decoder: Decoder<'_>,
    ) -> Result<Self> {
        let [input] = inputs else { return Err(corrupt().into()) };
        let side = if message.is_left { JoinSide::Left } else { JoinSide::Right };
        let (projection, input) = (message.projection.clone(), Arc::clone(input));
        Ok(Self { join: decoder.plan(&message.join)?, side, projection, input })
    }
}

fn corrupt() -> Error {
    Error::corrupt_region("plan", "a lookup is no join with one input")
}

/// Returns a join with another input on the side that is not `side`.
fn with_other_side(
    join: &Arc<dyn ExecutionPlan>,
    side: JoinSide,
    input: Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let of = join.downcast_ref::<HashJoinExec>().ok_or_else(corrupt)?;
    let children = match side {
        JoinSide::Left => vec![Arc::clone(of.left()), input],
        _ => vec![input, Arc::clone(of.right())],
    };
    let recompute = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    Arc::clone(join).replace_children(children, recompute)
}

#[async_trait]
impl Recipe for LookupRecipe {
    fn message(&self, encoder: Encoder<'_>) -> Result<Node> {
        let is_left = self.side == JoinSide::Left;
        let projection = self.projection.clone();
        Ok(Node::Lookup(Lookup { join: encoder.plan(&self.join)?, is_left, projection }))
    }

    async fn make(
        &self,
        declared: &Declarations,
        context: &Arc<TaskContext>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let join = with_nodes_made(Arc::clone(&self.join), context).await?;
        let input = with_nodes_made(Arc::clone(&self.input), context).await?;
        let join = with_other_side(&join, self.side, input)?;
        let projection = self.projection.iter().map(|column| *column as usize).collect();
        let lookup = GridLookupExec::as_planned(&join, self.side, projection)?;
        Ok(Arc::new(lookup.with_filters(declared.frame.filters().to_vec())))
    }

    fn nested(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.join]
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
