//! Zarr stores of both versions in the suite. Variables of a store differ in their encoding: order of axes and
//! bytes, compression, and, in version 3, shards.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use arrow::datatypes::{DataType, TimeUnit};
use gridfusion::grid::ravel;
use serde_json::{Map, Value, json};

use super::format::{Capabilities, FormatUnderTest, as_given};
use super::logical::{Axis, Cell, Element, Labels, Logical, Values};
use crate::support::icechunk_repository::StoredArray;
use crate::support::positions;
use crate::support::zip_archive::crc;

/// Version 2: unconsolidated, with `.zarray` documents.
pub(crate) struct Zarr2;

/// Version 3: consolidated, partly in shards.
pub(crate) struct Zarr3;

fn capabilities() -> Capabilities {
    Capabilities {
        holds: |_| true,
        divides: as_given,
        hours: DataType::Timestamp(TimeUnit::Microsecond, None),
        notes_bounds: false,
        has_attributes: true,
        holds_chunks_in_metadata: false,
    }
}

impl FormatUnderTest for Zarr2 {
    fn name(&self) -> &'static str {
        "zarr"
    }

    fn suffix(&self) -> &'static str {
        ".zarr"
    }

    fn capabilities(&self) -> Capabilities {
        capabilities()
    }

    fn write(&self, array: &Logical, path: &Path) {
        put(path, ".zgroup", br#"{"zarr_format": 2}"#);
        for variable in variables(array) {
            let Variable { name, shape, chunk, big_endian, reversed, .. } = &variable;
            let dtype = match (&variable.kind, big_endian) {
                (Kind::Text, _) => "|O".to_owned(),
                (kind, true) => format!(">{}", kind.dtype()),
                (kind, false) => format!("<{}", kind.dtype()),
            };
            let filters = matches!(variable.kind, Kind::Text).then(|| json!([{"id": "vlen-utf8"}]));
            let zarray = json!({
                "zarr_format": 2, "shape": shape, "chunks": chunk, "dtype": dtype, "filters": filters,
                "compressor": variable.compressed.then(|| json!({"id": "zlib", "level": 1})),
                "fill_value": variable.fill_value, "order": if *reversed { "F" } else { "C" },
            });
            let mut attributes = variable.attributes.clone();
            attributes.insert("_ARRAY_DIMENSIONS".to_owned(), json!(variable.dims));
            put(path, &format!("{name}/.zarray"), zarray.to_string().as_bytes());
            put(path, &format!("{name}/.zattrs"), Value::Object(attributes).to_string().as_bytes());
            for (at, bytes) in variable.stored_chunks() {
                let bytes = if variable.compressed { zlib(&bytes) } else { bytes };
                put(path, &format!("{name}/{}", key(&at, ".")), &bytes);
            }
        }
    }

    fn metadata(&self, path: &Path) -> (PathBuf, Range<usize>) {
        (path.join(".zgroup"), 0..18)
    }
}

impl FormatUnderTest for Zarr3 {
    fn name(&self) -> &'static str {
        "zarr"
    }

    fn suffix(&self) -> &'static str {
        ".zarr"
    }

    fn capabilities(&self) -> Capabilities {
        capabilities()
    }

    fn write(&self, array: &Logical, path: &Path) {
        let mut nodes = Map::new();
        for StoredArray { name, document, objects } in stored_arrays(array) {
            for (at, bytes) in objects {
                put(path, &format!("{name}/c/{}", key(&at, "/")), &bytes);
            }
            nodes.insert(name, document);
        }
        let root = json!({
            "zarr_format": 3, "node_type": "group", "attributes": {},
            "consolidated_metadata": {"kind": "inline", "must_understand": false, "metadata": nodes},
        });
        put(path, "zarr.json", root.to_string().as_bytes());
    }

    fn metadata(&self, path: &Path) -> (PathBuf, Range<usize>) {
        (path.join("zarr.json"), 0..20)
    }
}

/// The variables as version 3 stores them.
pub(super) fn stored_arrays(array: &Logical) -> Vec<StoredArray> {
    let stored = |(number, variable): (usize, Variable)| {
        let is_sharded = number % 2 == 0 && matches!(variable.kind, Kind::Numbers(_));
        let chunks = variable.stored_chunks().into_iter();
        let encoded = chunks.map(|(at, bytes)| (at, variable.encoded(bytes)));
        let objects = match is_sharded {
            true => shards(encoded.collect(), variable.shape.len()),
            false => encoded.collect(),
        };
        StoredArray { document: node(&variable, is_sharded), name: variable.name, objects }
    };
    variables(array).into_iter().enumerate().map(stored).collect()
}

/// Chunks per axis of a shard.
const PER_SHARD: u64 = 2;

