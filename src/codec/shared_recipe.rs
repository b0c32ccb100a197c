//! [`SharedRecipe`]: how to make a join of a share of an array's chunks.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;

use super::converters::Encoder;
use super::declarations::Declarations;
use super::messages::Node;
use super::recipe::Recipe;

/// The recipe of a join, beside an input that stands for its share of the chunks.
#[derive(Debug, Clone)]
pub(super) struct SharedRecipe {
    join: Arc<dyn Recipe>,
    share: Arc<dyn ExecutionPlan>,
}

impl SharedRecipe {
    pub(super) fn new(join: Arc<dyn Recipe>, share: Arc<dyn ExecutionPlan>) -> Self {
        Self { join, share }
    }

    /// Returns the recipe of a join over its first input. A second one stands for its share.
    pub(super) fn over(
        inputs: &[Arc<dyn ExecutionPlan>],
        join: impl Fn(&[Arc<dyn ExecutionPlan>]) -> Result<Arc<dyn Recipe>>,
    ) -> Result<Arc<dyn Recipe>> {
        Ok(match inputs {
            [rows, share] => {
                let join = join(std::slice::from_ref(rows))?;
                Arc::new(Self { join, share: Arc::clone(share) })
            }
            _ => join(inputs)?,
        })
    }
}

#[async_trait]
impl Recipe for SharedRecipe {
    fn message(&self, encoder: Encoder<'_>) -> Result<Node> {
        self.join.message(encoder)
    }

    async fn make(
        &self,
        declared: &Declarations,
        context: &Arc<TaskContext>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.join.make(declared, context).await
    }

    fn inputs(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.join.inputs().into_iter().chain([&self.share]).collect()
    }

    fn nested(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.join.nested()
    }

    fn with_inputs(&self, inputs: &[Arc<dyn ExecutionPlan>]) -> Option<Arc<dyn Recipe>> {
        let [rows, share] = inputs else { return None };
        let join = self.join.with_inputs(std::slice::from_ref(rows))?;
        Some(Arc::new(Self { join, share: Arc::clone(share) }))
    }

    fn has_scan(&self) -> bool {
        self.join.has_scan()
    }
}
