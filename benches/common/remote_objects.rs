//! The objects of the bench `remote`, in memory.
//!
//! | path | content |
//! |---|---|
//! | `bucket/climate.tet` | the array of the other benches: 256 MiB in 64 uncompressed chunks |
//! | `bucket/array/` | a dense TileDB array of 512 MiB in 901 unfiltered tiles of 596 kB |
//! | `bucket/climate.zarr/` | the same values in a Zarr store, in 64 uncompressed chunks |
//! | `bucket/climate.zarr.zip` | this store in a zip file, as it is |
//! | `bucket/climate.icechunk/` | the same arrays and chunks in an Icechunk repository of specification 2 |
//! | `bucket/small.tet` | a file of 90 kB |
//! | `bucket/years/` | many files of 2 kB |

use bytes::Bytes;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde_json::json;

use super::repacked::{icechunk, store_objects, zipped};
use super::support::icechunk_repository::StoredArray;
use super::support::tiledb_statistics::no_statistics;
use super::support::tiledb_writer::{
    FLOAT32, Filters, INT64, TestAttribute, TestDimension, TestSchema, generic_tile, integer, uuid,
    words,
};
use super::support::{F32, I32, Layout, TestDataset, tet_bytes};
use super::{file, is_small, size, values};

/// The bytes of a part of a tile that TileDB filters on its own.
const FILTERED: usize = 65_536;
/// The fields of a fragment's metadata: the attribute, an unused slot, and two dimensions.
const FIELDS: usize = 4;

/// Returns all objects with their paths.
pub(crate) fn objects() -> Vec<(String, Bytes)> {
    let climate = std::fs::read(&file(values(), false).path).unwrap();
    let mut objects = vec![
        ("bucket/climate.tet".to_owned(), climate.into()),
        ("bucket/small.tet".to_owned(), small_file(150, 150).into()),
    ];
    objects.extend(
        (0..files()).map(|year| (format!("bucket/years/{year:03}.tet"), small_file(12, 4).into())),
    );
    objects.extend(Dense::new().objects());
    let arrays = zarr_arrays();
    let of_repository = icechunk(&arrays, zarr_chunks());
    let store = store_objects(arrays);
    objects.push(("bucket/climate.zarr.zip".to_owned(), zipped(&store)));
    for (folder, of_folder) in [("climate.zarr", store), ("climate.icechunk", of_repository)] {
        let below = |(path, bytes)| (format!("bucket/{folder}/{path}"), bytes);
        objects.extend(of_folder.into_iter().map(below));
    }
    objects
}

/// Returns the key of a chunk of the Zarr store.
pub(crate) fn zarr_chunk(number: u64) -> String {
    format!("climate.zarr/value/c/{number}/0")
}

/// Returns the number of chunks of the Zarr store.
pub(crate) fn zarr_chunks() -> u64 {
    let (hours, _, chunk) = size();
    hours.div_ceil(chunk)
}

/// Returns arrays of Zarr with the values of the `.tet` file.
fn zarr_arrays() -> Vec<StoredArray> {
    let (hours, stations, chunk) = size();
    let node = |dims: &[&str], shape: &[u64], chunk: &[u64], data_type: &str, attributes| {
        json!({
            "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": data_type,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": 0, "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
            "attributes": attributes, "dimension_names": dims,
        })
    };
    let axis = |name: &str, len: u64, attributes| StoredArray {
        name: name.to_owned(),
        document: node(&[name], &[len], &[len], "int32", attributes),
        objects: vec![(vec![0], (0..len as i32).flat_map(i32::to_le_bytes).collect())],
    };
    let (values, bytes) = (values(), (chunk * stations * 4) as usize);
    let chunks = (0..).zip(values.chunks(bytes)).map(|(number, cells)| {
        let mut cells = cells.to_vec();
        cells.resize(bytes, 0);
        (vec![number, 0], cells)
    });
    let document =
        node(&["time", "station"], &[hours, stations], &[chunk, stations], "float32", json!({}));
    vec![
        StoredArray { name: "value".to_owned(), document, objects: chunks.collect() },
        axis("time", hours, json!({"units": "hours since 1990-01-01"})),
        axis("station", stations, json!({})),
    ]
}

/// Returns the number of files of the catalog.
pub(crate) fn files() -> usize {
    if is_small() { 10 } else { 100 }
}

/// Returns the key of the file of all values of the TileDB array.
pub(crate) fn tiledb_values() -> String {
    format!("array/__fragments/{}/a0.tdb", fragment())
}

fn fragment() -> String {
    format!("__1_1_{}_22", uuid(0))
}

