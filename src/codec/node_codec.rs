//! [`GridfusionCodec`]: the codec that DataFusion and distributed engines call.

use std::sync::Arc;

use datafusion::common::{not_impl_datafusion_err, not_impl_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{AggregateUDF, ScalarUDF, WindowUDF};
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};

use super::converters::{Decoder, Encoder};
use super::declarations::Declarations;
use super::envelope::{VERSION, is_sealed, seal, unseal};
use super::grid_nodes::{ReduceRecipe, ScanRecipe};
use super::join_reduce_node::JoinReduceRecipe;
use super::known_files::{label_bytes, labels_of};
use super::lookup_node::LookupRecipe;
use super::messages::{Envelope, JoinShare, Node, WorkList};
use super::recipe::Recipe;
use super::shared_join::{JoinShareExec, SharedJoinExec};
use super::shared_recipe::SharedRecipe;
use super::sparse_nodes::{AnswerRecipe, SparseScanRecipe};
use super::spatial_nodes::SpatialRecipe;
use super::text_files;
use super::top_node::TopRecipe;
use super::travelled_exec::TravelledExec;
use super::window_node::WindowRecipe;
use super::work_list::WorkListExec;
use crate::error::Error;
use crate::exec::cf_days::cf_days;
use crate::exec::mended;
use crate::exec::nearest::{NearestLabels, nearest_among, nearest_labels};
use crate::exec::operator::Operator;
use crate::exec::own_functions::{
    added_aggregates, is_own_aggregate, is_own_scalar, own_aggregate_named, own_scalar_named,
};
use crate::exec::spatial::{GridCoverageExec, GridPointsExec, cell_area_udf, haversine_udf};
use crate::exec::{
    GridJoinReduceExec, GridLookupExec, GridReduceExec, GridScanExec, GridTopExec, GridWindowExec,
    SparseAnswerExec, SparseScanExec,
};

/// Converts the nodes of gridfusion to bytes, and back to nodes that open their tables when they first run.
///
/// The bytes hold what a table was opened from and what was planned. They hold no keys, passwords or signatures of URLs: the
/// process that decodes a plan has object stores of its own. A table that the program opened itself cannot travel.
///
/// A plan of another version of the messages is refused. So is a plan whose objects were written since: when the node
/// first runs, it compares them. Chunks of Zarr are an exception, which are objects of their own.
///
/// ```
/// use std::sync::Arc;
/// use datafusion::physical_plan::collect;
/// use datafusion::prelude::SessionContext;
/// use datafusion_proto::bytes::{
///     physical_plan_from_bytes_with_extension_codec, physical_plan_to_bytes_with_extension_codec,
/// };
/// use gridfusion::codec::GridfusionCodec;
/// use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> datafusion::error::Result<()> {
/// let ctx = SessionContext::new();
/// ctx.enable_gridfusion();
/// let options = ArrayOptions::default().with_dataset("temperature");
/// ctx.register_array("t", "examples/data/stations.tet", options).await?;
/// let plan = ctx.sql("SELECT station, avg(value) FROM t GROUP BY station").await?;
/// let plan = plan.create_physical_plan().await?;
/// let bytes = physical_plan_to_bytes_with_extension_codec(plan, &GridfusionCodec)?;
///
/// // In another process, with a session of its own:
/// let worker = SessionContext::new().task_ctx();
/// let plan = physical_plan_from_bytes_with_extension_codec(&bytes, &worker, &GridfusionCodec)?;
/// let rows = collect(plan, worker).await?;
/// assert_eq!(rows.iter().map(|batch| batch.num_rows()).sum::<usize>(), 6);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GridfusionCodec;

impl GridfusionCodec {
    /// The version of the bytes. Processes of different versions refuse each other's plans.
    pub const VERSION: u8 = VERSION;
}

