//! Zarr stores that `COPY` writes, read back.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::physical_plan::{collect, displayable};
use datafusion::prelude::SessionContext;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::Value;

use crate::support::{limited, query, reducing, rows_from, shipped, sorted_rows_from};

/// A session with hourly temperatures of stations, and one place for arrays.
pub(super) struct Case {
    pub(super) ctx: SessionContext,
    folder: tempfile::TempDir,
}

impl Case {
    pub(super) async fn new(ctx: SessionContext) -> Self {
        let stations = shipped("examples/data/stations.tet");
        let options = ArrayOptions::default();
        ctx.register_array_schema("stations", &stations, options.clone()).await.unwrap();
        let air = shipped("examples/data/air.nc");
        ctx.register_array("air", air, options).await.unwrap();
        Self { ctx, folder: tempfile::tempdir().unwrap() }
    }

    pub(super) fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Copies a query, with these options, in the format that the name ends in.
    pub(super) async fn copy(&self, sql: &str, name: &str, options: &str) -> Result<(), String> {
        let to = self.at(name);
        let options =
            if options.is_empty() { String::new() } else { format!("OPTIONS ({options})") };
        let format = match name.rsplit_once('.') {
            Some((_, "nc")) => "NETCDF",
            Some((_, "tet")) => "TET",
            Some((_, "tdb")) => "TILEDB",
            _ => "ZARR",
        };
        let copy = format!("COPY ({sql}) TO '{}' STORED AS {format} {options}", to.display());
        query(&self.ctx, &copy).await.map(drop).map_err(|error| error.to_string())
    }

    /// Returns the sorted rows of columns of an array.
    pub(super) async fn read(&self, name: &str, columns: &str) -> Vec<Vec<String>> {
        let from = self.at(name);
        sorted_rows_from(
            &self.ctx,
            &format!("SELECT {columns} FROM read_array('{}')", from.display()),
        )
        .await
    }
}

#[tokio::test]
async fn queries_are_read_back() {
    let case = Case::new(reducing(2, 512)).await;
    let queries = [
        ("SELECT time, station, value FROM stations.temperature", "time, station, value", ""),
        (
            "SELECT station, date_part('month', time) AS month, avg(value) AS mean, count(*) AS n FROM stations.temperature GROUP BY station, month",
            "station, month, mean, n",
            "",
        ),
        (
            "SELECT date_part('hour', time) AS hour, min(value), max(value) AS most FROM stations.temperature WHERE station = 'Oslo' GROUP BY 1 ORDER BY 3 DESC",
            "hour, \"min(stations.temperature.value)\", most",
            "'chunks' 'hour=5'",
        ),
        (
            "SELECT lat, lon, time, t2m - 273.15 AS celsius, coalesce(t2m > 280, false) AS warm FROM air WHERE time < TIMESTAMP '2023-04-01'",
            "lat, lon, time, celsius, warm",
            "'chunks' 'time=3,lat=4', 'codec' 'gzip', 'checksums' 'true'",
        ),
        (
            "SELECT time, lat, lon, t2m FROM air WHERE time < TIMESTAMP '2023-03-01' ORDER BY t2m",
            "time, lat, lon, t2m",
            "'chunks' 'time=1,lat=5,lon=7', 'shards' 'lat=10,lon=14', 'codec' 'zstd', 'level' '1'",
        ),
        (
            "SELECT * FROM (VALUES ('b', 2, 'x', 1), ('a', 1, NULL, 2), ('b', 1, 'zz', 3)) v(k, n, text, i)",
            "k, n, text, i",
            "'dimensions' 'k, n', 'fill' 'text=none,i=-1', 'codec' 'none'",
        ),
        ("SELECT 1 AS x, CAST(NULL AS DOUBLE) AS v", "x, v", "'dimensions' 'x'"),
        ("SELECT time, lat, lon, t2m FROM air WHERE t2m > 1000", "time, lat, lon, t2m", ""),
        (
            "SELECT * FROM (VALUES (1, 6.0), (2, 5.0), (3, 4.0), (4, 3.0), (5, 2.0), (6, 1.0)) t(x, v) ORDER BY v LIMIT 3 OFFSET 2",
            "x, v",
            "'dimensions' 'x'",
        ),
        (
            "SELECT * FROM (VALUES (1, 6.0), (2, 5.0), (3, 4.0), (4, 3.0), (5, 2.0), (6, 1.0)) t(x, v) LIMIT 3 OFFSET 2",
            "x, v",
            "'dimensions' 'x'",
        ),
        (
            "SELECT time, lat, lon, t2m - avg(t2m) OVER (PARTITION BY lat, lon) AS anomaly FROM air WHERE time < TIMESTAMP '2023-04-01'",
            "time, lat, lon, anomaly",
            "'chunks' 'time=18446744073709551615,lat=3,lon=100000000000'",
        ),
        (
            "SELECT lat, avg(t2m) AS t2m, max(CAST(time AS DATE)) AS last, CAST(NULL AS DATE) AS never FROM air GROUP BY lat",
            "lat, t2m, date_trunc('day', last), never",
            "'chunks' 'lat=2', 'shards' 'lat=4000000000000'",
        ),
    ];
    for (number, (sql, columns, options)) in queries.into_iter().enumerate() {
        let name = format!("{number}.zarr");
        case.copy(sql, &name, options).await.unwrap();
        let mut expected =
            sorted_rows_from(&case.ctx, &format!("SELECT {columns} FROM ({sql})")).await;
        if number == 5 {
            // A cell without a row.
            expected.insert(1, ["a", "2", "NULL", "NULL"].map(str::to_owned).to_vec());
        }
        assert_eq!(case.read(&name, columns).await, expected, "{sql}");
    }
}

