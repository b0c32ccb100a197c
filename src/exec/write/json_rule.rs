//! The rule `gridfusion_json_floats`: files of JSON keep infinity and NaN.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::TransformedResult;
use datafusion::datasource::file_format::json::JsonSink;
use datafusion::datasource::physical_plan::FileSink;
use datafusion::datasource::sink::DataSinkExec;
use datafusion::physical_plan::ExecutionPlan;

use super::json_sink::FloatsJsonSink;
use crate::exec::rules::walk::up;

/// Replaces DataFusion's sink of JSON by one that writes infinity and NaN as texts, for `COPY` and `INSERT`.
pub(in crate::exec) fn with_json_floats(
    plan: Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    up(plan, |node| {
        let Some(exec) = node.downcast_ref::<DataSinkExec>() else { return Ok(None) };
        let Some(sink) = exec.sink().downcast_ref::<JsonSink>() else { return Ok(None) };
        let sink = FloatsJsonSink::new(sink.config().clone(), sink.writer_options().clone());
        let (input, order) = (Arc::clone(exec.input()), exec.sort_order().clone());
        Ok(Some(Arc::new(DataSinkExec::new(input, Arc::new(sink), order)) as _))
    })
    .data()
}
