//! Stores that change while a program reads them, and stores whose chunks are not where the metadata sets.

mod nczarr;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::datatypes::Float32Type;
use futures::TryStreamExt;
use gridfusion_core::ErrorKind;
use gridfusion_core::options::ArrayOptions;
use gridfusion_core::read::{ArrayReader, Opener};
use tempfile::TempDir;

use super::{Zarr, open};

mod appended;
mod only_read;
mod padded;
mod ragged;
mod ragged_columns;
mod reference_tables;
mod written;

pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        match from.is_dir() {
            true => copy(&from, &to),
            false => _ = fs::copy(from, to).unwrap(),
        }
    }
}

/// A copy of a store with two chunks per variable, and its path.
fn sea() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("sea.zarr");
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data/sea.zarr");
    copy(Path::new(shipped), &store);
    (folder, store)
}

async fn sst(store: &Path) -> ArrayReader {
    open(store.to_str().unwrap()).await.unwrap().array("sst").await.unwrap()
}

#[tokio::test]
async fn what_changes_while_it_is_read_is_an_error() {
    // A chunk that was read, and the metadata of labels, which are all that a reader of labels reads.
    for (columns, changed) in [
        (&["value"][..], "sst/c/0/0/0"),
        (&["lat", "lon"], "lat/zarr.json"),
        (&["lat"], "zarr.json"),
    ] {
        let (_folder, store) = sea();
        let reader = sst(&store).await.with_columns(columns).unwrap();
        let rows: usize = reader
            .batches()
            .map_ok(|batch| batch.num_rows())
            .try_fold(0, |a, b| async move { Ok(a + b) })
            .await
            .unwrap();
        assert_eq!(rows, 60 * 8 * 12);
        let mut batches = std::pin::pin!(reader.batches());
        batches.try_next().await.unwrap().unwrap();
        let mut bytes = fs::read(store.join(changed)).unwrap();
        bytes.push(b' ');
        fs::write(store.join(changed), bytes).unwrap();
        let error = batches.try_collect::<Vec<_>>().await.expect_err(changed);
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        assert!(error.to_string().contains("has changed"), "{error}");
    }
}

#[tokio::test]
async fn chunks_of_other_names_are_no_fill_values() {
    let (_folder, store) = sea();
    for chunk in ["0", "1"] {
        let (from, to) = (store.join("sst/c").join(chunk), store.join("sst").join(chunk));
        fs::rename(from, to).unwrap();
    }
    let error = sst(&store).await.cells::<Float32Type>("value").await.unwrap_err().to_string();
    assert!(error.contains("none has; there is"), "{error}");
    // A single chunk that is not there was not written.
    let (_folder, store) = sea();
    fs::remove_dir_all(store.join("sst/c/1")).unwrap();
    let cells = sst(&store).await.cells::<Float32Type>("value").await.unwrap();
    assert!((30..60).all(|day| cells.get(&[day, 0, 4]).is_none()) && cells.null_count() < 60 * 96);
}

#[tokio::test]
async fn options_are_those_of_the_tables() {
    let (_folder, store) = sea();
    let columns = async |options: ArrayOptions| {
        let opener = Opener::new(vec![Arc::new(Zarr)]).with_options(options);
        let opened = opener.open(store.to_str().unwrap()).await.unwrap();
        let schema = opened.variables().await.unwrap().schema().unwrap();
        schema.fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>()
    };
    assert_eq!(columns(ArrayOptions::default()).await, ["time", "lat", "lon", "ssh", "sst"]);
    let indices = ArrayOptions::default().with_index_columns(true);
    let expected = ["time", "lat", "lon", "ssh", "sst", "time_idx", "lat_idx", "lon_idx"];
    let mut found = columns(indices).await;
    found.sort_unstable();
    let mut expected = expected.map(str::to_owned).to_vec();
    expected.sort_unstable();
    assert_eq!(found, expected);
    let one = ArrayOptions::default().with_dataset("sst");
    assert_eq!(columns(one).await, ["time", "lat", "lon", "value"]);
    let unknown = ArrayOptions::default().with_option("colour", "red");
    let opener = Opener::new(vec![Arc::new(Zarr)]).with_options(unknown);
    let error = opener.open(store.to_str().unwrap()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
}
