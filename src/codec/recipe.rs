//! [`Recipe`]: how to make a node in another process.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;

use super::converters::Encoder;
use super::declarations::Declarations;
use super::messages::Node;

/// How to make one kind of node.
#[async_trait]
pub(super) trait Recipe: Debug + Send + Sync {
    /// Returns the recipe as a message.
    fn message(&self, encoder: Encoder<'_>) -> Result<Node>;

    /// Opens the table, and makes the node that declared this where it was planned.
    async fn make(
        &self,
        declared: &Declarations,
        context: &Arc<TaskContext>,
    ) -> Result<Arc<dyn ExecutionPlan>>;

    /// Returns the inputs of the node, which travel as plans of their own.
    fn inputs(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![]
    }

    /// Returns the plans that the recipe holds besides the inputs.
    fn nested(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![]
    }

    /// Returns the recipe of the same node over other inputs; `None` if it does not have so many.
    fn with_inputs(&self, inputs: &[Arc<dyn ExecutionPlan>]) -> Option<Arc<dyn Recipe>> {
        let _ = inputs;
        None
    }

    /// Whether the node has a scan of its own besides its inputs.
    fn has_scan(&self) -> bool {
        false
    }
}
