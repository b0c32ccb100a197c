//! Texts of single characters, and stores as NCZarr writes them.

use std::fs;
use std::path::Path;

use arrow::util::display::array_value_to_string;
use futures::TryStreamExt;
use gridfusion_core::read::Dataset;
use serde_json::{Value, json};

use super::open;

/// Writes a document, or the bytes of a chunk.
pub(super) fn put(store: &Path, object: &str, content: impl AsRef<[u8]>) {
    let path = store.join(object);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// Writes the documents of an array of version 2 in chunks of this shape.
pub(super) fn put_array(
    store: &Path,
    path: &str,
    dtype: &str,
    shape: &[u64],
    chunks: &[u64],
    more: &Value,
) {
    let mut document = json!({
        "zarr_format": 2, "shape": shape, "chunks": chunks, "dtype": dtype, "order": "C",
        "compressor": null, "filters": null, "fill_value": null,
    });
    let of_document = more.get("zarray").and_then(Value::as_object).into_iter().flatten();
    for (name, value) in of_document {
        document[name] = value.clone();
    }
    put(store, &format!("{path}/.zarray"), document.to_string());
    if let Some(attributes) = more.get("zattrs") {
        put(store, &format!("{path}/.zattrs"), attributes.to_string());
    }
}

fn dims(names: &[&str]) -> Value {
    json!({"zattrs": {"_ARRAY_DIMENSIONS": names}})
}

async fn dataset(store: &Path) -> Dataset {
    open(store.to_str().unwrap()).await.unwrap()
}

/// Returns the names of the columns of an array, and its rows.
async fn rows(store: &Path, array: &str) -> (Vec<String>, Vec<String>) {
    let reader = dataset(store).await.array(array).await.unwrap();
    let batches: Vec<_> = reader.batches().try_collect().await.unwrap();
    let names = batches[0].schema().fields().iter().map(|it| it.name().clone()).collect();
    let rows = batches.iter().flat_map(|batch| {
        (0..batch.num_rows()).map(|row| {
            let cells = batch.columns().iter().map(|it| array_value_to_string(it, row).unwrap());
            cells.collect::<Vec<_>>().join(" ")
        })
    });
    (names, rows.collect())
}

#[tokio::test]
async fn the_last_dimension_of_characters_is_part_of_texts() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path();
    put(store, ".zgroup", r#"{"zarr_format": 2}"#);
    put_array(store, "name", "|S1", &[3, 4], &[2, 4], &dims(&["station", "strlen"]));
    put(store, "name/0.0", b"Oslo\xc3\xa5\0\0");
    put(store, "name/1.0", b"Bern????");
    put_array(store, "title", "|S1", &[5], &[5], &dims(&["strlen5"]));
    put(store, "title/0", b"data\0");
    // A letter per station, because numbers have the dimension, too.
    put_array(store, "flag", "|S1", &[3], &[3], &dims(&["station"]));
    put(store, "flag/0", b"abc");
    put_array(store, "height", "<i2", &[3], &[3], &dims(&["station"]));
    put(store, "height/0", [1, 0, 2, 0, 3, 0]);
    // Chunks have parts of texts.
    put_array(store, "cut", "|S1", &[1, 6], &[1, 3], &dims(&["one", "letters"]));
    put(store, "cut/0.0", b"abc");
    put(store, "cut/0.1", b"def");
    let is = |found: (Vec<String>, Vec<String>), names: &[&str], rows: &[&str]| {
        assert_eq!(
            (found.0, found.1),
            (
                names.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>(),
                rows.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>(),
            )
        );
    };
    is(rows(store, "name").await, &["station", "value"], &["0 Oslo", "1 å", "2 Bern"]);
    is(rows(store, "title").await, &["value"], &["data"]);
    is(rows(store, "flag").await, &["station", "value"], &["0 a", "1 b", "2 c"]);
    assert_eq!(rows(store, "cut").await.1.len(), 6);
    // The texts of an absent chunk are empty.
    fs::remove_file(store.join("name/0.0")).unwrap();
    is(rows(store, "name").await, &["station", "value"], &["0 ", "1 ", "2 Bern"]);
}

#[tokio::test]
async fn dimensions_are_those_that_nczarr_names() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path();
    put(store, ".zgroup", r#"{"zarr_format": 2, "_NCZARR_SUPERBLOCK": {"version": "2.0.0"}}"#);
    put(store, ".zattrs", r#"{"title": "t", "_nczarr_group": {"dims": {"x": 2}}}"#);
    let of_zarray = |names: &[&str]| json!({"zarray": {"_NCZARR_ARRAY": {"dimrefs": names, "storage": "chunked"}}});
    put_array(store, "x", "<i4", &[2], &[2], &of_zarray(&["/x"]));
    put(store, "x/0", [5, 0, 0, 0, 7, 0, 0, 0]);
    put(store, "g/.zgroup", r#"{"zarr_format": 2}"#);
    // Another dimension of the same name and length, which is nearer.
    put_array(store, "g/x", "<i4", &[2], &[2], &of_zarray(&["/g/x"]));
    put(store, "g/x/0", [1, 0, 0, 0, 2, 0, 0, 0]);
    let more = json!({"zattrs": {
        "units": "K", "_nczarr_array": {"dimrefs": ["/x"]}, "_nczarr_attrs": {"types": {"units": "S1"}},
    }});
    put_array(store, "g/t", "<i4", &[2], &[2], &more);
    put(store, "g/t/0", [3, 0, 0, 0, 4, 0, 0, 0]);
    let scalar = json!({"zarray": {"_NCZARR_ARRAY": {"dimrefs": ["/_scalar_"], "scalar": 1}}});
    put_array(store, "crs", "<i4", &[1], &[1], &scalar);
    put(store, "crs/0", [9, 0, 0, 0]);
    let (names, found) = rows(store, "g/t").await;
    assert_eq!((names.join(" "), found.join(", ")), ("x value".into(), "5 3, 7 4".into()));
    let (names, found) = rows(store, "crs").await;
    assert_eq!((names.join(" "), found.join(", ")), ("value".into(), "9".into()));
    let reader = dataset(store).await.array("g/t").await.unwrap();
    let schema = reader.schema().unwrap();
    let field = schema.field_with_name("value").unwrap();
    let names: Vec<&String> = field.metadata().keys().collect();
    assert_eq!(names, ["units"]);
}

#[tokio::test]
async fn dimensions_of_version_3() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path();
    let group = json!({"zarr_format": 3, "node_type": "group", "attributes": {"_nczarr_superblock": {"format": 3}}});
    put(store, "zarr.json", group.to_string());
    let array = json!({
        "zarr_format": 3, "node_type": "array", "shape": [2, 1], "data_type": "int8",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 1]}},
        "chunk_key_encoding": {"name": "default"}, "fill_value": 0, "codecs": ["bytes"],
        "attributes": {"_nczarr_array": {"dimension_references": ["/time", "/g/x"]}, "a": 1},
    });
    put(store, "v/zarr.json", array.to_string());
    put(store, "v/c/0/0", [1, 2]);
    let (names, found) = rows(store, "v").await;
    assert_eq!((names.join(" "), found.join(", ")), ("time x value".into(), "0 0 1, 1 0 2".into()));
}

