//! The facts about arrays that the conformance suite does not have: sparse arrays, groups, arrays that cannot be read,
//! references, and too many chunks. Conformance checks every format.

use std::fs;
use std::path::Path;

use gridfusion::GridfusionSessionContextExt;
use serde_json::{Value, json};

use super::ways_in::in_memory;
use crate::support::{cell, query, reducing, rows_from};

fn put(store: &Path, object: &str, content: &Value) {
    let file = store.join(object);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, content.to_string()).unwrap();
}

fn array(shape: &[u64], dtype: &str) -> Value {
    json!({
        "zarr_format": 2, "shape": shape, "chunks": vec![1; shape.len()], "dtype": dtype, "compressor": null,
        "fill_value": 0, "order": "C", "filters": null,
    })
}

/// A store with an array `v` in chunks of single cells, of which the given ones are stored.
fn store(folder: &Path, shape: &[u64], stored: &[&str]) -> String {
    let store = folder.join("s.zarr");
    put(&store, ".zgroup", &json!({"zarr_format": 2}));
    put(&store, "a/.zgroup", &json!({"zarr_format": 2}));
    put(&store, "a/.zattrs", &json!({"title": "group a", "levels": [1, 2]}));
    put(&store, "a/v/.zarray", &array(shape, "|u1"));
    put(
        &store,
        "a/v/.zattrs",
        &json!({"_ARRAY_DIMENSIONS": &["x", "y"][..shape.len()], "scale": 0.5}),
    );
    for at in stored {
        let object = store.join(format!("a/v/{at}"));
        fs::create_dir_all(object.parent().unwrap()).unwrap();
        fs::write(object, [7]).unwrap();
    }
    store.to_str().unwrap().to_owned()
}

#[tokio::test]
async fn groups_and_absent_chunks() {
    let folder = tempfile::tempdir().unwrap();
    let place = store(folder.path(), &[4], &["0", "2"]);
    let ctx = reducing(2, 8192);
    let sql = format!(
        "SELECT dataset, group_name, variable, chunks, stored_chunks, stored_bytes FROM array_info('{place}')"
    );
    assert_eq!(rows_from(&ctx, &sql).await, [["a/v", "a", "v", "4", "2", "2"]]);
    let sql =
        format!("SELECT chunk, pieces, stored_bytes, object FROM array_chunks('{place}', 'a/v')");
    let rows = rows_from(&ctx, &sql).await;
    let object = |at: u64| format!("{place}/a/v/{at}");
    let [first, third] = [object(0), object(2)];
    assert_eq!(
        rows,
        [
            ["[0]", "1", "1", first.as_str()],
            ["[1]", "0", "NULL", "NULL"],
            ["[2]", "1", "1", third.as_str()],
            ["[3]", "0", "NULL", "NULL"],
        ]
    );
    let sql = format!("SELECT * FROM array_attributes('{place}') WHERE key <> '_ARRAY_DIMENSIONS'");
    let mut rows = rows_from(&ctx, &sql).await;
    rows.sort();
    assert_eq!(
        rows,
        [
            ["NULL", "a", "NULL", "levels", "integers", "1, 2"],
            ["NULL", "a", "NULL", "title", "text", "group a"],
            ["a/v", "a", "v", "scale", "floats", "0.5"],
        ]
    );
    // The option `group` begins there.
    let sql = format!("SELECT dataset, group_name FROM array_info('{place}', \"group\" => 'a')");
    assert_eq!(rows_from(&ctx, &sql).await, [["v", "NULL"]]);
    // A store in memory is listed too, but stored chunks are not counted there.
    in_memory(&ctx, folder.path()).await;
    let place = "memory://bucket/data/s.zarr";
    let sql = format!("SELECT stored_chunks, stored_bytes FROM array_info('{place}')");
    assert_eq!(rows_from(&ctx, &sql).await, [["NULL", "NULL"]]);
    let sql =
        format!("SELECT count(*), sum(pieces), count(stored_bytes) FROM array_chunks('{place}')");
    assert_eq!(rows_from(&ctx, &sql).await, [["4", "2", "2"]]);
}

#[tokio::test]
async fn arrays_that_cannot_be_read_are_rows_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let place = store(folder.path(), &[4], &["0"]);
    put(Path::new(&place), "a/w/.zarray", &array(&[4], "|X9"));
    let ctx = reducing(2, 8192);
    let sql =
        format!("SELECT dataset, role, shape, chunks FROM array_info('{place}') ORDER BY dataset");
    let rows = rows_from(&ctx, &sql).await;
    assert_eq!(rows, [["a/v", "data", "[4]", "4"], ["a/w", "NULL", "NULL", "NULL"]]);
    let sql = format!("SELECT warnings[1] FROM array_info('{place}') WHERE dataset = 'a/w'");
    let warning = cell(&ctx, &sql).await;
    assert!(warning.contains("left out") && warning.contains("X9"), "{warning}");
    let error = query(&ctx, &format!("SELECT * FROM array_info('{place}', 'a/w')")).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("a/w") && error.contains("X9"), "{error}");
    fs::write(folder.path().join("notes.txt"), "no array").unwrap();
    let notes = folder.path().join("notes.txt");
    for function in ["array_info", "array_chunks", "array_attributes"] {
        let sql = format!("SELECT * FROM {function}('{}')", notes.display());
        let error = query(&ctx, &sql).await.unwrap_err().to_string();
        assert!(error.contains("notes.txt"), "{error}");
    }
}

