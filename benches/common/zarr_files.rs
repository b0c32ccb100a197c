//! Writers of Zarr stores and of NetCDF classic files, and the places of the chunks that they wrote.

use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde_json::{Map, Value, json};

use super::field::{DAYS_SINCE, Field};

/// The bytes of a chunk: a range of a file.
pub(crate) type Place = (PathBuf, Range<usize>);

/// Writes a file and the folders above it.
pub(crate) fn put(path: &Path, bytes: &[u8]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

/// The coordinates of all chunks of a grid, in row-major order.
fn positions([a, b, c]: [usize; 3]) -> impl Iterator<Item = [usize; 3]> {
    (0..a).flat_map(move |x| (0..b).flat_map(move |y| (0..c).map(move |z| [x, y, z])))
}

fn le<const N: usize, T: Copy>(values: &[T], bytes: fn(T) -> [u8; N]) -> Vec<u8> {
    values.iter().flat_map(|value| bytes(*value)).collect()
}

/// A variable of version 3: its data type, its codecs after `bytes`, and its attributes.
pub(crate) fn node3(
    dims: &[&str],
    shape: &[usize],
    grid: &[usize],
    data_type: &str,
    codecs: &Value,
    attributes: &Value,
) -> Value {
    let fill_value = if data_type == "float32" { json!("NaN") } else { json!(0) };
    json!({
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": data_type,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": grid}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": fill_value, "codecs": codecs, "attributes": attributes,
        "dimension_names": dims, "storage_transformers": [],
    })
}

/// The codec that every variable has.
pub(crate) fn raw() -> Value {
    json!({"name": "bytes", "configuration": {"endian": "little"}})
}

/// Writes the consolidated metadata of a store of version 3, and the document of each node.
pub(crate) fn put_nodes(store: &Path, nodes: &Map<String, Value>) {
    for (name, node) in nodes {
        put(&store.join(name).join("zarr.json"), node.to_string().as_bytes());
    }
    let root = json!({
        "zarr_format": 3, "node_type": "group", "attributes": {},
        "consolidated_metadata": {"kind": "inline", "must_understand": false, "metadata": nodes},
    });
    put(&store.join("zarr.json"), root.to_string().as_bytes());
}

/// Adds a coordinate variable in one chunk.
pub(crate) fn put_axis(store: &Path, nodes: &mut Map<String, Value>, name: &str, labels: &[f64]) {
    let len = [labels.len()];
    let node = node3(&[name], &len, &len, "float64", &json!([raw()]), &json!({}));
    nodes.insert(name.to_owned(), node);
    put(&store.join(name).join("c/0"), &le(labels, f64::to_le_bytes));
}

/// Writes the metadata of an array of `side` × `side` chunks of 16 × 16 cells, none of which is stored.
pub(crate) fn put_many_chunks(store: &Path, side: usize) {
    let edge = side * 16;
    let mut nodes = Map::new();
    for name in ["y", "x"] {
        let labels: Vec<f64> = (0..edge).map(|at| at as f64).collect();
        put_axis(store, &mut nodes, name, &labels);
    }
    let node = node3(&["y", "x"], &[edge; 2], &[16; 2], "float32", &json!([raw()]), &json!({}));
    nodes.insert("value".to_owned(), node);
    put_nodes(store, &nodes);
}

/// Adds the coordinate variables of the field.
pub(crate) fn put_axes(store: &Path, nodes: &mut Map<String, Value>, field: &Field) {
    let (time, lat, lon) = field.labels();
    let len = [time.len()];
    let units = json!({"units": DAYS_SINCE, "calendar": "proleptic_gregorian"});
    let node = node3(&["time"], &len, &len, "int32", &json!([raw()]), &units);
    nodes.insert("time".to_owned(), node);
    put(&store.join("time/c/0"), &le(&time, i32::to_le_bytes));
    put_axis(store, nodes, "lat", &lat);
    put_axis(store, nodes, "lon", &lon);
}

