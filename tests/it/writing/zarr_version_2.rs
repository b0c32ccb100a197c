//! `COPY … OPTIONS (version '2')`: Zarr stores of version 2.

use std::fs;

use serde_json::{Value, json};

use super::zarr::Case;
use crate::support::{reducing, sorted_rows_from};

fn document(case: &Case, path: &str) -> Value {
    serde_json::from_slice(&fs::read(case.at(path)).unwrap()).unwrap()
}

#[tokio::test]
async fn queries_are_read_back() {
    let case = Case::new(reducing(2, 512)).await;
    let all = "SELECT * FROM (VALUES ('b', 2, 'x', 1, true, 0.5), ('a', 1, NULL, 2, false, NULL), ('b', 1, 'zz', NULL, true, 1.5)) v(k, n, text, i, b, d)";
    let queries = [
        (
            "SELECT time, lat, lon, t2m FROM air WHERE time < TIMESTAMP '2023-04-01'",
            "time, lat, lon, t2m",
            "'chunks' 'time=2,lat=4'",
        ),
        (
            "SELECT time, station, value FROM stations.temperature",
            "time, station, value",
            "'codec' 'blosc:lz4'",
        ),
        (
            "SELECT lat, avg(t2m) AS t2m, max(CAST(time AS DATE)) AS last FROM air GROUP BY lat",
            "lat, t2m, date_trunc('day', last)",
            "'chunks' 'lat=2', 'codec' 'gzip'",
        ),
        ("SELECT 1 AS x, CAST(NULL AS DOUBLE) AS v", "x, v", "'dimensions' 'x', 'codec' 'none'"),
        (
            "SELECT value AS x, CAST(value % 100 AS TINYINT) AS v FROM range(2000)",
            "x, v",
            "'dimensions' 'x'",
        ),
    ];
    for (number, (sql, columns, options)) in queries.into_iter().enumerate() {
        let name = format!("{number}.zarr");
        case.copy(sql, &name, &format!("{options}, 'version' '2'")).await.unwrap();
        let expected = sorted_rows_from(&case.ctx, &format!("SELECT {columns} FROM ({sql})")).await;
        assert_eq!(case.read(&name, columns).await, expected, "{sql}");
        assert!(!case.at(&name).join("zarr.json").exists());
        // Without consolidated metadata, the documents of arrays tell the same.
        fs::remove_file(case.at(&name).join(".zmetadata")).unwrap();
        assert_eq!(case.read(&name, columns).await, expected, "{sql}");
    }
    let options = "'dimensions' 'k, n', 'chunks' 'n=1', 'fill' 'text=none,i=-1', 'version' '2'";
    case.copy(&format!("SELECT k, n, text, i, d FROM ({all})"), "v.zarr", options).await.unwrap();
    let mut expected =
        sorted_rows_from(&case.ctx, &format!("SELECT k, n, text, i, d FROM ({all})")).await;
    // A cell without a row.
    expected.insert(1, ["a", "2", "NULL", "NULL", "NULL"].map(str::to_owned).to_vec());
    assert_eq!(case.read("v.zarr", "k, n, text, i, d").await, expected);
    let error = case.copy(all, "b.zarr", options).await.unwrap_err();
    assert!(error.contains("\"b\""), "{error}");
}

#[tokio::test]
async fn documents_are_those_of_version_2() {
    let case = Case::new(reducing(2, 512)).await;
    let sql = "SELECT time, lat, lon, t2m FROM air";
    let options = "'chunks' 'time=2,lat=4', 'codec' 'blosc', 'version' '2', 'attributes' '{\"title\": \"air\"}'";
    case.copy(sql, "x.zarr", options).await.unwrap();
    let array = document(&case, "x.zarr/t2m/.zarray");
    let expected = json!({
        "zarr_format": 2, "shape": [24, 18, 20], "chunks": [2, 4, 20], "dtype": "<f8", "order": "C",
        "compressor": {"id": "blosc", "cname": "zstd", "clevel": 5, "shuffle": 1, "blocksize": 0},
        "fill_value": "NaN", "filters": null, "dimension_separator": ".",
    });
    let mut found = array.clone();
    found["shape"] = expected["shape"].clone();
    found["chunks"] = expected["chunks"].clone();
    assert_eq!(found, expected);
    let attributes = document(&case, "x.zarr/t2m/.zattrs");
    assert_eq!(attributes["_ARRAY_DIMENSIONS"], json!(["time", "lat", "lon"]));
    assert_eq!(attributes["units"], "K");
    assert_eq!(attributes.get("_FillValue"), None);
    assert_eq!(document(&case, "x.zarr/time/.zarray")["fill_value"], Value::Null);
    assert_eq!(document(&case, "x.zarr/.zattrs")["title"], "air");
    let all = document(&case, "x.zarr/.zmetadata");
    assert_eq!(all["zarr_consolidated_format"], 1);
    assert_eq!(all["metadata"]["t2m/.zarray"], array);
    assert_eq!(all["metadata"][".zgroup"], json!({"zarr_format": 2}));
    assert!(case.at("x.zarr/t2m/0.0.0").exists());
    // Another store takes its place as a whole.
    case.copy(
        "SELECT 1 AS x, 2.5 AS v",
        "x.zarr",
        "'dimensions' 'x', 'mode' 'overwrite', 'version' '2'",
    )
    .await
    .unwrap();
    assert_eq!(case.read("x.zarr", "x, v").await, [["1", "2.5"]]);
    assert!(!case.at("x.zarr/t2m").exists());
}

#[tokio::test]
async fn what_version_2_lacks_is_refused() {
    let case = Case::new(reducing(2, 512)).await;
    let sql = "SELECT value AS x, 0.5 AS v FROM range(4)";
    for (options, message) in [
        ("'checksums' 'true', 'version' '2'", "checksums of chunks of Zarr version 2"),
        ("'chunks' 'x=1', 'shards' 'x=2', 'version' '2'", "shards of Zarr version 2"),
        ("'group' 'g', 'version' '2'", "a group in a store of Zarr version 2"),
        ("'version' '4'", "there is no version '4' of Zarr; there are 2 and 3"),
    ] {
        let options = format!("'dimensions' 'x', {options}");
        let error = case.copy(sql, "x.zarr", &options).await.unwrap_err();
        assert!(error.contains(message), "{error}");
        assert!(!case.at("x.zarr").exists(), "{options}");
    }
    case.copy(sql, "x.zarr", "'dimensions' 'x', 'version' '2'").await.unwrap();
    let next = "SELECT 4 AS x, 0.5 AS v";
    let error = case.copy(next, "x.zarr", "'mode' 'append'").await.unwrap_err();
    assert!(error.contains("version 3"), "{error}");
    assert_eq!(case.read("x.zarr", "count(*)").await, [["4"]]);
}