/// Returns a file of an array of days and stations, with labels.
fn small_file(days: u64, stations: u64) -> Vec<u8> {
    let data = (0..days * stations).flat_map(|cell| (cell as f32).to_le_bytes()).collect();
    let labels: Vec<String> = (0..stations).map(|station| format!("ST{station:05}")).collect();
    let metadata =
        json!({"dim_names": ["time", "station"], "coords": {"station": {"labels": labels}}});
    let value = TestDataset::new("value", F32, &[days, stations], &[days, stations], data)
        .with_metadata(metadata);
    let time = (0..days as i32).flat_map(i32::to_le_bytes).collect();
    let time = TestDataset::new("time", I32, &[days], &[days], time)
        .with_metadata(json!({"dim_names": ["time"], "attrs": {"units": "days since 1990-01-01"}}));
    tet_bytes(&[value, time], &Layout { history_version: Some(2), ..Layout::default() })
}

/// A dense TileDB array of hours x stations in one fragment. Tiles span all stations.
struct Dense {
    tiles: usize,
    tile_hours: usize,
    stations: usize,
}

impl Dense {
    fn new() -> Self {
        match is_small() {
            true => Self { tiles: 32, tile_hours: 64, stations: 16 },
            false => Self { tiles: 901, tile_hours: 582, stations: 256 },
        }
    }

    fn objects(&self) -> Vec<(String, Bytes)> {
        let (schema, fragment) = (self.schema(), fragment());
        let (data, offsets) = self.data();
        let metadata = metadata(&schema, data.len() as u64, &offsets);
        [
            (format!("__schema/{}", schema.name()), generic_tile(&schema.content())),
            (format!("__commits/{fragment}.wrt"), vec![]),
            (format!("__fragments/{fragment}/__fragment_metadata.tdb"), metadata),
            (format!("__fragments/{fragment}/a0.tdb"), data),
        ]
        .map(|(path, bytes)| (format!("bucket/array/{path}"), bytes.into()))
        .into()
    }

    fn schema(&self) -> TestSchema {
        let axis = |name: &str, len: usize, extent: usize| TestDimension {
            name: name.into(),
            code: INT64,
            domain: (0, len as i128 - 1),
            extent: extent as i128,
        };
        let value = TestAttribute {
            name: "value".into(),
            code: FLOAT32,
            values: Some(1),
            nullable: false,
            fill: f32::NAN.to_le_bytes().into(),
            fill_valid: false,
            filters: Filters::None,
        };
        TestSchema {
            time: 1,
            dimensions: vec![
                axis("time", self.tiles * self.tile_hours, self.tile_hours),
                axis("station", self.stations, self.stations),
            ],
            attributes: vec![value],
            column_major: [false, false],
            current_domain: None,
            offsets: Filters::None,
            validity: Filters::None,
        }
    }

    /// Returns the file of all values, and where each tile begins.
    fn data(&self) -> (Vec<u8>, Vec<u64>) {
        let mut rng = SmallRng::seed_from_u64(0);
        let cells = self.tile_hours * self.stations;
        let (mut file, mut offsets) = (Vec::with_capacity(self.tiles * (cells + 64) * 4), vec![]);
        for _ in 0..self.tiles {
            offsets.push(file.len() as u64);
            file.extend(words([(cells * 4).div_ceil(FILTERED) as u64]));
            let mut left = cells;
            while left > 0 {
                let count = left.min(FILTERED / 4);
                let len = (count * 4) as u32;
                file.extend([len, len, 0].iter().flat_map(|number| number.to_le_bytes()));
                let values = (0..count).map(|_| 280.0 + rng.random::<f32>());
                file.extend(values.flat_map(f32::to_le_bytes));
                left -= count;
            }
        }
        (file, offsets)
    }
}

/// Returns the metadata of the fragment: blocks, footer, the footer's length.
fn metadata(schema: &TestSchema, data_len: u64, offsets: &[u64]) -> Vec<u8> {
    let empty = || words([0]);
    let mut blocks = vec![[10_u32.to_le_bytes(), [0; 4]].concat()]; // no R-tree
    blocks.push(words([&[offsets.len() as u64], offsets].concat()));
    // All other offsets of tiles, and sizes of values.
    blocks.extend((1..4 * FIELDS).map(|_| empty()));
    for kind in no_statistics() {
        blocks.extend((0..FIELDS).map(|_| kind.clone()));
    }
    blocks.push(vec![0; 32 * FIELDS]); // no statistics of the whole fragment
    blocks.push(empty()); // no delete conditions

    let (mut file, mut starts) = (vec![], vec![]);
    for block in blocks {
        starts.push(file.len() as u64);
        file.extend(generic_tile(&block));
    }
    let name = schema.name();
    let mut footer = 22_u32.to_le_bytes().to_vec();
    footer.extend(words([name.len() as u64]));
    footer.extend(name.as_bytes());
    footer.extend([1, 0]);
    for axis in &schema.dimensions {
        footer.extend([axis.domain.0, axis.domain.1].map(|end| integer(axis.code, end)).concat());
    }
    footer.extend(words([0, 0]));
    footer.extend([0, 0]);
    footer.extend(words((0..3 * FIELDS).map(|at| if at == 0 { data_len } else { 0 })));
    footer.extend(words(starts));
    let len = footer.len() as u64;
    file.extend(footer);
    file.extend(words([len]));
    file
}