/// Random rows of random labels, in any order: the array has each of them once, and NULL elsewhere.
#[tokio::test]
async fn random_rows_become_cells() {
    let mut rng = StdRng::seed_from_u64(4601);
    for round in 0..40 {
        let case = Case::new(limited(1 + round % 3, 64, 64 << 20)).await;
        let rank = 1 + round % 4;
        let lens: Vec<i64> = (0..rank).map(|_| rng.random_range(1..9)).collect();
        let dims: Vec<String> = (0..rank).map(|axis| format!("d{axis}")).collect();
        let kept = rng.random_range(1..=10);
        let total: i64 = lens.iter().product();
        let mut left = 1;
        let columns = lens.iter().zip(&dims).rev().map(|(len, name)| {
            let label = format!("(value / {left}) % {len}");
            left *= len;
            match rng.random_range(0..3) {
                0 => format!("{label} AS {name}"),
                1 => format!("concat('l', {label}) AS {name}"),
                _ => format!("-0.5 * ({label}) AS {name}"),
            }
        });
        let columns: Vec<String> = columns.collect();
        let sql = format!(
            "SELECT {}, value * 1.5 AS v, CASE WHEN value % 3 > 0 THEN value END AS w FROM range({total}) WHERE value * 7 % 10 < {kept} ORDER BY value * 31 % 17",
            columns.join(", ")
        );
        let chunks: Vec<String> =
            dims.iter().map(|it| format!("{it}={}", rng.random_range(1..5))).collect();
        let options = format!(
            "'dimensions' '{}', 'chunks' '{}', 'fill' 'w=-1'",
            dims.join(","),
            chunks.join(",")
        );
        let all = format!("{}, v, w", dims.join(", "));
        let expected = sorted_rows_from(&case.ctx, &format!("SELECT {all} FROM ({sql})")).await;
        for name in ["r.zarr", "r.nc", "r.tet"] {
            if expected.is_empty() && name != "r.zarr" {
                continue;
            }
            case.copy(&sql, name, &options).await.unwrap();
            let found = case.read(name, &all).await;
            let with_values = found.iter().filter(|row| row[rank] != "NULL");
            assert_eq!(with_values.cloned().collect::<Vec<_>>(), expected, "{sql}");
        }
    }
}

