//! Windows along a dimension as messages, and back.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;

use super::converters::{Decoder, Encoder};
use super::declarations::Declarations;
use super::messages::{Node, PartOf, Window};
use super::recipe::Recipe;
use super::travelled_exec::with_nodes_made;
use crate::exec::{GridWindowExec, WindowPart, ignored_nulls, with_ignored_nulls};

/// How to make a window along a dimension.
#[derive(Debug, Clone)]
pub(super) struct WindowRecipe {
    /// The window over rows that it replaces. Its scan may be one that travelled.
    rows: Arc<dyn ExecutionPlan>,
    parts: Vec<PartOf>,
    projection: Vec<u64>,
}

impl WindowRecipe {
    /// Returns how to make a window again.
    pub(super) fn new(window: &GridWindowExec) -> Self {
        let part = |part: &WindowPart| PartOf {
            first_column: part.columns.start,
            end_column: part.columns.end,
            first_chunk: part.chunks.start as u64,
            end_chunk: part.chunks.end as u64,
        };
        Self {
            rows: Arc::clone(window.rows()),
            parts: window.parts().iter().map(part).collect(),
            projection: window.projection().iter().map(|column| *column as u64).collect(),
        }
    }

    /// Returns the recipe of a message.
    pub(super) fn from_message(message: Window, decoder: Decoder<'_>) -> Result<Self> {
        let Window { rows, parts, projection, ignored_nulls } = message;
        let rows = with_ignored_nulls(decoder.plan(&rows)?, &ignored_nulls)?;
        Ok(Self { rows, parts, projection })
    }
}

#[async_trait]
impl Recipe for WindowRecipe {
    fn message(&self, encoder: Encoder<'_>) -> Result<Node> {
        Ok(Node::Window(Window {
            rows: encoder.plan(&self.rows)?,
            parts: self.parts.clone(),
            projection: self.projection.clone(),
            ignored_nulls: ignored_nulls(self.rows.as_ref())?,
        }))
    }

    async fn make(
        &self,
        _: &Declarations,
        context: &Arc<TaskContext>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let rows = with_nodes_made(Arc::clone(&self.rows), context).await?;
        let part = |part: &PartOf| WindowPart {
            columns: part.first_column..part.end_column,
            chunks: part.first_chunk as usize..part.end_chunk as usize,
        };
        let parts = self.parts.iter().map(part).collect();
        let projection = self.projection.iter().map(|column| *column as usize).collect();
        Ok(Arc::new(GridWindowExec::as_planned(&rows, parts, projection)?))
    }

    fn nested(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.rows]
    }
}
