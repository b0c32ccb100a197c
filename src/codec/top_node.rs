//! The first rows of partitions as messages, and back.

use std::sync::Arc;

use arrow::datatypes::Schema;
use async_trait::async_trait;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;

use super::converters::{Decoder, Encoder};
use super::declarations::Declarations;
use super::messages::{Node, Top};
use super::recipe::Recipe;
use super::travelled_exec::with_nodes_made;
use crate::error::Error;
use crate::exec::{GridScanExec, GridTopExec, TopOf};

/// How to make an operator that leaves out rows.
#[derive(Debug, Clone)]
pub(super) struct TopRecipe {
    /// The scan, which may be one that travelled.
    scan: Arc<dyn ExecutionPlan>,
    top: TopOf,
}

impl TopRecipe {
    /// Returns how to make the operator again.
    pub(super) fn new(top: &GridTopExec) -> Self {
        Self { scan: Arc::new(top.scan().clone()), top: top.top().clone() }
    }

    /// Returns the recipe of a message about an operator with this output, which is that of its scan.
    pub(super) fn from_message(
        message: &Top,
        schema: &Schema,
        decoder: Decoder<'_>,
    ) -> Result<Self> {
        let order = decoder.sort_keys(&message.order, schema)?.into_iter().next();
        let top = TopOf {
            count: usize::try_from(message.count).unwrap_or(usize::MAX),
            partition_by: decoder.exprs(&message.partition_by, schema)?,
            order: order.ok_or_else(|| Error::corrupt_region("plan", "no sort key"))?,
            predicate: decoder.exprs(&message.predicate, schema)?.into_iter().next(),
            any_of_ties: message.any_of_ties,
        };
        Ok(Self { scan: decoder.plan(&message.scan)?, top })
    }
}

#[async_trait]
impl Recipe for TopRecipe {
    fn message(&self, encoder: Encoder<'_>) -> Result<Node> {
        let TopOf { count, partition_by, order, predicate, any_of_ties } = &self.top;
        Ok(Node::Top(Top {
            scan: encoder.plan(&self.scan)?,
            count: *count as u64,
            partition_by: encoder.exprs(partition_by)?,
            order: encoder.sort_keys(std::slice::from_ref(order))?,
            predicate: encoder.exprs(predicate.as_slice())?,
            any_of_ties: *any_of_ties,
        }))
    }

    async fn make(
        &self,
        _: &Declarations,
        context: &Arc<TaskContext>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let scan = with_nodes_made(Arc::clone(&self.scan), context).await?;
        let scan = scan
            .downcast_ref::<GridScanExec>()
            .ok_or_else(|| Error::corrupt_region("plan", "the first rows of no scan"))?;
        Ok(Arc::new(GridTopExec::as_planned(scan, self.top.clone())?))
    }

    fn nested(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.scan]
    }
}