#[tokio::test]
async fn what_cannot_be_an_array_is_refused_and_leaves_nothing() {
    let case = Case::new(reducing(2, 512)).await;
    let air = "SELECT time, lat, lon, t2m FROM air WHERE time < TIMESTAMP '2023-03-01'";
    let cases = [
        (
            "SELECT 1 AS a, 2 AS b",
            "",
            "the columns a, b have no dimension of an array and no key of GROUP BY",
        ),
        (air, "'dimensions' 'time, level'", "there is no column 'level' among time, lat, lon, t2m"),
        (air, "'dimensions' 'time, time'", "a dimension is named twice"),
        (air, "'dimensions' 'time,lat,lon,t2m'", "all columns are dimensions"),
        (
            air,
            "'dimensions' 'time, lat'",
            "two rows have the labels time=2023-01-01T00:00:00, lat=84",
        ),
        (
            air,
            "'chunks' 'level=3'",
            "'chunks' names 'level', and the dimensions are time, lat, lon",
        ),
        (air, "'chunks' 'lat=0'", "'chunks' is 'lat=0', expected lengths such as"),
        (
            air,
            "'chunks' 'lat=2', 'shards' 'lat=3'",
            "a shard of 3 along 'lat' is no multiple of its chunks of 2",
        ),
        (
            air,
            "'codec' 'lzma'",
            "there is no codec 'lzma'; there are zstd, gzip, blosc, blosc:zstd, blosc:lz4, blosc:zlib, none",
        ),
        (air, "'level' '99'", "zstd has no level 99"),
        (
            air,
            "'compression' 'zstd'",
            "the format zarr has no option 'compression'; its options are attributes, checksums, chunks",
        ),
        (air, "'fill' 't2m=x'", "the fill value 'x' of \"t2m\" is no Float"),
        (air, "'fill' 'tas=0'", "'fill' names 'tas', and the variables are t2m"),
        (
            "SELECT time, lat, lon, [t2m] AS l FROM air LIMIT 1",
            "",
            "\"l\": writing columns of List",
        ),
        (
            "SELECT x, CAST(NULL AS BIGINT) AS v FROM (VALUES (1)) t(x)",
            "'dimensions' 'x'",
            "the cell x=1 of \"v\" cannot be written: it is NULL",
        ),
        (
            "SELECT x, 7 AS v FROM (VALUES (1)) t(x)",
            "'dimensions' 'x', 'fill' '7'",
            "the cell x=1 of \"v\" cannot be written: it has the fill value",
        ),
        (
            "SELECT x, 7 AS v FROM (VALUES (1), (NULL)) t(x)",
            "'dimensions' 'x'",
            "the dimension \"x\" has NULL among its labels",
        ),
        (
            "SELECT value AS x, value AS y, 0.5 AS v FROM range(5000)",
            "'dimensions' 'x,y'",
            "has 25000000 cells for 5000 rows, and at most 1048576 are written",
        ),
        (
            "SELECT station, avg(value) AS m FROM stations.temperature GROUP BY ROLLUP (station)",
            "",
            "the columns station, m have no dimension of an array and no key of GROUP BY",
        ),
        (
            "SELECT time AS a, time AS b, station, value FROM stations.temperature",
            "",
            "two of the columns a, b, station, value are the same dimension",
        ),
    ];
    for (sql, options, message) in cases {
        let error = case.copy(sql, "x.zarr", options).await.unwrap_err();
        assert!(error.contains(message), "{sql} {options}\n{error}");
        assert_eq!(objects(&case.at("x.zarr")), 0, "{sql}");
    }
    let partitioned =
        format!("COPY ({air}) TO '{}' STORED AS ZARR PARTITIONED BY (lat)", case.at("y").display());
    let error = query(&case.ctx, &partitioned).await.unwrap_err().to_string();
    assert!(error.contains("an array has no PARTITIONED BY"), "{error}");
    let glob = format!("COPY ({air}) TO '{}' STORED AS ZARR", case.at("x[1].zarr").display());
    let error = query(&case.ctx, &glob).await.unwrap_err().to_string();
    assert!(error.contains("has one of the characters ?, * and ["), "{error}");
    assert_eq!(objects(case.folder.path()), 0);
    case.copy(air, "x.zarr", "").await.unwrap();
    let before = objects(&case.at("x.zarr"));
    let error = case.copy(air, "x.zarr", "").await.unwrap_err();
    assert!(error.contains("already; delete it first, or choose a 'mode'"), "{error}");
    assert_eq!(objects(&case.at("x.zarr")), before);
}

