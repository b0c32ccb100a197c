//! [`GridTopExec`]: the operator that leaves out rows which cannot be among the first of their partition.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::CardinalityEffect;

use super::grid_top::GridTop;
use super::stream;
use super::top_of::TopOf;
use crate::error::Error;
use crate::exec::operator::{Frame, Operator, operator_methods, shown_by_text};
use crate::exec::{GridScanExec, display, order};

/// An operator that leaves out the rows of a scan which cannot be among the first of their partition of a window. The others stay
/// in the order of the scan, and the window above numbers them.
///
/// ```text
/// GridTopExec: first=3, by=value@3 DESC, gby=[lat@1], dataset=sst, chunks=240/240, projection=[time, lat, lon, value]
/// ```
///
/// The rule `GridTop` plans the operator. It has no children: it holds the scan's array and plan, so no
/// optimizer rule that runs later changes either.
#[derive(Debug, Clone)]
pub struct GridTopExec {
    grid_top: Arc<GridTop>,
    frame: Frame,
}

impl GridTopExec {
    /// Makes the operator. `None` if a key is not over one dimension, or the sort key has no order that can be compared.
    pub(super) fn over(scan: &GridScanExec, top: TopOf) -> Result<Option<Self>> {
        let Some(grid_top) = GridTop::try_new(scan, top)? else { return Ok(None) };
        let (array, plan) = (scan.array(), scan.plan());
        let properties = order::properties(array, plan, &scan.columns(), scan.schema_ref(), &[])?;
        Ok(Some(Self { grid_top: Arc::new(grid_top), frame: Frame::new(properties) }))
    }

    /// Returns the bytes that the best keys take in all partitions of the plan.
    pub(super) fn bytes(&self) -> u64 {
        self.grid_top.bytes()
    }

    /// Makes an operator that was planned before.
    ///
    /// # Errors
    /// `Unsupported` if it cannot be made here.
    pub fn as_planned(scan: &GridScanExec, top: TopOf) -> Result<Self> {
        let message = "the first rows of partitions cannot be found here as it was planned";
        Ok(Self::over(scan, top)?.ok_or_else(|| Error::unsupported(message))?)
    }

    /// Returns `count` operators over shares of the scan.
    ///
    /// # Errors
    /// Internal errors only.
    pub fn shares(&self, count: usize) -> Result<Vec<Self>> {
        let shares = self.grid_top.scan.shares(count)?.into_iter();
        shares.map(|scan| Self::as_planned(&scan, self.grid_top.top.clone())).collect()
    }

    /// Returns the scan whose rows are read.
    pub fn scan(&self) -> &GridScanExec {
        &self.grid_top.scan
    }

    /// Returns the rows to keep.
    pub fn top(&self) -> &TopOf {
        &self.grid_top.top
    }
}

shown_by_text!(GridTopExec);

impl Operator for GridTopExec {
    fn frame(&self) -> &Frame {
        &self.frame
    }

    fn with_frame(&self, frame: Frame) -> Self {
        Self { frame, ..self.clone() }
    }

    fn text(&self) -> Vec<String> {
        let TopOf { count, partition_by, order, predicate, .. } = &self.grid_top.top;
        let scan = &self.grid_top.scan;
        let keys: Vec<String> = partition_by.iter().map(ToString::to_string).collect();
        let mut parts = vec![
            format!("first={count}"),
            format!("by={order}"),
            format!("gby=[{}]", keys.join(", ")),
        ];
        parts.extend(predicate.as_ref().map(|predicate| format!("predicate={predicate}")));
        parts.extend(display::parts(scan.array(), scan.plan()));
        parts.push(display::projection(scan.schema_ref()));
        parts
    }

    fn expressions(&self) -> Vec<PhysicalExprRef> {
        let TopOf { partition_by, order, predicate, .. } = &self.grid_top.top;
        partition_by.iter().chain([&order.expr]).chain(predicate).cloned().collect()
    }

    fn stream(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        stream::rows(&self.grid_top, partition, self.frame.metrics(), &context)
    }
}

impl ExecutionPlan for GridTopExec {
    operator_methods!();

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::LowerEqual
    }
}
