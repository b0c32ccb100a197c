//! [`JsonFloatsRule`]: files of JSON keep infinity and NaN.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::datasource::file_format::json::JsonSink;
use datafusion::datasource::physical_plan::FileSink;
use datafusion::datasource::sink::DataSinkExec;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;

use super::json_sink::FloatsJsonSink;

/// Replaces DataFusion's sink of JSON by one that writes infinity and NaN as texts, for `COPY` and `INSERT`.
#[derive(Debug)]
pub struct JsonFloatsRule;

impl PhysicalOptimizerRule for JsonFloatsRule {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let sinks = plan.transform_up(|node| {
            let Some(exec) = node.downcast_ref::<DataSinkExec>() else {
                return Ok(Transformed::no(node));
            };
            let Some(sink) = exec.sink().downcast_ref::<JsonSink>() else {
                return Ok(Transformed::no(node));
            };
            let sink = FloatsJsonSink::new(sink.config().clone(), sink.writer_options().clone());
            let (input, order) = (Arc::clone(exec.input()), exec.sort_order().clone());
            Ok(Transformed::yes(Arc::new(DataSinkExec::new(input, Arc::new(sink), order)) as _))
        })?;
        Ok(sinks.data)
    }

    fn name(&self) -> &'static str {
        "gridfusion_json_floats"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