/// The files below a folder.
fn objects(folder: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    entries
        .flatten()
        .map(|entry| if entry.path().is_dir() { objects(&entry.path()) } else { 1 })
        .sum()
}

#[tokio::test]
async fn units_and_names_survive() {
    let case = Case::new(reducing(2, 512)).await;
    let sql = "SELECT lat, lon, avg(t2m) AS mean, max(t2m) AS most FROM air WHERE time < TIMESTAMP '2023-03-01' GROUP BY lat, lon";
    case.copy(sql, "m.zarr", "").await.unwrap();
    let attributes = format!(
        "SELECT variable, key, value FROM array_attributes('{}') WHERE key IN ('units', 'long_name') ORDER BY 1, 2",
        case.at("m.zarr").display()
    );
    let rows = rows_from(&case.ctx, &attributes).await;
    let counted = "SELECT CAST(time AS BIGINT) AS t, avg(t2m) AS v FROM air GROUP BY t";
    case.copy(counted, "c.zarr", "").await.unwrap();
    assert_eq!(case.read("c.zarr", "t, v").await, sorted_rows_from(&case.ctx, counted).await);
    let has = |row: &[&str]| rows.iter().any(|it| it == row);
    assert!(has(&["lat", "units", "degrees_north"]), "{rows:?}");
    assert!(has(&["lon", "units", "degrees_east"]), "{rows:?}");
}

/// Attributes are numbers after one copy and after two, in the formats that have such.
#[tokio::test]
async fn numbers_among_attributes_survive() {
    let case = Case::new(reducing(2, 512)).await;
    let attributes = r#"{"v": {"flag_values": [1, 2], "height": 2.0, "level": -3, "long_name": "1, 2", "ratio": [0.1, 1e-30]}}"#;
    let expected: Value = serde_json::from_str(attributes).unwrap();
    let rows = "SELECT value AS x, CAST(value AS REAL) AS v FROM range(3)";
    case.copy(rows, "a.zarr", &format!("'dimensions' 'x', 'attributes' '{attributes}'"))
        .await
        .unwrap();
    let of = |name: &str| {
        let document = std::fs::read(case.at(name).join("v/zarr.json")).unwrap();
        let document: Value = serde_json::from_slice(&document).unwrap();
        let mut found = document["attributes"].clone();
        found.as_object_mut().unwrap().remove("_FillValue");
        found
    };
    assert_eq!(of("a.zarr"), expected["v"]);
    let mut from = "a.zarr";
    for name in ["b.zarr", "b.nc", "c.zarr"] {
        let rows = format!("SELECT x, v FROM read_array('{}')", case.at(from).display());
        case.copy(&rows, name, "").await.unwrap();
        if name.ends_with("zarr") {
            assert_eq!(of(name), expected["v"], "{name}");
        }
        from = name;
    }
}

/// The formats that have attributes of the whole array.
#[tokio::test]
async fn options_set_attributes() {
    let case = Case::new(reducing(2, 512)).await;
    let sql = "SELECT time, lat, lon, t2m - 273.15 AS celsius FROM air WHERE time < TIMESTAMP '2023-03-01'";
    let attributes = r#"{"title": "Means", "version": 2, "celsius": {"long_name": "air", "levels": [1, 2]}, "lat": {"units": "degrees"}}"#;
    let options = format!("'units' 'celsius=degC', 'attributes' '{attributes}'");
    for name in ["a.zarr", "a.nc", "a.tdb"] {
        case.copy(sql, name, &options).await.unwrap();
        let shown = format!(
            "SELECT coalesce(variable, '-'), key, value FROM array_attributes('{}')",
            case.at(name).display()
        );
        let rows = rows_from(&case.ctx, &shown).await;
        let has = |row: &[&str]| rows.iter().any(|it| it[1..] == row[1..] && it[0] == row[0]);
        assert!(has(&["celsius", "units", "degC"]), "{name}: {rows:?}");
        assert!(has(&["celsius", "long_name", "air"]), "{name}: {rows:?}");
        assert!(has(&["lat", "units", "degrees"]), "{name}: {rows:?}");
        assert!(rows.iter().any(|it| it[1..] == ["title", "Means"]), "{name}: {rows:?}");
    }
    let cases = [
        ("'attributes' 'title=x'", "expected a JSON object"),
        ("'attributes' '{\"t\": null}'", "the attribute 't' is null, expected a text"),
        (
            "'attributes' '{\"celsius\": {\"_FillValue\": 1}}'",
            "'_FillValue' tells how values are stored",
        ),
        (
            "'attributes' '{\"tas\": {\"units\": \"K\"}}'",
            "attributes are given for 'tas', and the columns are time, lat, lon, celsius",
        ),
        (
            "'units' 'time=hours since 1900-01-01'",
            "the times \"time\" have 'units' that tell how they are stored",
        ),
        ("'units' 'K'", "expected units such as 't2m=K, tp=mm d-1'"),
    ];
    for (options, message) in cases {
        let error = case.copy(sql, "b.zarr", options).await.unwrap_err();
        assert!(error.contains(message), "{options}: {error}");
    }
    let error = case.copy(sql, "b.tet", &options).await.unwrap_err();
    assert!(error.contains("a .tet file has attributes of columns only"), "{error}");
}