/// The metadata of an array of version 3.
fn node(variable: &Variable, is_sharded: bool) -> Value {
    let rank = variable.shape.len();
    let mut codecs = Vec::new();
    if variable.reversed {
        let order: Vec<usize> = (0..rank).rev().collect();
        codecs.push(json!({"name": "transpose", "configuration": {"order": order}}));
    }
    codecs.push(match variable.kind {
        Kind::Text => json!("vlen-utf8"),
        _ => {
            let endian = if variable.big_endian { "big" } else { "little" };
            json!({"name": "bytes", "configuration": {"endian": endian}})
        }
    });
    if variable.compressed {
        codecs.push(json!({"name": "zstd", "configuration": {"level": 1, "checksum": false}}));
    }
    let mut grid = variable.chunk.clone();
    if is_sharded {
        codecs = vec![json!({"name": "sharding_indexed", "configuration": {
            "chunk_shape": grid, "codecs": codecs,
            "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
        }})];
        grid.iter_mut().for_each(|len| *len *= PER_SHARD);
    }
    json!({
        "zarr_format": 3, "node_type": "array", "shape": variable.shape,
        "data_type": variable.kind.data_type(),
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": grid}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": match &variable.fill_value { Value::Null => variable.kind.zero(), fill => fill.clone() },
        "codecs": codecs, "attributes": variable.attributes, "dimension_names": variable.dims,
    })
}

/// The bytes of a shard, and the offset and length of each of its chunks.
type Shard = (Vec<u8>, Vec<[u64; 2]>);

/// Puts chunks into shards, the last chunk first.
fn shards(chunks: Vec<(Vec<u64>, Vec<u8>)>, rank: usize) -> Vec<(Vec<u64>, Vec<u8>)> {
    let mut shards: BTreeMap<Vec<u64>, Shard> = BTreeMap::new();
    let per_shard = PER_SHARD.pow(rank as u32) as usize;
    for (at, bytes) in chunks.into_iter().rev() {
        let shard: Vec<u64> = at.iter().map(|at| at / PER_SHARD).collect();
        let inner: Vec<u64> = at.iter().map(|at| at % PER_SHARD).collect();
        let number = ravel(&inner, &vec![PER_SHARD; rank]) as usize;
        let (content, index) =
            shards.entry(shard).or_insert_with(|| (vec![], vec![[u64::MAX; 2]; per_shard]));
        index[number] = [content.len() as u64, bytes.len() as u64];
        content.extend(bytes);
    }
    let whole = |(at, (mut content, index)): (Vec<u64>, Shard)| {
        let index: Vec<u8> = index.concat().into_iter().flat_map(u64::to_le_bytes).collect();
        content.extend(&index);
        content.extend(crc(CASTAGNOLI, &index).to_le_bytes());
        (at, content)
    };
    shards.into_iter().map(whole).collect()
}

/// The polynomial of the checksums of shards.
const CASTAGNOLI: u32 = 0x82f6_3b78;

/// The values of a variable.
enum Kind {
    Numbers(Element),
    Integers,
    Floats,
    Text,
}

impl Kind {
    fn dtype(&self) -> &'static str {
        match self {
            Self::Numbers(Element::F32) => "f4",
            Self::Numbers(Element::F64) | Self::Floats => "f8",
            Self::Numbers(Element::I32) => "i4",
            Self::Numbers(Element::I64) | Self::Integers => "i8",
            Self::Text => "O",
        }
    }

    fn data_type(&self) -> &'static str {
        match self {
            Self::Numbers(Element::F32) => "float32",
            Self::Numbers(Element::F64) | Self::Floats => "float64",
            Self::Numbers(Element::I32) => "int32",
            Self::Numbers(Element::I64) | Self::Integers => "int64",
            Self::Text => "string",
        }
    }

    fn zero(&self) -> Value {
        if matches!(self, Self::Text) { json!("") } else { json!(0) }
    }
}

/// A variable to write.
struct Variable {
    name: String,
    dims: Vec<&'static str>,
    shape: Vec<u64>,
    chunk: Vec<u64>,
    kind: Kind,
    attributes: Map<String, Value>,
    fill_value: Value,
    /// The cells in row-major order, little-endian; `None` for fill values, which need not be stored.
    cells: Vec<Option<Vec<u8>>>,
    /// The bytes of a cell that pads a chunk.
    padding: Vec<u8>,
    big_endian: bool,
    reversed: bool,
    compressed: bool,
}

fn variables(array: &Logical) -> Vec<Variable> {
    let values = array.values.iter().enumerate().map(|(number, it)| of_values(array, it, number));
    values.chain(array.axes.iter().filter_map(of_labels)).collect()
}

