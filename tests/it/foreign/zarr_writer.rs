//! Zarr stores and TileDB arrays that `COPY` writes, as zarr-python, xarray and TileDB-Py read them.

use std::path::Path;
use std::process::Command;

use gridfusion::{ArrayOptions, GridfusionSessionContextExt};

use crate::support::{query, reducing, shipped, variable};

/// Queries, and the options with which they are written.
const STORES: [(&str, &str); 10] = [
    ("SELECT time, lat, lon, t2m, tp FROM air WHERE time < TIMESTAMP '2023-07-01'", ""),
    (
        "SELECT time, lat, lon, t2m, coalesce(t2m > 280, false) AS warm, CAST(coalesce(t2m, 0) AS SMALLINT) AS near FROM air WHERE time < TIMESTAMP '2023-04-01'",
        "'chunks' 'time=3,lat=7', 'codec' 'gzip', 'level' '9', 'checksums' 'true'",
    ),
    (
        "SELECT lat, lon, avg(t2m) AS mean, stddev(t2m) AS spread FROM air WHERE lat > 40 GROUP BY lat, lon",
        "'chunks' 'lat=5,lon=10', 'shards' 'lat=10,lon=60'",
    ),
    (
        "SELECT station, date_trunc('day', time) AS day, max(value) AS most, count(*) AS n FROM stations.temperature GROUP BY station, day",
        "'codec' 'none'",
    ),
    (
        "SELECT x, y, v, CAST(v AS REAL) AS f, i, t, w FROM (VALUES (3, 'b', 1.5, 2, 'text', TIMESTAMP '2024-02-29T12:00:00.5'), (1, 'a', NULL, NULL, NULL, NULL), (3, 'a', 'NaN', 7, '', TIMESTAMP '1700-01-01')) v(x, y, v, i, t, w)",
        "'dimensions' 'x, y', 'fill' 'i=-999,t=none'",
    ),
    ("SELECT value AS x, CAST(value % 3 AS TINYINT) AS v FROM range(100000)", "'dimensions' 'x'"),
    (
        "SELECT value AS x, value * 1.0 AS v FROM range(1000) WHERE value % 10 > 0 AND value > 300",
        "'dimensions' 'x', 'chunks' 'x=64', 'shards' 'x=256'",
    ),
    (
        "SELECT time, lat, lon, t2m, coalesce(t2m > 280, false) AS warm FROM air WHERE time < TIMESTAMP '2023-04-01'",
        "'chunks' 'time=3,lat=7', 'codec' 'blosc:lz4', 'version' '2'",
    ),
    (
        "SELECT x, y, v, CAST(v AS REAL) AS f, i, t, w FROM (VALUES (3, 'b', 1.5, 2, 'text', TIMESTAMP '2024-02-29T12:00:00.5'), (1, 'a', NULL, NULL, NULL, NULL), (3, 'a', 'NaN', 7, '', TIMESTAMP '1700-01-01')) v(x, y, v, i, t, w)",
        "'dimensions' 'x, y', 'fill' 'i=-999,t=none', 'version' '2'",
    ),
    (
        "SELECT value AS x, CAST(value % 3 AS TINYINT) AS v FROM range(5000)",
        "'dimensions' 'x', 'codec' 'gzip', 'chunks' 'x=64', 'version' '2'",
    ),
];

#[tokio::test]
#[ignore = "needs GRIDFUSION_READERS_PYTHON: a Python with xarray, zarr and pandas"]
async fn xarray_reads_what_copy_writes() {
    let ctx = reducing(2, 1000);
    let options = ArrayOptions::default();
    let stations = shipped("examples/data/stations.tet");
    ctx.register_array_schema("stations", &stations, options.clone()).await.unwrap();
    ctx.register_array("air", shipped("examples/data/air.nc"), options).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    for (number, (sql, options)) in STORES.into_iter().enumerate() {
        let at = |ending: &str| folder.path().join(format!("{number}.{ending}"));
        let options =
            if options.is_empty() { String::new() } else { format!("OPTIONS ({options})") };
        let copy = format!("COPY ({sql}) TO '{}' {options}", at("zarr").display());
        query(&ctx, &copy).await.unwrap();
        let rows = format!("COPY ({sql}) TO '{}'", at("parquet").display());
        query(&ctx, &rows).await.unwrap();
    }
    let text = python("read_zarr.py", &[], folder.path());
    assert!(text.contains("10 stores"), "{text}");
}