impl PhysicalExtensionCodec for GridfusionCodec {
    /// Makes a node that opens its table when it first runs.
    fn try_decode(
        &self,
        bytes: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if !is_sealed(bytes) {
            return not_impl_err!("these are not the bytes of a node of gridfusion");
        }
        let Envelope { declared, node } = unseal(bytes)?;
        let decoder = Decoder { codec: self, converter, context };
        let declared = Declarations::from_message(&declared, decoder)?;
        let schema = declared.schema();
        let recipe: Arc<dyn Recipe> = match node {
            Some(Node::Scan(it)) => Arc::new(ScanRecipe::from_message(it, schema, decoder)?),
            Some(Node::Reduce(it)) => Arc::new(ReduceRecipe::from_message(&it, decoder)?),
            Some(Node::Top(it)) => Arc::new(TopRecipe::from_message(&it, schema, decoder)?),
            Some(Node::Lookup(it)) => SharedRecipe::over(inputs, |rows| {
                Ok(Arc::new(LookupRecipe::from_message(&it, rows, decoder)?))
            })?,
            Some(Node::JoinReduce(it)) => SharedRecipe::over(inputs, |rows| {
                Ok(Arc::new(JoinReduceRecipe::from_message(&it, rows, decoder)?))
            })?,
            Some(Node::JoinShare(_)) => return Ok(Arc::new(EmptyExec::new(Arc::clone(schema)))),
            Some(Node::Window(it)) => Arc::new(WindowRecipe::from_message(it, decoder)?),
            Some(Node::SparseScan(it)) => Arc::new(SparseScanRecipe::from_message(it, decoder)?),
            Some(Node::SparseAnswer(_)) => Arc::new(AnswerRecipe::over(inputs)?),
            Some(Node::WorkList(it)) => return work_list(&it, inputs, decoder),
            Some(Node::TextFiles(it)) => return text_files::node(&it, inputs, decoder),
            Some(it @ (Node::Coverage(_) | Node::Points(_))) => {
                Arc::new(SpatialRecipe::from_message(it, inputs)?)
            }
            None => return Err(Error::corrupt_region("plan", "no node").into()),
        };
        Ok(Arc::new(TravelledExec::new(declared, recipe)))
    }

    /// Appends the bytes of a node of gridfusion.
    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        bytes: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        let encoder = Encoder { codec: self, converter };
        if let Some(listed) = node.downcast_ref::<WorkListExec>() {
            let declared = Declarations::try_new(&node, vec![])?.message(encoder)?;
            let leaf = encoder.plan(listed.leaf())?;
            return seal(
                &Envelope { declared, node: Some(Node::WorkList(WorkList { leaf })) },
                bytes,
            );
        }
        if let Some(message) = text_files::message(&node, encoder)? {
            return seal(&message, bytes);
        }
        if node.is::<JoinShareExec>() {
            let declared = Declarations::try_new(&node, vec![])?.message(encoder)?;
            return seal(&Envelope { declared, node: Some(Node::JoinShare(JoinShare {})) }, bytes);
        }
        if let Some(travelled) = node.downcast_ref::<TravelledExec>() {
            return seal(&envelope(travelled.declared(), travelled.recipe(), encoder)?, bytes);
        }
        let (filters, recipe) = taken_apart(&node)?;
        seal(&envelope(&Declarations::try_new(&node, filters)?, &*recipe, encoder)?, bytes)
    }

    fn try_encode_udaf(&self, function: &AggregateUDF, bytes: &mut Vec<u8>) -> Result<()> {
        if added_aggregates().iter().any(|it| **it == *function) {
            bytes.extend_from_slice(ADDED);
        } else if is_own_aggregate(function) {
            bytes.extend_from_slice(OWN);
        }
        Ok(())
    }

    fn try_decode_udaf(&self, name: &str, bytes: &[u8]) -> Result<Arc<AggregateUDF>> {
        match bytes {
            ADDED => {
                let added = added_aggregates().into_iter().find(|it| it.name() == name);
                added.ok_or_else(|| no_function(name))
            }
            OWN => own_aggregate_named(name).ok_or_else(|| no_function(name)),
            _ => Err(no_function(name)),
        }
    }

    fn try_encode_udf(&self, function: &ScalarUDF, bytes: &mut Vec<u8>) -> Result<()> {
        if is_own_scalar(function) {
            bytes.extend_from_slice(OWN);
        } else if mended::functions().iter().any(|it| **it == *function) {
            bytes.extend_from_slice(MENDED);
        } else if *function == *cf_days() {
            bytes.extend_from_slice(CF_DAYS);
        } else if [haversine_udf(), cell_area_udf()].iter().any(|it| **it == *function) {
            bytes.extend_from_slice(ON_SPHERE);
        } else if let Some(known) = nearest_labels(function) {
            let Some(labels) = label_bytes(known.labels()) else {
                return not_impl_err!("nearest among too many labels to send them");
            };
            bytes.extend_from_slice(NEAREST);
            bytes.extend(labels);
        }
        Ok(())
    }

    fn try_decode_udf(&self, name: &str, bytes: &[u8]) -> Result<Arc<ScalarUDF>> {
        if let Some(labels) = bytes.strip_prefix(NEAREST) {
            let labels = NearestLabels::try_new(&labels_of(labels)?)?;
            return Ok(nearest_among(Arc::new(labels)));
        }
        let function = match bytes {
            OWN => own_scalar_named(name),
            MENDED => mended::functions().into_iter().find(|it| it.name() == name),
            CF_DAYS => Some(cf_days()),
            ON_SPHERE => {
                [haversine_udf(), cell_area_udf()].into_iter().find(|it| it.name() == name)
            }
            _ => None,
        };
        function.ok_or_else(|| no_function(name))
    }

    fn try_encode_udwf(&self, function: &WindowUDF, bytes: &mut Vec<u8>) -> Result<()> {
        if mended::window_functions().iter().any(|it| **it == *function) {
            bytes.extend_from_slice(MENDED);
        }
        Ok(())
    }

    fn try_decode_udwf(&self, name: &str, bytes: &[u8]) -> Result<Arc<WindowUDF>> {
        let mut functions = mended::window_functions().into_iter().filter(|_| bytes == MENDED);
        functions.find(|it| it.name() == name).ok_or_else(|| no_function(name))
    }
}