#[tokio::test]
async fn explain_shows_the_sink_and_metrics_count_what_is_written() {
    let case = Case::new(reducing(2, 512)).await;
    let to = case.at("e.zarr");
    let sql = format!(
        "COPY (SELECT station, max(value) AS v FROM stations.temperature GROUP BY station) TO '{}' OPTIONS ('chunks' 'station=4')",
        to.display()
    );
    let plan = case.ctx.sql(&sql).await.unwrap().create_physical_plan().await.unwrap();
    let text = displayable(plan.as_ref()).indent(false).to_string();
    assert!(
        text.contains("sink=ArraySink: format=zarr, dimensions=[station], variables=[v]"),
        "{text}"
    );
    assert!(text.contains("GridReduceExec") && !text.contains("because"), "{text}");
    collect(Arc::clone(&plan), case.ctx.task_ctx()).await.unwrap();
    let metrics = plan.metrics().unwrap();
    let count = |name: &str| metrics.sum_by_name(name).map(|it| it.as_usize());
    // Two chunks; one of labels, and three documents.
    assert_eq!((count("cells_written"), count("objects_written")), (Some(6), Some(6)));
    assert!(count("bytes_written") > Some(500), "{metrics}");
}

/// Rows that take more memory than there is go to the disk.
#[tokio::test]
async fn rows_spill() {
    let case = Case::new(limited(2, 8192, 64 << 20)).await;
    let sql = "SELECT value * 7919 % 1000 AS y, value / 1000 AS x, value * 0.5 AS v, value AS n FROM range(1000000)";
    case.copy(sql, "s.zarr", "'dimensions' 'x, y', 'chunks' 'x=50'").await.unwrap();
    let sums = format!(
        "SELECT count(*), sum(v), sum(n), max(abs(v - n * 0.5)), count(DISTINCT n) FROM read_array('{}')",
        case.at("s.zarr").display()
    );
    let ctx = reducing(2, 8192);
    assert_eq!(
        rows_from(&ctx, &sums).await,
        [["1000000", "249999750000.0", "499999500000", "0.0", "1000000"]]
    );
    let wide = format!("SELECT *, n + 1 AS a, n + 2 AS b, n + 3 AS c FROM ({sql})");
    let error =
        case.copy(&wide, "t.zarr", "'dimensions' 'x, y', 'chunks' 'x=1000'").await.unwrap_err();
    assert!(error.contains("a row of chunks does not fit in memory"), "{error}");
    assert_eq!(objects(&case.at("t.zarr")), 0);
}

/// Array to array, in other chunks: no rows are sorted.
#[tokio::test]
async fn copies_in_the_order_of_an_array_need_no_sort() {
    let case = Case::new(reducing(2, 512)).await;
    let to = case.at("n.zarr");
    let sql = format!("COPY (SELECT time, lat, lon, t2m FROM air) TO '{}'", to.display());
    let plan = case.ctx.sql(&sql).await.unwrap().create_physical_plan().await.unwrap();
    let text = displayable(plan.as_ref()).indent(false).to_string();
    assert!(!text.contains("SortExec"), "{text}");
}
