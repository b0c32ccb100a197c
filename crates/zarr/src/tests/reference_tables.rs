//! References in Parquet that fsspec wrote for kerchunk and VirtualiZarr.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::ArrowPrimitiveType;
use arrow::datatypes::{Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, UInt8Type};
use gridfusion_core::ErrorKind;
use gridfusion_core::io::RemoteStore;
use gridfusion_core::read::{Dataset, Opener};
use gridfusion_core::source::{Place, Stores};
use object_store::ObjectStoreExt;
use object_store::memory::InMemory;
use serde_json::Value;
use tempfile::TempDir;
use url::Url;

use super::{Zarr, copy, open};
use crate::bytes::table;
use crate::format::open_folder;

/// A copy of the folder with all references.
fn copied() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let all = folder.path().join("references");
    copy(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/references")), &all);
    (folder, all)
}

async fn opened(folder: &Path, name: &str) -> Dataset {
    open(folder.join(name).to_str().unwrap()).await.unwrap()
}

/// Returns the cells of a variable in the order of the grid; `None` for missing ones.
async fn cells<T: ArrowPrimitiveType>(dataset: &Dataset, name: &str) -> Vec<Option<T::Native>> {
    try_cells::<T>(dataset, name).await.unwrap()
}

async fn try_cells<T: ArrowPrimitiveType>(
    dataset: &Dataset,
    name: &str,
) -> gridfusion_core::Result<Vec<Option<T::Native>>> {
    let reader = dataset.array(name).await?;
    let cells = reader.cells::<T>("value").await?;
    let shape = cells.shape().to_vec();
    let at = |number: usize| {
        let mut rest = number;
        let mut index = shape.clone();
        for len in index.iter_mut().rev() {
            (rest, *len) = (rest / *len, rest % *len);
        }
        cells.get(&index)
    };
    Ok((0..shape.iter().product()).map(at).collect())
}

/// Stores of a session without any.
#[derive(Debug)]
struct NoStores;

impl Stores for NoStores {
    fn store(&self, url: &Url) -> gridfusion_core::Result<RemoteStore> {
        panic!("no store of {url}")
    }
}

#[tokio::test]
async fn references_of_all_writers_are_read() {
    let (_folder, all) = copied();
    for name in ["fastparquet.parq", "pyarrow.parq", "pyarrow.parq/", "virtualizarr.parq"] {
        let dataset = opened(&all, name).await;
        let t: Vec<Option<f32>> = (0..70).map(|at| (at < 42).then_some(at as f32)).collect();
        assert_eq!(cells::<Float32Type>(&dataset, "t").await, t, "{name}");
        let y: Vec<Option<f64>> = (0..10).map(|at| Some(f64::from(at + 1) * 10.0)).collect();
        assert_eq!(cells::<Float64Type>(&dataset, "y").await, y, "{name}");
        assert_eq!(cells::<Float64Type>(&dataset, "s").await, [Some(3.5)], "{name}");
        if name.starts_with("virtualizarr") {
            continue;
        }
        // Whole objects, and an absent chunk.
        let whole: Vec<Option<u8>> = (0..10).map(|at| (at < 8).then_some(at + 1)).collect();
        assert_eq!(cells::<UInt8Type>(&dataset, "whole").await, whole, "{name}");
    }
}

#[tokio::test]
async fn a_table_that_is_lost_is_not_one_that_is_absent() {
    let (_folder, all) = copied();
    let folder = all.join("fastparquet.parq");
    // The table of the chunks that have no reference is there, but empty: without it, they are as absent.
    fs::remove_file(folder.join("t/refs.1.parq")).unwrap();
    let dataset = opened(&all, "fastparquet.parq").await;
    let t = cells::<Float32Type>(&dataset, "t").await;
    assert_eq!(t.iter().filter(|cell| cell.is_some()).count(), 27);
    // A folder in place of a table.
    fs::create_dir(folder.join("t/refs.1.parq")).unwrap();
    let dataset = opened(&all, "fastparquet.parq").await;
    assert!(try_cells::<Float32Type>(&dataset, "t").await.is_err());
}

/// An opener with a store that has the shipped folder, and the store.
async fn remote() -> (Opener, Arc<InMemory>) {
    let (_folder, all) = copied();
    let store = Arc::new(InMemory::new());
    let mut folders = vec![all.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            match entry.path() {
                path if path.is_dir() => folders.push(path),
                path => {
                    let name = path.strip_prefix(&all).unwrap().to_str().unwrap().to_owned();
                    store.put(&name.into(), fs::read(&path).unwrap().into()).await.unwrap();
                }
            }
        }
    }
    let url = Url::parse("s3://bucket").unwrap();
    let opener = Opener::new(vec![Arc::new(Zarr)]).with_store(&url, Arc::clone(&store) as _);
    (opener, store)
}

