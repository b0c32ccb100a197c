//! The documents of a store.

use bytes::Bytes;
use gridfusion_core::write::Attributes;
use gridfusion_core::{Error, Result};
use serde_json::{Map, Value, json};

/// The metadata of one array of a store.
pub(super) struct ArrayDocument {
    pub(super) name: String,
    /// The document of version 3.
    pub(super) document: Value,
}

/// The facts of an array that its document has.
pub(super) struct ArrayFacts<'a> {
    pub(super) name: &'a str,
    pub(super) shape: &'a [u64],
    /// The elements of an object: of a chunk, or of a shard.
    pub(super) object_shape: &'a [u64],
    /// The elements of the chunks of a shard, if objects are shards.
    pub(super) inner_shape: Option<&'a [u64]>,
    pub(super) data_type: &'static str,
    pub(super) fill_value: Value,
    pub(super) codecs: Vec<Value>,
    pub(super) dimension_names: &'a [String],
    pub(super) attributes: Attributes,
}

impl ArrayDocument {
    pub(super) fn new(facts: ArrayFacts<'_>) -> Self {
        let codecs = match facts.inner_shape {
            None => facts.codecs,
            Some(inner) => vec![json!({"name": "sharding_indexed", "configuration": {
                "chunk_shape": inner,
                "codecs": facts.codecs,
                "index_codecs": [
                    {"name": "bytes", "configuration": {"endian": "little"}},
                    {"name": "crc32c"},
                ],
                "index_location": "end",
            }})],
        };
        let document = json!({
            "zarr_format": 3,
            "node_type": "array",
            "shape": facts.shape,
            "data_type": facts.data_type,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": facts.object_shape}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": facts.fill_value,
            "codecs": codecs,
            "dimension_names": facts.dimension_names,
            "attributes": facts.attributes,
            "storage_transformers": [],
        });
        Self { name: facts.name.to_owned(), document }
    }

    /// Returns the bytes of the document.
    pub(super) fn bytes(&self) -> Result<Bytes> {
        bytes_of(&self.document)
    }
}

/// Returns the document of a group that repeats those of its arrays.
pub(super) fn group(attributes: &Attributes, arrays: &[ArrayDocument]) -> Result<Bytes> {
    let metadata = arrays.iter().map(|it| (it.name.clone(), it.document.clone()));
    bytes_of(&json!({
        "zarr_format": 3,
        "node_type": "group",
        "attributes": attributes,
        "consolidated_metadata": {
            "kind": "inline",
            "must_understand": false,
            "metadata": Value::Object(metadata.collect::<Map<String, Value>>()),
        },
    }))
}

pub(super) fn bytes_of(document: &Value) -> Result<Bytes> {
    let text = serde_json::to_vec_pretty(document);
    let text = text.map_err(|error| Error::internal(format!("metadata is no JSON: {error}")))?;
    Ok(text.into())
}