#[tokio::test]
async fn times_count_multiples_of_units() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path();
    put(store, ".zgroup", r#"{"zarr_format": 2}"#);
    let of = |counts: &[i64], is_big: bool| -> Vec<u8> {
        let bytes =
            counts.iter().map(|it| if is_big { it.to_be_bytes() } else { it.to_le_bytes() });
        bytes.flatten().collect()
    };
    put_array(store, "at", "<M8[10s]", &[3], &[3], &dims(&["n"]));
    put(store, "at/0", of(&[0, 7, i64::MIN], false));
    put_array(store, "span", ">m8[25us]", &[2], &[2], &dims(&["m"]));
    put(store, "span/0", of(&[4, -1], true));
    put_array(store, "far", "<M8[10s]", &[1], &[1], &dims(&["k"]));
    put(store, "far/0", of(&[i64::MAX / 2], false));
    let (_, found) = rows(store, "at").await;
    assert_eq!(found, ["0 1970-01-01T00:00:00", "1 1970-01-01T00:01:10", "2 "]);
    let (_, found) = rows(store, "span").await;
    assert_eq!(found, ["0 PT0.0001S", "1 -PT0.000025S"]);
    let reader = dataset(store).await.array("far").await.unwrap();
    let error = reader.batches().try_collect::<Vec<_>>().await.unwrap_err().to_string();
    assert!(error.contains("64 bits"), "{error}");
}