fn of_values(array: &Logical, values: &Values, number: usize) -> Variable {
    let element = values.element;
    let fill: Value = serde_json::from_str(&element.fill()).unwrap();
    let cell = |cell: &Cell| (*cell != Cell::Fill).then(|| element.bytes(*cell));
    Variable {
        name: values.name.to_owned(),
        dims: array.dimensions(),
        shape: array.shape(),
        chunk: array.axes.iter().map(|axis| axis.chunk).collect(),
        kind: Kind::Numbers(element),
        attributes: Map::from_iter([("_FillValue".to_owned(), fill.clone())]),
        fill_value: fill,
        cells: values.cells.iter().map(cell).collect(),
        padding: element.bytes(Cell::Fill),
        big_endian: number % 2 == 1 || array.axes.len() == 2,
        reversed: number % 3 == 1 || array.axes.len() == 3,
        compressed: number % 3 != 2,
    }
}

/// The coordinate variable of an axis, in chunks of five labels.
fn of_labels(axis: &Axis) -> Option<Variable> {
    let words = |all: &[i64]| all.iter().map(|it| Some(it.to_le_bytes().to_vec())).collect();
    let mut attributes = Map::new();
    let (kind, cells): (Kind, Vec<Option<Vec<u8>>>) = match &axis.labels {
        Labels::Index(_) => return None,
        Labels::Integers(all) => (Kind::Integers, words(all)),
        Labels::Hours(all) => {
            attributes.insert("units".to_owned(), json!("hours since 1970-01-01"));
            attributes.insert("calendar".to_owned(), json!("proleptic_gregorian"));
            (Kind::Integers, words(all))
        }
        Labels::Floats(all) => {
            (Kind::Floats, all.iter().map(|it| Some(it.to_le_bytes().to_vec())).collect())
        }
        Labels::Singles(all) => {
            let words = all.iter().map(|it| Some(it.to_le_bytes().to_vec()));
            (Kind::Numbers(Element::F32), words.collect())
        }
        Labels::Text(all) => {
            (Kind::Text, all.iter().map(|it| Some(it.as_bytes().to_vec())).collect())
        }
    };
    let padding = match kind {
        Kind::Text => vec![],
        Kind::Numbers(Element::F32) => vec![0; 4],
        _ => vec![0; 8],
    };
    Some(Variable {
        name: axis.name.to_owned(),
        dims: vec![axis.name],
        shape: vec![axis.labels.len()],
        chunk: vec![5],
        kind,
        attributes,
        fill_value: Value::Null,
        cells,
        padding,
        big_endian: false,
        reversed: false,
        compressed: true,
    })
}

impl Variable {
    /// The chunks that are not all fill: their coordinates, and their cells as stored, before compression.
    fn stored_chunks(&self) -> Vec<(Vec<u64>, Vec<u8>)> {
        let counts: Vec<u64> =
            self.shape.iter().zip(&self.chunk).map(|(len, chunk)| len.div_ceil(*chunk)).collect();
        positions(&counts)
            .into_iter()
            .filter_map(|at| Some((at.clone(), self.chunk(&at)?)))
            .collect()
    }

    fn chunk(&self, at: &[u64]) -> Option<Vec<u8>> {
        let rank = self.shape.len();
        let mut stored_shape = self.chunk.clone();
        if self.reversed {
            stored_shape.reverse();
        }
        let mut cells = Vec::new();
        for mut cell in positions(&stored_shape) {
            if self.reversed {
                cell.reverse();
            }
            let place: Vec<u64> = (0..rank).map(|d| at[d] * self.chunk[d] + cell[d]).collect();
            let is_inside = place.iter().zip(&self.shape).all(|(place, len)| place < len);
            cells.push(if is_inside {
                self.cells[ravel(&place, &self.shape) as usize].as_ref()
            } else {
                None
            });
        }
        if cells.iter().all(Option::is_none) {
            return None;
        }
        let cells = cells.into_iter().map(|cell| cell.unwrap_or(&self.padding));
        if matches!(self.kind, Kind::Text) {
            let mut bytes = (cells.len() as u32).to_le_bytes().to_vec();
            for text in cells {
                bytes.extend((text.len() as u32).to_le_bytes());
                bytes.extend(text);
            }
            return Some(bytes);
        }
        let word = |cell: &Vec<u8>| {
            let mut cell = cell.clone();
            if self.big_endian {
                cell.reverse();
            }
            cell
        };
        Some(cells.flat_map(word).collect())
    }

    /// A chunk as version 3 stores it.
    fn encoded(&self, bytes: Vec<u8>) -> Vec<u8> {
        if self.compressed { zstd::encode_all(&bytes[..], 1).unwrap() } else { bytes }
    }
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::ZlibEncoder::new(vec![], flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn key(at: &[u64], separator: &str) -> String {
    at.iter().map(u64::to_string).collect::<Vec<_>>().join(separator)
}

pub(super) fn put(store: &Path, object: &str, bytes: &[u8]) {
    let file = store.join(object);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, bytes).unwrap();
}
