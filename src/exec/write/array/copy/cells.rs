//! [`GridCellsExec`]: the cells that an array's sink copies, as an operator of plans.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::common::internal_err;
use datafusion::common::tree_node::TransformedResult;
use datafusion::datasource::sink::DataSinkExec;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::EmissionType;
use futures::stream::once;

use super::super::sink::ArraySink;
use super::CopiedArray;
use crate::exec::batches::stream_of;
use crate::exec::display;
use crate::exec::metrics::ScanMetrics;
use crate::exec::operator::{Frame, Operator, declared, operator_methods, shown_by_text};
use crate::exec::rules::walk::down;

/// The cells of an array that a sink takes chunk by chunk. The operator has no rows of its own.
#[derive(Debug, Clone)]
pub(in crate::exec::write::array) struct GridCellsExec {
    copied: Arc<CopiedArray>,
    frame: Frame,
}

/// Lets sinks of arrays copy the cells of arrays, where these are all that they write.
pub(crate) fn copy_arrays(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    down(plan, |node| {
        let Some(writes) = node.downcast_ref::<DataSinkExec>() else { return Ok(None) };
        let Some(sink) = writes.sink().downcast_ref::<ArraySink>() else { return Ok(None) };
        let Some(copied) = sink.copied_from(writes.input())? else { return Ok(None) };
        let cells = GridCellsExec::new(Arc::new(copied), writes.input().schema());
        let sink = sink.copying(cells.clone());
        Ok(Some(Arc::new(DataSinkExec::new(Arc::new(cells), Arc::new(sink), None)) as _))
    })
    .data()
}

impl GridCellsExec {
    fn new(copied: Arc<CopiedArray>, schema: SchemaRef) -> Self {
        let (order, one) =
            (EquivalenceProperties::new(schema), Partitioning::UnknownPartitioning(1));
        let frame = Frame::new(declared(order, one, EmissionType::Incremental));
        Self { copied, frame }
    }

    /// Returns the array that is copied.
    pub(in crate::exec::write::array) fn copied(&self) -> &Arc<CopiedArray> {
        &self.copied
    }

    /// Returns the metrics of the reader of each partition.
    pub(super) fn metrics_of(&self, partitions: usize) -> Vec<Arc<ScanMetrics>> {
        let plan = self.copied.scan.plan();
        let of = |partition| {
            ScanMetrics::new(self.frame.metrics(), partition, plan.grid(), plan.pruned())
        };
        (0..partitions).map(|partition| Arc::new(of(partition))).collect()
    }
}

shown_by_text!(GridCellsExec);

impl Operator for GridCellsExec {
    fn frame(&self) -> &Frame {
        &self.frame
    }

    fn with_frame(&self, frame: Frame) -> Self {
        Self { frame, ..self.clone() }
    }

    fn text(&self) -> Vec<String> {
        let scan = &self.copied.scan;
        let mut parts = display::parts(scan.array(), scan.plan());
        parts.push(display::projection(&self.schema()));
        parts
    }

    fn stream(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let failed = once(async { internal_err!("cells that are copied were asked for as rows") });
        Ok(stream_of(self.schema(), failed))
    }
}

impl ExecutionPlan for GridCellsExec {
    operator_methods!();
}