/// A small file can declare any number of chunks. A list of them ends with an error that names the limit.
#[tokio::test]
async fn too_many_chunks_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let place = store(folder.path(), &[4097, 4096], &["0.0"]);
    let ctx = reducing(2, 8192);
    let sql = format!("SELECT chunk, stored_bytes FROM array_chunks('{place}') LIMIT 2");
    assert_eq!(rows_from(&ctx, &sql).await, [["[0, 0]", "1"], ["[0, 1]", "NULL"]]);
    let error = query(&ctx, &format!("SELECT count(*) FROM array_chunks('{place}')")).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("16781312 chunks") && error.contains("16777216"), "{error}");
    in_memory(&ctx, folder.path()).await;
    let place = "memory://bucket/data/s.zarr";
    let sql = format!("SELECT chunk FROM array_chunks('{place}') LIMIT 2");
    assert_eq!(rows_from(&ctx, &sql).await, [["[0, 0]"], ["[0, 1]"]]);
    let sql = format!("SELECT stored_bytes FROM array_chunks('{place}') LIMIT 2");
    let error = query(&ctx, &sql).await.unwrap_err().to_string();
    assert!(error.contains("1048576") && error.contains("select only"), "{error}");
}

/// A chunk is absent only if nothing has its name, and no other names hide chunks.
#[tokio::test]
async fn absence_is_proven() {
    let folder = tempfile::tempdir().unwrap();
    let ctx = reducing(2, 8192);
    let pieces = |place: &str| format!("SELECT pieces FROM array_chunks('{place}')");
    // The names are those of another separator.
    let place = store(folder.path(), &[2, 2], &["0/0", "0/1"]);
    let error = query(&ctx, &pieces(&place)).await.unwrap_err().to_string();
    assert!(error.contains("corrupt names of chunks"), "{error}");
    let folder = tempfile::tempdir().unwrap();
    let place = store(folder.path(), &[1, 3], &["0.0"]);
    fs::create_dir(Path::new(&place).join("a/v/0.1")).unwrap();
    assert_eq!(rows_from(&ctx, &pieces(&place)).await, [["1"], ["NULL"], ["0"]]);
}

/// One array that cannot be read does not hide the others. It is an error if the query names it.
#[tokio::test]
async fn unreadable_arrays_are_left_out_unless_they_are_named() {
    let ctx = reducing(2, 8192);
    for function in ["array_chunks", "array_attributes"] {
        let all = format!("SELECT DISTINCT dataset FROM {function}('tests/data/tiledb')");
        let found = rows_from(&ctx, &all).await;
        assert!(found.len() > 3 && !found.contains(&vec!["encrypted".to_owned()]), "{found:?}");
        let named = format!("SELECT * FROM {function}('tests/data/tiledb', 'encrypted')");
        let error = query(&ctx, &named).await.unwrap_err().to_string();
        assert!(error.contains("encrypted"), "{error}");
    }
}

/// A name that is given twice is listed once.
#[tokio::test]
async fn names_are_listed_once() {
    let ctx = reducing(2, 8192);
    for function in ["array_info", "array_chunks", "array_attributes"] {
        let count = |names: &str| {
            format!("SELECT count(*) FROM {function}('examples/data/sea.zarr', '{names}')")
        };
        assert_eq!(rows_from(&ctx, &count("sst,sst")).await, rows_from(&ctx, &count("sst")).await);
    }
}

/// References have chunks in the file itself, in other objects as a whole, and in parts of others.
#[tokio::test]
async fn references_have_places() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("data.bin"), [1, 2, 3]).unwrap();
    let refs = json!({"version": 1, "refs": {
        ".zgroup": r#"{"zarr_format": 2}"#,
        "v/.zarray": array(&[4], "|u1").to_string(),
        "v/0": "a",
        "v/1": ["data.bin"],
        "v/2": ["data.bin", 2, 1],
    }});
    put(folder.path(), "r.json", &refs);
    let ctx = reducing(2, 8192);
    let place = folder.path().join("r.json");
    let sql = format!(
        "SELECT pieces, object, file_offset, stored_bytes FROM array_chunks('{}')",
        place.display()
    );
    let data = folder.path().join("data.bin").display().to_string();
    assert_eq!(
        rows_from(&ctx, &sql).await,
        [
            ["1", "NULL", "NULL", "1"],
            ["1", &data, "0", "NULL"],
            ["1", &data, "2", "1"],
            ["0", "NULL", "NULL", "NULL"],
        ]
    );
}

/// The tiles of a sparse array are chunks, and their bytes are those of the files.
#[tokio::test]
async fn tiles_of_sparse_arrays() {
    let ctx = reducing(2, 8192);
    ctx.enable_gridfusion_urls();
    let place = "tests/data/tiledb/sparse";
    let tiles = cell(&ctx, &format!("SELECT sum(tiles) FROM tiledb_fragments('{place}')")).await;
    let columns = cell(&ctx, &format!("SELECT count(*) FROM array_info('{place}')")).await;
    let product = tiles.parse::<u64>().unwrap() * columns.parse::<u64>().unwrap();
    let chunks = format!("array_chunks('{place}')");
    assert_eq!(cell(&ctx, &format!("SELECT count(*) FROM {chunks}")).await, product.to_string());
    let sql =
        format!("SELECT count(*) FROM {chunks} WHERE start IS NOT NULL OR stored_bytes IS NULL");
    assert_eq!(cell(&ctx, &sql).await, "0");
    let sql = format!("SELECT DISTINCT object FROM {chunks}");
    for row in rows_from(&ctx, &sql).await {
        let size = fs::metadata(&row[0]).unwrap().len().to_string();
        let sql = format!(
            "SELECT max(file_offset + stored_bytes) FROM {chunks} WHERE object = '{}' AND pieces = 1",
            row[0]
        );
        let end = cell(&ctx, &sql).await;
        assert!(end == "NULL" || end == size, "{row:?}: {end} of {size}");
    }
}
