//! Expressions and nested plans, through the converter that the engine hands in.
//!
//! The converter may know that one expression occurs several times, such as the dynamic filter of a join and of the scan
//! below it. It then makes one object of them again. So nothing here calls DataFusion's own functions instead.

use std::sync::Arc;

use arrow::compute::SortOptions;
use arrow::datatypes::Schema;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_expr::{PhysicalExprRef, PhysicalSortExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::physical_plan::{
    PhysicalExtensionCodec, PhysicalPlanDecodeContext, PhysicalProtoConverterExtension,
};
use datafusion_proto::protobuf::{PhysicalExprNode, PhysicalPlanNode, PhysicalSortExprNode};

use crate::error::Error;

/// Converts expressions and plans to messages.
#[derive(Clone, Copy)]
pub(super) struct Encoder<'a> {
    pub(super) codec: &'a dyn PhysicalExtensionCodec,
    pub(super) converter: &'a dyn PhysicalProtoConverterExtension,
}

impl Encoder<'_> {
    pub(super) fn expr(&self, expr: &PhysicalExprRef) -> Result<PhysicalExprNode> {
        self.converter.physical_expr_to_proto(expr, self.codec)
    }

    pub(super) fn exprs<'e>(
        &self,
        exprs: impl IntoIterator<Item = &'e PhysicalExprRef>,
    ) -> Result<Vec<PhysicalExprNode>> {
        exprs.into_iter().map(|expr| self.expr(expr)).collect()
    }

    pub(super) fn sort_keys(&self, keys: &[PhysicalSortExpr]) -> Result<Vec<PhysicalSortExprNode>> {
        let key = |key: &PhysicalSortExpr| {
            Ok(PhysicalSortExprNode {
                expr: Some(Box::new(self.expr(&key.expr)?)),
                asc: !key.options.descending,
                nulls_first: key.options.nulls_first,
            })
        };
        keys.iter().map(key).collect()
    }

    pub(super) fn plan(&self, plan: &Arc<dyn ExecutionPlan>) -> Result<PhysicalPlanNode> {
        self.converter.execution_plan_to_proto(plan, self.codec)
    }
}

/// Converts messages to expressions and plans.
#[derive(Clone, Copy)]
pub(super) struct Decoder<'a> {
    pub(super) codec: &'a dyn PhysicalExtensionCodec,
    pub(super) converter: &'a dyn PhysicalProtoConverterExtension,
    pub(super) context: &'a TaskContext,
}

impl<'a> Decoder<'a> {
    /// Returns what DataFusion's functions need.
    pub(super) fn decode_context(&self) -> PhysicalPlanDecodeContext<'a> {
        PhysicalPlanDecodeContext::new(self.context, self.codec)
    }

    /// Returns an expression over rows of `schema`.
    pub(super) fn expr(&self, node: &PhysicalExprNode, schema: &Schema) -> Result<PhysicalExprRef> {
        self.converter.proto_to_physical_expr(node, schema, &self.decode_context())
    }

    pub(super) fn exprs(
        &self,
        nodes: &[PhysicalExprNode],
        schema: &Schema,
    ) -> Result<Vec<PhysicalExprRef>> {
        nodes.iter().map(|node| self.expr(node, schema)).collect()
    }

    pub(super) fn sort_keys(
        &self,
        nodes: &[PhysicalSortExprNode],
        schema: &Schema,
    ) -> Result<Vec<PhysicalSortExpr>> {
        let key = |node: &PhysicalSortExprNode| {
            let expr = node.expr.as_deref();
            let expr =
                expr.ok_or_else(|| Error::corrupt_region("plan", "a sort key of nothing"))?;
            let options = SortOptions { descending: !node.asc, nulls_first: node.nulls_first };
            Ok(PhysicalSortExpr::new(self.expr(expr, schema)?, options))
        };
        nodes.iter().map(key).collect()
    }

    pub(super) fn plan(&self, node: &PhysicalPlanNode) -> Result<Arc<dyn ExecutionPlan>> {
        self.converter.proto_to_execution_plan(node, &self.decode_context())
    }
}
