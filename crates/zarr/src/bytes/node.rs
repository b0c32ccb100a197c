//! The metadata documents of groups and arrays.

use serde_json::Value;

use super::array::ZarrArray;
use super::chunk_key::ChunkKey;
use super::codec_chain::{self, Encoding, lengths};
use super::json::{self, Object, document, integer};
use super::multiples::MultipliedTimes;
use super::nczarr::{self, Dimensions};
use super::{data_type, fill_value};
use gridfusion_cf::hierarchy::{Attributes, Axis, CellType, Multiples, Variable};
use gridfusion_core::format::Codec;
use gridfusion_core::grid::MAX_RANK;
use gridfusion_core::{Error, Result};

const REGION: &str = "metadata";

/// A group or an array, as its documents describe it.
#[derive(Debug)]
pub(super) enum Node {
    /// A group with these attributes.
    Group(Attributes),
    /// An array.
    Array(Box<ZarrArray>),
}

/// The documents of one array or group of version 2; each may be absent.
#[derive(Debug, Default)]
pub(super) struct Documents {
    /// `.zarray`
    pub(super) array: Option<Object>,
    /// `.zattrs`
    pub(super) attributes: Option<Object>,
}

/// Reads the node at `path` from its document `zarr.json` of version 3.
///
/// # Errors
/// `Corrupt` for a document that is no node, `Unsupported` for an array that gridfusion cannot read.
pub(super) fn version3(path: &str, metadata: &Object) -> Result<Node> {
    match metadata.get("zarr_format").and_then(Value::as_u64) {
        Some(3) => {}
        other => return Err(unknown_version(other)),
    }
    let nothing = Object::new();
    let own = metadata.get("attributes").and_then(Value::as_object).unwrap_or(&nothing);
    match metadata.get("node_type").and_then(Value::as_str) {
        Some("group") => Ok(Node::Group(of_user(json::attributes(own)))),
        Some("array") => {
            array3(path, metadata, json::attributes(own)).map(Box::new).map(Node::Array)
        }
        other => Err(corrupt(format!("a node of type {other:?}, expected array or group"))),
    }
}

/// The members of an array's document that gridfusion knows.
const KNOWN: [&str; 11] = [
    "zarr_format",
    "node_type",
    "shape",
    "data_type",
    "chunk_grid",
    "chunk_key_encoding",
    "fill_value",
    "codecs",
    "attributes",
    "dimension_names",
    "storage_transformers",
];

fn array3(path: &str, metadata: &Object, attributes: Attributes) -> Result<ZarrArray> {
    let may_be_ignored = |value: &Value| value.get("must_understand") == Some(&Value::Bool(false));
    let unknown = |(name, value): &(&String, &Value)| {
        let is_known = KNOWN.contains(&name.as_str()) || nczarr::is_internal(name);
        !is_known && !may_be_ignored(value) && !value.is_null()
    };
    if let Some((name, _)) = metadata.iter().find(unknown) {
        return Err(Error::unsupported(format!("the extension \"{name}\"")));
    }
    let transformers = metadata.get("storage_transformers").and_then(Value::as_array);
    if transformers.is_some_and(|it| !it.is_empty()) {
        return Err(Error::unsupported("storage transformers"));
    }
    let shape = shape(metadata)?;
    let data_type = member(metadata, "data_type")?;
    let cell = data_type::version3(data_type)?;
    let grid = member(metadata, "chunk_grid")?;
    if grid.get("name").and_then(Value::as_str) != Some("regular") {
        return Err(Error::unsupported(format!("the chunk grid {grid}")));
    }
    let chunk_shape = grid.get("configuration").and_then(|it| it.get("chunk_shape"));
    let chunk_shape = lengths(chunk_shape, shape.len()).ok_or_else(no_chunk_shape)?;
    let fill = member(metadata, "fill_value")?;
    let described = ArrayMetadata {
        path,
        encoding: codec_chain::version3(member(metadata, "codecs")?, &cell, shape.len())?,
        key: ChunkKey::version3(metadata)?,
        fill: fill_value::fill_bytes(fill, &cell)?,
        fill_is_missing: false,
        names: metadata.get("dimension_names"),
        dimensions: Dimensions::new(&attributes, metadata),
        multiple: data_type::multiple(data_type),
        shape,
        chunk_shape,
        cell,
        attributes,
    };
    described.array()
}

/// Reads the array at `path` from its documents of version 2; a group if there is no `.zarray`.
///
/// # Errors
/// As [`version3`].
pub(super) fn version2(path: &str, documents: &Documents) -> Result<Node> {
    let nothing = Object::new();
    let own = json::attributes(documents.attributes.as_ref().unwrap_or(&nothing));
    let Some(metadata) = &documents.array else { return Ok(Node::Group(of_user(own))) };
    match metadata.get("zarr_format").and_then(Value::as_u64) {
        Some(2) => {}
        other => return Err(unknown_version(other)),
    }
    let shape = shape(metadata)?;
    let data_type = member(metadata, "dtype")?;
    let (cell, byte_order) = data_type::version2(data_type, items(metadata))?;
    let chunk_shape = lengths(metadata.get("chunks"), shape.len()).ok_or_else(no_chunk_shape)?;
    let fill = metadata.get("fill_value").unwrap_or(&Value::Null);
    let described = ArrayMetadata {
        path,
        encoding: codec_chain::version2(metadata, &cell, byte_order)?,
        key: ChunkKey::version2(metadata)?,
        fill: fill_value::fill_bytes(fill, &cell)?,
        fill_is_missing: !fill.is_null(),
        names: None,
        dimensions: Dimensions::new(&own, metadata),
        multiple: data_type::multiple(data_type),
        shape,
        chunk_shape,
        cell,
        attributes: own,
    };
    described.array().map(Box::new).map(Node::Array)
}