/// Writes the field as a store of version 3, raw or with zstd. With `chunks_per_shard`, so many chunks along the
/// time share a shard.
pub(crate) fn zarr3(
    store: &Path,
    field: &Field,
    chunk: [usize; 3],
    is_zstd: bool,
    chunks_per_shard: Option<usize>,
) -> Vec<Place> {
    let zstd = json!({"name": "zstd", "configuration": {"level": 3, "checksum": false}});
    let mut codecs = if is_zstd { json!([raw(), zstd]) } else { json!([raw()]) };
    let mut grid = chunk;
    if let Some(count) = chunks_per_shard {
        grid[0] *= count;
        codecs = json!([{"name": "sharding_indexed", "configuration": {
            "chunk_shape": chunk, "codecs": codecs, "index_location": "end",
            "index_codecs": [raw(), {"name": "crc32c"}],
        }}]);
    }
    let mut nodes = Map::new();
    put_axes(store, &mut nodes, field);
    let dims = ["time", "lat", "lon"];
    let node = node3(&dims, &field.shape, &grid, "float32", &codecs, &json!({"units": "K"}));
    nodes.insert("value".to_owned(), node);
    put_nodes(store, &nodes);
    let encoded = |at| {
        let bytes = field.chunk(at, chunk);
        if is_zstd { zstd::bulk::compress(&bytes, 3).unwrap() } else { bytes }
    };
    let object = |[x, y, z]: [usize; 3]| store.join(format!("value/c/{x}/{y}/{z}"));
    match chunks_per_shard {
        Some(count) => shards(field, chunk, count, encoded, object),
        None => chunks(field, chunk, encoded, object),
    }
}

/// Writes each chunk as an object.
fn chunks(
    field: &Field,
    chunk: [usize; 3],
    encoded: impl Fn([usize; 3]) -> Vec<u8>,
    object: impl Fn([usize; 3]) -> PathBuf,
) -> Vec<Place> {
    let write = |at| {
        let (path, bytes) = (object(at), encoded(at));
        put(&path, &bytes);
        (path, 0..bytes.len())
    };
    positions(field.grid(chunk)).map(write).collect()
}

/// Writes shards of `count` chunks along the time, with their indexes at the end.
fn shards(
    field: &Field,
    chunk: [usize; 3],
    count: usize,
    encoded: impl Fn([usize; 3]) -> Vec<u8>,
    object: impl Fn([usize; 3]) -> PathBuf,
) -> Vec<Place> {
    let [days, lats, lons] = field.grid(chunk);
    let mut places = Vec::new();
    for [shard, lat, lon] in positions([days.div_ceil(count), lats, lons]) {
        let path = object([shard, lat, lon]);
        let (mut content, mut index) = (Vec::new(), Vec::new());
        for day in shard * count..(shard + 1) * count {
            if day >= days {
                index.extend([0xff; 16]);
                continue;
            }
            let bytes = encoded([day, lat, lon]);
            index.extend((content.len() as u64).to_le_bytes());
            index.extend((bytes.len() as u64).to_le_bytes());
            places.push((path.clone(), content.len()..content.len() + bytes.len()));
            content.extend(bytes);
        }
        content.extend(&index);
        content.extend(crc32c(&index).to_le_bytes());
        put(&path, &content);
    }
    places
}

/// The Castagnoli checksum, bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}

/// Writes the field as a store of version 2, shuffled and compressed with zlib.
pub(crate) fn zarr2(store: &Path, field: &Field, chunk: [usize; 3]) -> Vec<Place> {
    let (time, lat, lon) = field.labels();
    let array = |shape: &[usize], chunks: &[usize], dtype: &str, is_packed: bool| {
        let filters = is_packed.then(|| json!([{"id": "shuffle", "elementsize": 4}]));
        let compressor = is_packed.then(|| json!({"id": "zlib", "level": 4}));
        let fill_value = if is_packed { json!("NaN") } else { Value::Null };
        json!({
            "zarr_format": 2, "shape": shape, "chunks": chunks, "dtype": dtype, "order": "C",
            "fill_value": fill_value, "filters": filters, "compressor": compressor,
        })
    };
    let mut documents = Map::from_iter([(".zgroup".to_owned(), json!({"zarr_format": 2}))]);
    let mut add = |name: &str, array: Value, attributes: Value| {
        documents.insert(format!("{name}/.zarray"), array);
        documents.insert(format!("{name}/.zattrs"), attributes);
    };
    let axes = [
        ("time", "<i4", le(&time, i32::to_le_bytes)),
        ("lat", "<f8", le(&lat, f64::to_le_bytes)),
        ("lon", "<f8", le(&lon, f64::to_le_bytes)),
    ];
    for (axis, (name, dtype, bytes)) in axes.into_iter().enumerate() {
        let len = [field.shape[axis]];
        let mut attributes = json!({"_ARRAY_DIMENSIONS": [name]});
        if name == "time" {
            attributes["units"] = json!(DAYS_SINCE);
        }
        add(name, array(&len, &len, dtype, false), attributes);
        put(&store.join(name).join("0"), &bytes);
    }
    let dims = json!({"_ARRAY_DIMENSIONS": ["time", "lat", "lon"], "units": "K"});
    add("value", array(&field.shape, &chunk, "<f4", true), dims);
    for (name, document) in &documents {
        put(&store.join(name), document.to_string().as_bytes());
    }
    let metadata = json!({"zarr_consolidated_format": 1, "metadata": documents});
    put(&store.join(".zmetadata"), metadata.to_string().as_bytes());
    let encoded = |at| zlib(&shuffled(&field.chunk(at, chunk)));
    chunks(field, chunk, encoded, |[x, y, z]| store.join(format!("value/{x}.{y}.{z}")))
}