/// Arrays of all kinds, as TileDB-Py reads them: cells, labels, and what TileDB makes of our statistics.
#[tokio::test]
#[ignore = "needs GRIDFUSION_READERS_PYTHON: a Python with tiledb, pandas and pyarrow"]
async fn tiledb_reads_what_copy_writes() {
    let ctx = reducing(2, 1000);
    let options = ArrayOptions::default();
    let stations = shipped("examples/data/stations.tet");
    ctx.register_array_schema("stations", &stations, options.clone()).await.unwrap();
    ctx.register_array("air", shipped("examples/data/air.nc"), options).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let at = |number: usize, ending: &str| {
        folder.path().join(format!("{number}.{ending}")).display().to_string()
    };
    let queries = [
        (STORES[0].0, "'chunks' 'time=2,lat=4,lon=5'"),
        (STORES[1].0, "'filters' 'byteshuffle, gzip=9, sha256'"),
        (STORES[2].0, "'chunks' 'lat=5,lon=10', 'codec' 'bzip2'"),
        (STORES[3].0, "'filters' 'double_delta, bit_width_reduction, zstd'"),
        (
            "SELECT x, y, v, i, t, b FROM (VALUES (3, 'b', 1.5, 2, 'text', true), (1, 'a', NULL, NULL, NULL, NULL), (3, 'a', 2.5, 7, '', false)) v(x, y, v, i, t, b)",
            "'dimensions' 'x, y'",
        ),
        (STORES[5].0, "'dimensions' 'x', 'filters' 'rle'"),
        (
            "SELECT arrow_cast(255 - value, 'UInt8') AS x, value * 1.5 AS v FROM range(6)",
            "'dimensions' 'x', 'chunks' 'x=4'",
        ),
        (
            "SELECT arrow_cast(value, 'UInt8') AS x, value * 1.5 AS v FROM range(100)",
            "'dimensions' 'x', 'chunks' 'x=4', 'can_grow' 'true'",
        ),
        (
            "SELECT time, station, value FROM stations.temperature WHERE time < TIMESTAMP '2024-01-03'",
            "'chunks' 'time=7,station=4', 'can_grow' 'true'",
        ),
    ];
    for (number, (sql, options)) in queries.iter().enumerate() {
        query(
            &ctx,
            &format!(
                "COPY ({sql}) TO '{}' STORED AS TILEDB OPTIONS ({options})",
                at(number, "tdb")
            ),
        )
        .await
        .unwrap();
        query(&ctx, &format!("COPY ({sql}) TO '{}'", at(number, "parquet"))).await.unwrap();
    }
    let all = queries[8].0.replace("01-03", "01-04");
    let more = all.replace("WHERE", "WHERE time >= TIMESTAMP '2024-01-03' AND");
    query(&ctx, &format!("COPY ({more}) TO '{}' OPTIONS ('mode' 'append')", at(8, "tdb")))
        .await
        .unwrap();
    query(&ctx, &format!("COPY ({all}) TO '{}'", at(8, "parquet"))).await.unwrap();
    // Cells of one attribute change, within tiles and without; the other attribute stays.
    let air = "SELECT time, lat, lon, t2m, tp FROM air WHERE time < TIMESTAMP '2023-06-01'";
    let changed = air
        .replace("t2m, tp", "CASE WHEN lat > 20 AND lon < 90 THEN t2m + 1 ELSE t2m END AS t2m, tp");
    let new = air.replace("t2m, tp", "t2m + 1 AS t2m") + " AND lat > 20 AND lon < 90";
    for sql in [
        format!("COPY ({air}) TO '{}' OPTIONS ('chunks' 'time=2,lat=4,lon=7')", at(9, "tdb")),
        format!(
            "COPY ({new}) TO '{}' OPTIONS ('mode' 'append', 'existing' 'overwrite')",
            at(9, "tdb")
        ),
        format!("COPY ({changed}) TO '{}'", at(9, "parquet")),
    ] {
        query(&ctx, &sql).await.unwrap();
    }
    let text = python("read_tiledb.py", &[], folder.path());
    assert!(text.contains("10 arrays"), "{text}");
}

/// Runs a script with these words and a folder, and returns what it prints.
fn python(script: &str, words: &[&str], folder: &Path) -> String {
    let mut command = Command::new(variable("GRIDFUSION_READERS_PYTHON"));
    command.arg(shipped(&format!("tests/data/foreign/{script}"))).args(words).arg(folder);
    let outcome = command.output().unwrap();
    let [text, errors] = [&outcome.stdout, &outcome.stderr].map(|it| String::from_utf8_lossy(it));
    assert!(outcome.status.success(), "{}: {text}{errors}", outcome.status);
    text.into_owned()
}

/// Stores of xarray, to which gridfusion, xarray and gridfusion again append a part: xarray reads them as one that it wrote at once.
#[tokio::test]
#[ignore = "needs GRIDFUSION_READERS_PYTHON: a Python with xarray, zarr and pandas"]
async fn xarray_and_copy_append_in_turn() {
    let ctx = reducing(2, 1000);
    let folder = tempfile::tempdir().unwrap();
    python("append_zarr.py", &["make"], folder.path());
    for part in [1, 3] {
        let mut cases = 0;
        let tree = folder.path().join("tree");
        for group in ["air", "sea/deep"] {
            let copy = |part: usize, options: &str| {
                format!(
                    "COPY (SELECT time, lat, lon, t FROM read_array('{}')) TO '{}' OPTIONS (group '{group}'{options})",
                    tree.join(format!("{part}.zarr")).display(),
                    tree.join("x.zarr").display()
                )
            };
            if part == 1 && group != "air" {
                query(&ctx, &copy(0, "")).await.unwrap();
            }
            query(&ctx, &copy(part, ", mode 'append'")).await.unwrap();
        }
        for case in std::fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().path()) {
            if case == tree {
                continue;
            }
            let facts = std::fs::read_to_string(case.join("case.json")).unwrap();
            let facts: serde_json::Value = serde_json::from_str(&facts).unwrap();
            let part = case.join(format!("{part}.zarr")).display().to_string();
            let copy = format!(
                "COPY ({}) TO '{}' OPTIONS (mode 'append', times '{}')",
                facts["query"].as_str().unwrap().replace("PART", &part),
                case.join("x.zarr").display(),
                facts["times"].as_str().unwrap()
            );
            query(&ctx, &copy).await.unwrap_or_else(|error| panic!("{copy}: {error}"));
            cases += 1;
        }
        assert_eq!(cases, 8);
        if part == 1 {
            python("append_zarr.py", &["append"], folder.path());
        }
    }
    assert!(python("append_zarr.py", &["check"], folder.path()).contains("8 stores and a tree"));
}
