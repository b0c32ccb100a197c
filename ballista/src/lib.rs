//! A codec for Ballista, which has one codec for all extensions: nodes of gridfusion by [`GridfusionCodec`], and all others by
//! Ballista's own.

use std::sync::Arc;

use ballista_core::serde::BallistaPhysicalExtensionCodec;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::logical_expr::AggregateUDF;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};
use gridfusion::codec::GridfusionCodec;

/// Both codecs, of which gridfusion's is asked first.
#[derive(Debug, Default)]
pub struct GridfusionOnBallista {
    ballista: BallistaPhysicalExtensionCodec,
}

/// Asks another codec if the first has no such node.
fn or<T>(first: Result<T>, other: impl FnOnce() -> Result<T>) -> Result<T> {
    match first {
        Err(DataFusionError::NotImplemented(_)) => other(),
        result => result,
    }
}

impl PhysicalExtensionCodec for GridfusionOnBallista {
    fn try_decode(
        &self,
        bytes: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        or(GridfusionCodec.try_decode(bytes, inputs, context, converter), || {
            self.ballista.try_decode(bytes, inputs, context, converter)
        })
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        bytes: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        // A codec that does not know the node writes nothing.
        or(GridfusionCodec.try_encode(Arc::clone(&node), bytes, converter), || {
            self.ballista.try_encode(node, bytes, converter)
        })
    }

    fn try_encode_udaf(&self, function: &AggregateUDF, bytes: &mut Vec<u8>) -> Result<()> {
        GridfusionCodec.try_encode_udaf(function, bytes)
    }

    fn try_decode_udaf(&self, name: &str, bytes: &[u8]) -> Result<Arc<AggregateUDF>> {
        or(GridfusionCodec.try_decode_udaf(name, bytes), || {
            self.ballista.try_decode_udaf(name, bytes)
        })
    }
}