/// The first bytes of all cells, then the second ones, and so on.
fn shuffled(cells: &[u8]) -> Vec<u8> {
    let cells = cells.as_chunks::<4>().0;
    (0..4).flat_map(|plane| cells.iter().map(move |cell| cell[plane])).collect()
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(vec![], Compression::new(4));
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Writes the field as a NetCDF classic file with offsets of 64 bits. The places are parts of `part` bytes of its
/// values.
pub(crate) fn netcdf3(path: &Path, field: &Field, part: usize) -> Vec<Place> {
    let (time, lat, lon) = field.labels();
    let contents: [Vec<u8>; 4] = [
        le(&time, i32::to_be_bytes),
        le(&lat, f64::to_be_bytes),
        le(&lon, f64::to_be_bytes),
        le(&field.values, f32::to_be_bytes),
    ];
    let padded = |len: usize| len.next_multiple_of(4);
    let lens = contents.each_ref().map(|content| padded(content.len()));
    let mut at = netcdf3_header(field, lens, [0; 4]).len();
    let begins = lens.map(|len| {
        at += len;
        at - len
    });
    let mut file = netcdf3_header(field, lens, begins);
    for (content, len) in contents.iter().zip(lens) {
        file.extend(content);
        file.extend(vec![0; len - content.len()]);
    }
    put(path, &file);
    let (start, end) = (begins[3], begins[3] + contents[3].len());
    let place = |at: usize| (path.to_owned(), at..(at + part).min(end));
    (start..end).step_by(part).map(place).collect()
}

/// The header of a file with the variables `time`, `lat`, `lon` and `value`.
fn netcdf3_header(field: &Field, lens: [usize; 4], begins: [usize; 4]) -> Vec<u8> {
    const DIMENSIONS: u32 = 10;
    const VARIABLES: u32 = 11;
    const ATTRIBUTES: u32 = 12;
    const CHAR: u32 = 2;
    const INT: u32 = 4;
    const FLOAT: u32 = 5;
    const DOUBLE: u32 = 6;
    let mut header = b"CDF\x02\0\0\0\0".to_vec();
    let word = |header: &mut Vec<u8>, word: u32| header.extend(word.to_be_bytes());
    let text = |header: &mut Vec<u8>, text: &str| {
        word(header, text.len() as u32);
        header.extend(text.as_bytes());
        header.resize(header.len().next_multiple_of(4), 0);
    };
    word(&mut header, DIMENSIONS);
    word(&mut header, 3);
    for (name, len) in ["time", "lat", "lon"].into_iter().zip(field.shape) {
        text(&mut header, name);
        word(&mut header, len as u32);
    }
    [0, 0, VARIABLES, 4].into_iter().for_each(|it| word(&mut header, it));
    let variables: [(&str, &[u32], u32); 4] = [
        ("time", &[0], INT),
        ("lat", &[1], DOUBLE),
        ("lon", &[2], DOUBLE),
        ("value", &[0, 1, 2], FLOAT),
    ];
    for (number, (name, dims, kind)) in variables.into_iter().enumerate() {
        text(&mut header, name);
        word(&mut header, dims.len() as u32);
        dims.iter().for_each(|dim| word(&mut header, *dim));
        if name == "time" {
            [ATTRIBUTES, 1].into_iter().for_each(|it| word(&mut header, it));
            text(&mut header, "units");
            word(&mut header, CHAR);
            text(&mut header, DAYS_SINCE);
        } else {
            [0, 0].into_iter().for_each(|it| word(&mut header, it));
        }
        word(&mut header, kind);
        word(&mut header, lens[number] as u32);
        header.extend((begins[number] as u64).to_be_bytes());
    }
    header
}
