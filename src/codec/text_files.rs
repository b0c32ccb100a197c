//! Sinks of text files as messages, and back.
//!
//! The rule `gridfusion_text_files` puts a sink of ours in the place of DataFusion's. Only DataFusion's has a message, so that
//! travels, over an input without rows, and is replaced again where it arrives.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};

use super::converters::{Decoder, Encoder};
use super::declarations::Declarations;
use super::messages::{Envelope, Node, TextFiles};
use crate::error::Error;
use crate::exec::write::{with_plain_sink, with_text_formatters};

/// Returns the message of a node that writes text files; `None` for other nodes.
pub(super) fn message(
    node: &Arc<dyn ExecutionPlan>,
    encoder: Encoder<'_>,
) -> Result<Option<Envelope>> {
    let Some(plain) = with_plain_sink(node.as_ref()) else { return Ok(None) };
    let declared = Declarations::try_new(node, vec![])?.message(encoder)?;
    let no_rows = plain.children().into_iter().map(|input| EmptyExec::new(input.schema()));
    let no_rows = no_rows.map(|input| Arc::new(input) as _).collect();
    let sink = encoder.plan(&plain.replace_children(no_rows, RECOMPUTE)?)?;
    Ok(Some(Envelope { declared, node: Some(Node::TextFiles(TextFiles { sink })) }))
}

/// Makes the node again over its input.
pub(super) fn node(
    message: &TextFiles,
    inputs: &[Arc<dyn ExecutionPlan>],
    decoder: Decoder<'_>,
) -> Result<Arc<dyn ExecutionPlan>> {
    if inputs.len() != 1 {
        return Err(Error::corrupt_region(
            "plan",
            "a sink of files has another number of inputs than one",
        )
        .into());
    }
    let sink = decoder.plan(&message.sink)?;
    with_text_formatters(sink.replace_children(inputs.to_vec(), RECOMPUTE)?)
}

/// How to replace an input by one that declares something else.
const RECOMPUTE: ReplaceChildrenOptions =
    ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