/// Returns the dynamic filters of a node, and how to make it.
fn taken_apart(node: &Arc<dyn ExecutionPlan>) -> Result<(Vec<PhysicalExprRef>, Arc<dyn Recipe>)> {
    fn filters(node: &impl Operator) -> Vec<PhysicalExprRef> {
        node.frame().filters().to_vec()
    }
    if let Some(shared) = node.downcast_ref::<SharedJoinExec>() {
        let (_, join) = taken_apart(&shared.join_of_share()?)?;
        let recipe = SharedRecipe::new(join, Arc::clone(shared.share()));
        return Ok((shared.filters().to_vec(), Arc::new(recipe)));
    }
    Ok(if let Some(scan) = node.downcast_ref::<GridScanExec>() {
        (filters(scan), Arc::new(ScanRecipe::try_new(scan)?))
    } else if let Some(reduce) = node.downcast_ref::<GridReduceExec>() {
        (filters(reduce), Arc::new(ReduceRecipe::new(reduce)))
    } else if let Some(top) = node.downcast_ref::<GridTopExec>() {
        (filters(top), Arc::new(TopRecipe::new(top)))
    } else if let Some(lookup) = node.downcast_ref::<GridLookupExec>() {
        (filters(lookup), Arc::new(LookupRecipe::try_new(lookup)?))
    } else if let Some(reduce) = node.downcast_ref::<GridJoinReduceExec>() {
        (filters(reduce), Arc::new(JoinReduceRecipe::try_new(reduce)?))
    } else if let Some(window) = node.downcast_ref::<GridWindowExec>() {
        (filters(window), Arc::new(WindowRecipe::new(window)))
    } else if let Some(scan) = node.downcast_ref::<SparseScanExec>() {
        (filters(scan), Arc::new(SparseScanRecipe::try_new(scan)?))
    } else if let Some(answer) = node.downcast_ref::<SparseAnswerExec>() {
        (filters(answer), Arc::new(AnswerRecipe::new(answer)))
    } else if let Some(coverage) = node.downcast_ref::<GridCoverageExec>() {
        (filters(coverage), Arc::new(SpatialRecipe::of_coverage(coverage)?))
    } else if let Some(points) = node.downcast_ref::<GridPointsExec>() {
        (filters(points), Arc::new(SpatialRecipe::of_points(points)?))
    } else {
        return not_impl_err!("{} is no node of gridfusion", node.name());
    })
}

/// The bytes of an aggregate that DataFusion lacks, beside its name. A worker's session need not have it.
const ADDED: &[u8] = b"gridfusion added";

/// The bytes of our version of a function of DataFusion, beside its name.
const OWN: &[u8] = b"gridfusion";

/// The bytes of a function that takes the place of one of DataFusion in some plans, beside its name.
const MENDED: &[u8] = b"gridfusion mended";

/// The bytes of `cf_days`.
const CF_DAYS: &[u8] = b"gridfusion cf_days";

/// The bytes of `haversine` and `cell_area`, beside the name.
const ON_SPHERE: &[u8] = b"gridfusion on sphere";

/// The first bytes of `nearest` among labels, which follow.
const NEAREST: &[u8] = b"gridfusion nearest";

fn no_function(name: &str) -> DataFusionError {
    not_impl_datafusion_err!("{name} is no function of gridfusion")
}

/// Makes a leaf again whose partitions the input lists.
fn work_list(
    message: &WorkList,
    inputs: &[Arc<dyn ExecutionPlan>],
    decoder: Decoder<'_>,
) -> Result<Arc<dyn ExecutionPlan>> {
    match inputs {
        [list] => {
            let leaf = decoder.plan(&message.leaf)?;
            Ok(Arc::new(WorkListExec::try_new(leaf, Arc::clone(list))?))
        }
        _ => Err(Error::corrupt_region("plan", "a list of partitions is missing").into()),
    }
}

fn envelope(
    declared: &Declarations,
    recipe: &dyn Recipe,
    encoder: Encoder<'_>,
) -> Result<Envelope> {
    let node = Some(recipe.message(encoder)?);
    Ok(Envelope { declared: declared.message(encoder)?, node })
}