/// Returns the type of the items of an array of objects, which its first filter tells.
fn items(metadata: &Object) -> Option<CellType> {
    let filter = metadata.get("filters")?.as_array()?.first()?;
    match filter.get("id")?.as_str()? {
        "vlen-utf8" => Some(CellType::Text),
        "vlen-bytes" => Some(CellType::Bytes),
        _ => None,
    }
}

/// The parts of an array's metadata.
struct ArrayMetadata<'a> {
    path: &'a str,
    shape: Vec<u64>,
    chunk_shape: Vec<u64>,
    cell: CellType,
    encoding: Encoding,
    key: ChunkKey,
    fill: Vec<u8>,
    fill_is_missing: bool,
    /// The list of the names of dimensions, if there is one.
    names: Option<&'a Value>,
    /// The dimensions as NCZarr names them.
    dimensions: Dimensions,
    /// The units that a time counts.
    multiple: i64,
    attributes: Attributes,
}

/// Returns the attributes without those of NCZarr's own.
fn of_user(mut attributes: Attributes) -> Attributes {
    attributes.retain(|name, _| !nczarr::is_internal(name));
    attributes
}

impl ArrayMetadata<'_> {
    fn array(mut self) -> Result<ZarrArray> {
        if self.shape.len() > MAX_RANK {
            let rank = self.shape.len();
            return Err(Error::unsupported(format!("{rank} axes, more than {MAX_RANK}")));
        }
        if self.cell.width() == Some(0) {
            return Err(Error::unsupported("cells of no bytes"));
        }
        // xarray writes the names of dimensions as an attribute into version 2.
        let listed = self.attributes.remove("_ARRAY_DIMENSIONS").map(|names| names.texts());
        let own: Option<Vec<Option<String>>> = self
            .names
            .and_then(Value::as_array)
            .map(|names| names.iter().map(|name| name.as_str().map(str::to_owned)).collect());
        let names = own.or_else(|| listed.map(|names| names.into_iter().map(Some).collect()));
        let names = names.or_else(|| self.dimensions.names());
        let names = names.filter(|names| names.len() == self.shape.len());
        let names = names.unwrap_or_else(|| vec![None; self.shape.len()]);
        let axes = names.into_iter().zip(&self.shape).enumerate();
        let axis = |(at, (name, &len)): (usize, (Option<String>, &u64))| {
            let labels = self.dimensions.labels(at, name.as_deref());
            let mut axis = Axis::new(name, len);
            axis.labels = labels;
            axis
        };
        let axes = axes.map(axis).collect();
        let chunk_shape = match &self.encoding.sharding {
            None => self.chunk_shape.clone(),
            Some(sharding) => {
                let divides = |(shard, chunk): (&u64, &u64)| shard.is_multiple_of(*chunk);
                if !self.chunk_shape.iter().zip(&sharding.chunk_shape).all(divides) {
                    let (shard, chunk) = (&self.chunk_shape, &sharding.chunk_shape);
                    let message = format!("shards of shape {shard:?} with chunks of {chunk:?}");
                    return Err(corrupt(message));
                }
                sharding.chunk_shape.clone()
            }
        };
        self.multiply_times()?;
        let is_scalar = self.dimensions.is_scalar() && self.shape == [1];
        let mut variable = Variable::new(self.path.to_owned(), axes, self.cell, self.fill);
        variable.chunk_shape = chunk_shape;
        variable.fill_is_missing = self.fill_is_missing;
        variable.attributes = of_user(self.attributes).into();
        let mut array = ZarrArray::new(variable, self.encoding, self.key, self.chunk_shape)?;
        if is_scalar {
            array.make_scalar();
        }
        Ok(array)
    }

    /// Makes times that count a multiple of a unit count the unit.
    fn multiply_times(&mut self) -> Result<()> {
        let is_time = matches!(self.cell, CellType::TimePoint(_) | CellType::TimeSpan(_));
        let is_big = !self.encoding.byte_order.is_little();
        let Some(multiples) = Multiples::new(self.multiple, is_big).filter(|_| is_time) else {
            return Ok(());
        };
        if let Some(of_fill) = Multiples::new(self.multiple, false) {
            of_fill.apply(&mut self.fill).map_err(corrupt)?;
        }
        let counts = std::mem::replace(&mut self.encoding.codec, Codec::Raw);
        self.encoding.codec =
            Codec::Custom(std::sync::Arc::new(MultipliedTimes { counts, multiples }));
        Ok(())
    }
}

fn shape(metadata: &Object) -> Result<Vec<u64>> {
    let lens = member(metadata, "shape")?.as_array();
    let len = |value: &Value| integer(value).and_then(|len| u64::try_from(len).ok());
    let lens = lens.and_then(|lens| lens.iter().map(len).collect());
    lens.ok_or_else(|| corrupt("a shape that is no list of lengths".to_owned()))
}

fn member<'a>(metadata: &'a Object, name: &str) -> Result<&'a Value> {
    metadata.get(name).ok_or_else(|| corrupt(format!("no \"{name}\"")))
}

fn no_chunk_shape() -> Error {
    corrupt("a chunk shape that is no list of lengths, one for each axis".to_owned())
}

fn unknown_version(version: Option<u64>) -> Error {
    match version {
        Some(version) => {
            Error::unsupported(format!("Zarr version {version}; gridfusion reads 2 and 3"))
        }
        None => corrupt("no \"zarr_format\"".to_owned()),
    }
}

fn corrupt(message: String) -> Error {
    Error::corrupt_region(REGION, message)
}

/// Parses a document; see [`document`].
pub(super) fn parse(bytes: &[u8]) -> Result<Object> {
    document(REGION, bytes)
}
