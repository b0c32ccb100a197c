//! Which columns tables of samples have, and which errors.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow::util::display::array_value_to_string;
use futures::TryStreamExt;
use gridfusion_core::options::ArrayOptions;
use gridfusion_core::read::{ArrayReader, Opener};
use gridfusion_core::{ErrorKind, Result};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::nczarr::{put, put_array};
use crate::Zarr;

/// Writes an array of version 2 in one chunk.
fn write(store: &Path, path: &str, dims: &[&str], shape: &[u64], dtype: &str, more: &Value) {
    let mut attributes = json!({"_ARRAY_DIMENSIONS": dims});
    more.as_object().unwrap().iter().for_each(|(name, it)| attributes[name] = it.clone());
    put_array(store, path, dtype, shape, shape, &json!({"zattrs": attributes}));
}

fn write_ints(store: &Path, path: &str, dim: &str, cells: &[i32], more: &Value) {
    write(store, path, &[dim], &[cells.len() as u64], "<i4", more);
    put(
        store,
        &format!("{path}/0"),
        cells.iter().flat_map(|it| it.to_le_bytes()).collect::<Vec<u8>>(),
    );
}

/// Two stations, of 2 samples and 1: `t (obs, level)` with coordinates of all kinds.
fn stations() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path();
    put(store, ".zgroup", r#"{"zarr_format": 2}"#);
    write_ints(store, "row_size", "station", &[2, 1], &json!({"sample_dimension": "obs"}));
    write_ints(store, "lat", "station", &[60, 70], &json!({}));
    write_ints(store, "z", "obs", &[1, 2, 3], &json!({}));
    write(store, "depth", &["obs", "level"], &[3, 2], "<i4", &json!({}));
    write(store, "t", &["obs", "level"], &[3, 2], "<f4", &json!({"coordinates": "lat z depth"}));
    folder
}

async fn opened(store: &Path, options: &[(&str, &str)]) -> Result<ArrayReader> {
    let all = options
        .iter()
        .fold(ArrayOptions::default(), |all, (name, value)| all.with_option(*name, *value));
    let opener = Opener::new(vec![Arc::new(Zarr)]).with_options(all);
    opener.open(store.to_str().unwrap()).await?.variables().await
}

/// Returns the names of the columns apart from dimensions.
async fn columns(store: &Path, options: &[(&str, &str)]) -> String {
    let schema = opened(store, options).await.unwrap().schema().unwrap();
    let names = schema.fields().iter().map(|field| field.name().as_str());
    names.filter(|it| !["obs", "level"].contains(it)).collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn the_option_means_what_it_means_elsewhere() {
    let folder = stations();
    let store = folder.path();
    for (option, expected) in [
        ("cheap", "t z station lat"),
        ("true", "t z depth station lat"),
        ("lat", "t lat"),
        ("depth, lat", "t depth lat"),
        ("row_size", "t row_size"),
        ("false", "t"),
    ] {
        assert_eq!(columns(store, &[("coordinates", option)]).await, expected, "{option}");
    }
    let error = opened(store, &[("coordinates", "lat, height")]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
    assert!(error.to_string().contains("no variable \"height\""), "{error}");
}

#[tokio::test]
async fn columns_of_instances_have_the_dimensions_of_the_widest_variable() {
    let folder = stations();
    let store = folder.path();
    write_ints(store, "weight", "level", &[7, 8], &json!({}));
    let options = [("dataset", "weight, t"), ("union_by_name", "true"), ("coordinates", "lat")];
    let reader = opened(store, &options).await.unwrap().with_columns(&["weight", "lat"]).unwrap();
    let batches: Vec<_> = reader.batches().try_collect().await.unwrap();
    let rows = batches.iter().flat_map(|batch| {
        let cell = |column: usize, row| array_value_to_string(batch.column(column), row).unwrap();
        (0..batch.num_rows()).map(move |row| [cell(0, row), cell(1, row)].join(" "))
    });
    let mut rows: Vec<String> = rows.collect();
    rows.sort();
    assert_eq!(rows, ["7 60", "7 60", "7 70", "8 60", "8 60", "8 70"]);
}

#[tokio::test]
async fn a_column_of_the_table_keeps_its_name() {
    let folder = stations();
    let store = folder.path();
    write_ints(store, "value", "station", &[1, 2], &json!({}));
    assert_eq!(columns(store, &[("dataset", "t")]).await, "value z station lat");
    // Values of complex numbers have names of their own.
    write(store, "c", &["obs"], &[3], "<c8", &json!({}));
    write_ints(store, "c_re", "station", &[1, 2], &json!({}));
    assert_eq!(columns(store, &[("dataset", "c")]).await, "c_re c_im station lat");
}

#[tokio::test]
async fn counts_that_are_no_integers_are_refused() {
    let folder = stations();
    let store = folder.path();
    write(store, "row_size", &["station"], &[2], "<f8", &json!({"sample_dimension": "obs"}));
    put(store, "row_size/0", [2.0_f64, 1.0].map(f64::to_le_bytes).concat());
    let error = opened(store, &[]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    let text = error.to_string();
    assert!(text.contains("\"row_size\": counts and indices must be integers"), "{text}");
    assert!(text.contains("'coordinates => false'"), "{text}");
    // The advice helps.
    assert_eq!(columns(store, &[("coordinates", "false")]).await, "t");
}

#[tokio::test]
async fn a_group_may_define_the_dimension_of_samples_again() {
    let folder = stations();
    let store = folder.path();
    put(store, "inner/.zgroup", r#"{"zarr_format": 2}"#);
    let own = [("group", "inner")];
    write_ints(store, "inner/u", "obs", &[1, 2], &json!({}));
    assert_eq!(columns(store, &own).await, "u");
    // The same dimension.
    write_ints(store, "inner/u", "obs", &[1, 2, 3], &json!({}));
    assert_eq!(columns(store, &own).await, "u station lat");
    // Only the sum of the counts tells.
    for name in ["z", "depth", "t"] {
        fs::remove_dir_all(store.join(name)).unwrap();
    }
    assert_eq!(columns(store, &own).await, "u station lat");
    write_ints(store, "inner/u", "obs", &[1, 2], &json!({}));
    assert_eq!(columns(store, &own).await, "u");
}

#[tokio::test]
async fn damaged_labels_of_instances_break_no_other_column() {
    let folder = stations();
    let store = folder.path();
    write_ints(store, "station", "station", &[5, 6], &json!({}));
    put(store, "station/0", [5]);
    assert_eq!(columns(store, &[]).await, "t z lat station");
    let cells = async |column: &str| {
        let reader = opened(store, &[]).await.unwrap().with_columns(&[column]).unwrap();
        reader.batches().try_collect::<Vec<_>>().await
    };
    cells("lat").await.unwrap();
    let error = cells("station").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
}