#[tokio::test]
async fn folders_in_object_stores_name_their_neighbours_but_no_local_files() {
    let (opener, store) = remote().await;
    store.delete(&"fastparquet.parq/t/refs.1.parq".into()).await.unwrap();
    for (name, there) in [("pyarrow.parq", 42), ("fastparquet.parq", 27)] {
        let dataset = opener.open(&format!("s3://bucket/{name}")).await.unwrap();
        let t = cells::<Float32Type>(&dataset, "t").await;
        assert_eq!(t.iter().flatten().count(), there, "{name}");
    }
    for (path, expected) in [
        ("/etc/hostname", "/etc/hostname"),
        ("file:///etc/hostname", "/etc/hostname"),
        ("whole.0", ""),
        ("s3://bucket/whole.0", ""),
        ("s3://other/whole.0", "other"),
    ] {
        let rows = [
            (Some(path), Some(0), 0, None),
            (None, Some(0), 0, Some("1234")),
            (None, None, 0, None),
        ];
        let (opener, store) = remote().await;
        let whole = "pyarrow.parq/whole/refs.0.parq";
        store.put(&whole.into(), table(&rows).into()).await.unwrap();
        let dataset = opener.open("s3://bucket/pyarrow.parq").await.unwrap();
        match try_cells::<UInt8Type>(&dataset, "whole").await {
            Ok(cells) => assert_eq!((cells[3], cells[4], expected), (Some(4), Some(b'1'), "")),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
                assert!(!expected.is_empty() && error.to_string().contains(expected), "{error}");
            }
        }
    }
}

#[tokio::test]
async fn tables_are_verified() {
    let (_folder, all) = copied();
    let folder = all.join("pyarrow.parq");
    fs::copy(folder.join("t/refs.1.parq"), folder.join("t/refs.9.parq")).unwrap();
    let check = async || {
        let place = Place::new(folder.to_str().unwrap(), Arc::new(NoStores)).unwrap();
        let store = open_folder(&place).await.unwrap();
        assert_eq!(store.facts().noun, "references in Parquet of a Zarr store, version 2");
        let variables = &store.hierarchy().variables;
        let t = variables.iter().position(|it| it.path == "t").unwrap();
        let stored = store.stored(t).await.ok().flatten();
        (stored.map(|it| (it.chunks, it.raw_bytes)), store.check_index(t).await)
    };
    let stored = Some((8, Some(8 * 24)));
    let (found, checked) = check().await;
    let error = checked.unwrap_err();
    assert!(found == stored && error.to_string().contains("number 9"), "{error}");
    fs::remove_file(folder.join("t/refs.9.parq")).unwrap();
    let (found, checked) = check().await;
    assert_eq!((found, checked.unwrap()), (stored, Some(8)));
    fs::write(folder.join("t/refs.1.parq"), "PAR1").unwrap();
    let error = check().await.1.unwrap_err();
    assert_eq!(error.file(), Some(&*format!("{}/t/refs.1.parq", folder.display())), "{error}");
}

#[tokio::test]
async fn tables_that_change_are_errors() {
    let (_folder, all) = copied();
    let folder = all.join("fastparquet.parq");
    let dataset = opened(&all, "fastparquet.parq").await;
    cells::<Float32Type>(&dataset, "t").await;
    let mut bytes = fs::read(folder.join("t/refs.0.parq")).unwrap();
    bytes.push(0);
    fs::write(folder.join("t/refs.0.parq"), bytes).unwrap();
    let error = try_cells::<UInt8Type>(&dataset, "whole").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
}

#[tokio::test]
async fn tables_without_their_metadata_are_no_store() {
    let (_folder, all) = copied();
    let metadata = all.join("pyarrow.parq/.zmetadata");
    let text = fs::read_to_string(&metadata).unwrap();
    fs::write(&metadata, text.replace("record_size", "size_of_records")).unwrap();
    let dataset = opened(&all, "pyarrow.parq").await;
    let error = try_cells::<Float32Type>(&dataset, "t").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    fs::write(&metadata, text.replace("\"record_size\":4", "\"record_size\":3")).unwrap();
    let dataset = opened(&all, "pyarrow.parq").await;
    let error = try_cells::<Float32Type>(&dataset, "t").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(error.to_string().contains("/refs.0.parq"), "{error}");
}

/// `tests/data/foreign/parquet_references.py` writes the folders: `expected.json` has the cells of each.
#[tokio::test]
#[ignore = "needs GRIDFUSION_PARQUET_REFERENCES, a folder that tests/data/foreign/parquet_references.py wrote"]
async fn random_references_are_read_as_they_were_written() {
    let folder = std::env::var("GRIDFUSION_PARQUET_REFERENCES").unwrap();
    let mut checked = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let folder = entry.unwrap().path();
        let Ok(text) = fs::read_to_string(folder.join("expected.json")) else { continue };
        let expected: Value = serde_json::from_str(&text).unwrap();
        let dataset = opened(&folder, "refs.parq").await;
        for (name, variable) in expected.as_object().unwrap() {
            let found = match variable["type"].as_str().unwrap() {
                "f4" => as_numbers(cells::<Float32Type>(&dataset, name).await),
                "f8" => as_numbers(cells::<Float64Type>(&dataset, name).await),
                "i2" => as_numbers(cells::<Int16Type>(&dataset, name).await),
                "i4" => as_numbers(cells::<Int32Type>(&dataset, name).await),
                _ => cells::<Int64Type>(&dataset, name)
                    .await
                    .iter()
                    .map(|it| it.map(|it| it as f64))
                    .collect(),
            };
            let values = variable["values"].as_array().unwrap();
            let values: Vec<Option<f64>> = values.iter().map(Value::as_f64).collect();
            assert_eq!(found, values, "{name} in {folder:?}");
            checked += 1;
        }
    }
    assert!(checked > 0);
}

fn as_numbers<N: Into<f64> + Copy>(cells: Vec<Option<N>>) -> Vec<Option<f64>> {
    cells.into_iter().map(|cell| cell.map(Into::into)).collect()
}
