//! Repositories that the library of Icechunk wrote, and what it reads of them.

mod damage;
mod memory;
mod random;
mod remote;
mod versions;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Float64Type, UInt64Type};
use futures::TryStreamExt;
use object_store::memory::InMemory;
use object_store::{ObjectStore, ObjectStoreExt};
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use super::Icechunk;
use crate::Zarr;
use gridfusion_core::Result;
use gridfusion_core::options::ArrayOptions;
use gridfusion_core::read::{ArrayReader, Dataset, Opener};

/// A version as the library reads it.
#[derive(Debug, Deserialize)]
struct Expected {
    history: Vec<ExpectedSnapshot>,
    arrays: BTreeMap<String, ExpectedArray>,
}

#[derive(Debug, Deserialize)]
struct ExpectedSnapshot {
    id: String,
    #[serde(default)]
    parent: Option<String>,
    #[serde(default)]
    time: u64,
    #[serde(default)]
    message: String,
    #[serde(default)]
    metadata: Value,
}

#[derive(Debug, Deserialize)]
struct ExpectedArray {
    shape: Vec<u64>,
    cells: Value,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/icechunk")
}

/// The versions of the repositories in the folder of this name, by branch or tag.
fn expected(spec: &str) -> BTreeMap<String, Expected> {
    let text = std::fs::read(folder().join("expected.json")).unwrap();
    let mut all: BTreeMap<String, BTreeMap<String, Expected>> =
        serde_json::from_slice(&text).unwrap();
    all.remove(spec).unwrap()
}

fn repository(spec: &str) -> String {
    folder().join(spec).join("small.icechunk").to_str().unwrap().to_owned()
}

/// The object to which virtual chunks refer: the integers from 2 to 39.
fn raw() -> Vec<u8> {
    (2..40_i32).flat_map(i32::to_le_bytes).collect()
}

/// An opener that shows what is stored, with the store of virtual chunks.
async fn opener(options: ArrayOptions) -> Opener {
    let store = InMemory::new();
    store.put(&"raw.bin".into(), raw().into()).await.unwrap();
    for copy in 0..7 {
        store.put(&format!("copy-{copy}.bin").into(), raw().into()).await.unwrap();
    }
    let options = options
        .with_index_columns(true)
        .with_option("fill_as_null", false)
        .with_option("decode_times", false)
        .with_option("coordinates", "false");
    let url = Url::parse("s3://fixture/").unwrap();
    Opener::new(vec![Arc::new(Zarr), Arc::new(Icechunk)])
        .with_store(&url, Arc::new(store) as Arc<dyn ObjectStore>)
        .with_options(options)
}

fn version(name: &str, value: &str) -> ArrayOptions {
    ArrayOptions::default().with_option(name, value)
}

async fn open(location: &str, options: ArrayOptions) -> Result<Dataset> {
    opener(options).await.open(location).await
}

/// Returns all cells of an array, in row-major order.
async fn cells(reader: &ArrayReader) -> Result<Vec<Value>> {
    let shape = reader.shape();
    let count: u64 = shape.iter().product();
    let mut cells = vec![Value::Null; count as usize];
    let index: Vec<String> = reader.dims().iter().map(|it| format!("{}_idx", it.name())).collect();
    let batches: Vec<RecordBatch> = reader.batches().try_collect().await?;
    for batch in &batches {
        let column = |name: &str| {
            let column = batch.column_by_name(name).unwrap();
            arrow::compute::cast(column, &DataType::UInt64).unwrap()
        };
        let index: Vec<_> = index.iter().map(|name| column(name)).collect();
        let values = batch.column_by_name("value").unwrap();
        for row in 0..batch.num_rows() {
            let at = index.iter().zip(&shape).fold(0, |at, (column, len)| {
                at * len + column.as_primitive::<UInt64Type>().value(row)
            });
            cells[at as usize] = cell(values.as_ref(), row);
        }
    }
    Ok(cells)
}

fn cell(values: &dyn Array, row: usize) -> Value {
    if values.is_null(row) {
        return Value::Null;
    }
    match values.data_type() {
        DataType::Utf8 => values.as_string::<i32>().value(row).into(),
        DataType::Utf8View => values.as_string_view().value(row).into(),
        _ => {
            let one = arrow::compute::cast(&values.slice(row, 1), &DataType::Float64).unwrap();
            one.as_primitive::<Float64Type>().value(0).into()
        }
    }
}

/// Whether two cells are equal; numbers by their values.
fn is_same(a: &Value, b: &Value) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    }
}

/// Compares all arrays of a version.
async fn compare(dataset: &Dataset, expected: &Expected, what: &str) {
    let names: Vec<&String> = expected.arrays.keys().collect();
    let mut found = dataset.names();
    found.sort();
    assert_eq!(found.iter().collect::<Vec<_>>(), names, "{what}");
    for (name, array) in &expected.arrays {
        let reader = dataset.array(name).await.unwrap();
        assert_eq!(reader.shape(), array.shape, "{what}: {name}");
        let found = cells(&reader).await;
        let Some(expected) = array.cells.as_array() else {
            let error = found.unwrap_err().to_string();
            assert!(error.contains("changed since it was referenced"), "{what}: {error}");
            continue;
        };
        let found = found.unwrap();
        let same = found.iter().zip(expected).filter(|(a, b)| is_same(a, b)).count();
        let is_equal = same == expected.len() && found.len() == expected.len();
        assert!(is_equal, "{what}: {name}: {found:?}, expected {expected:?}");
    }
}
