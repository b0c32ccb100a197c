//! TileDB arrays that `COPY` writes and appends to, read back and verified.

use std::fs;

use gridfusion::verify::Depth;

use super::append::files;
use super::zarr::Case;
use crate::support::{query, reducing, rows_from, sorted_rows_from};
use crate::verify::tet::findings;
use crate::verify::tiledb::verify;

const STATIONS: &str = "SELECT time, station, value FROM stations.temperature";
const AIR: &str = "SELECT time, lat, lon, t2m FROM air WHERE time < TIMESTAMP '2023-04-01'";

/// Asserts that the array has these rows, and that `verify` finds no fault in any cell.
async fn assert_is(case: &Case, name: &str, columns: &str, sql: &str) {
    let expected = sorted_rows_from(&case.ctx, &format!("SELECT {columns} FROM ({sql})")).await;
    assert_eq!(case.read(name, columns).await, expected, "{sql}");
    let report = verify(case.at(name).to_str().unwrap(), Depth::Cells).await;
    assert_eq!(findings(&report), "", "{name}");
}

#[tokio::test]
async fn queries_are_read_back() {
    let case = Case::new(reducing(2, 512)).await;
    let means = "SELECT station, date_part('hour', time) AS hour, avg(value) AS mean, count(*) AS n FROM stations.temperature GROUP BY station, hour";
    let values = "SELECT x, y, v, i, t, b, w FROM (VALUES (3, 'b', 1.5, 2, 'text', true, TIMESTAMP '2024-02-29T12:00:00.5'), (1, 'a', NULL, NULL, NULL, NULL, NULL), (3, 'a', 2.5, 7, '', false, TIMESTAMP '1700-01-01')) v(x, y, v, i, t, b, w)";
    let gaps =
        "SELECT value AS x, value * 10 AS y, value % 7 AS v FROM range(100) WHERE value % 3 > 0";
    for (number, (sql, columns, options)) in [
        (STATIONS, "time, station, value", ""),
        (
            STATIONS,
            "time, station, value",
            "'dimensions' 'station, time', 'chunks' 'time=100,station=4', 'checksums' 'true'",
        ),
        (AIR, "time, lat, lon, t2m", "'chunks' 'time=2,lat=4,lon=5', 'codec' 'gzip', 'level' '9'"),
        (AIR, "time, lat, lon, t2m", "'filters' 'byteshuffle, zstd=9, md5'"),
        (AIR, "time, lat, lon, t2m", "'codec' 'none', 'fill' '-999'"),
        (means, "station, hour, mean, n", "'chunks' 'station=2'"),
        (values, "x, y, v, i, t, b, w", "'dimensions' 'x, y', 'codec' 'bzip2'"),
        (
            gaps,
            "x, y, v",
            "'dimensions' 'x', 'filters' 'delta, bit_width_reduction, zstd', 'chunks' 'x=16'",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("{number}.tdb");
        case.copy(sql, &name, options).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        if options.contains("-999") {
            let place = case.at(&name);
            let filled = format!(
                "SELECT {columns} FROM read_array('{}', fill_as_null => true)",
                place.display()
            );
            assert_eq!(
                sorted_rows_from(&case.ctx, &filled).await,
                sorted_rows_from(&case.ctx, sql).await
            );
            continue;
        }
        if sql.contains("(VALUES") {
            // A cell without a row is NULL.
            let rows = case.read(&name, columns).await;
            assert_eq!(rows.len(), 4);
            continue;
        }
        if sql.contains("range(100)") {
            let rows = case.read(&name, "count(*), count(v), sum(v), max(x)").await;
            assert_eq!(rows, [["66", "66", "194", "98"]]);
            continue;
        }
        assert_is(&case, &name, columns, sql).await;
    }
}

#[tokio::test]
async fn arrays_with_room_become_longer() {
    let case = Case::new(reducing(2, 512)).await;
    let part = |from: &str, to: &str| {
        format!(
            "SELECT * FROM ({STATIONS}) WHERE time >= TIMESTAMP '{from}' AND time < TIMESTAMP '{to}'"
        )
    };
    let append = "'mode' 'append'";
    let options = "'chunks' 'time=7,station=4', 'can_grow' 'true'";
    case.copy(&part("2024-01-01", "2024-01-03"), "x.tdb", options).await.unwrap();
    case.copy(&part("2024-01-03", "2024-01-03T05:00"), "x.tdb", append).await.unwrap();
    let at = case.at("x.tdb").display().to_string();
    query(&case.ctx, &format!("CREATE EXTERNAL TABLE t STORED AS TILEDB LOCATION '{at}'"))
        .await
        .unwrap();
    let insert = format!("INSERT INTO t {}", part("2024-01-03T05:00", "2024-02-01"));
    query(&case.ctx, &insert).await.unwrap();
    let columns = "time, station, value";
    assert_is(&case, "x.tdb", columns, &part("2024-01-01", "2024-02-01")).await;
    let found = sorted_rows_from(&case.ctx, &format!("SELECT {columns} FROM t")).await;
    assert_eq!(found, sorted_rows_from(&case.ctx, &part("2024-01-01", "2024-02-01")).await);
    let before = files(&case.at("x.tdb"));
    case.copy(&part("2024-01-01", "2024-01-03"), "short.tdb", "'chunks' 'time=7'").await.unwrap();
    let short = files(&case.at("short.tdb"));
    for (name, rows, options, message) in [
        ("short.tdb", part("2024-01-03", "2024-01-04"), append, "a TileDB domain never changes"),
        ("x.tdb", part("2024-01-03", "2024-03-01"), append, "is there already"),
        (
            "x.tdb",
            part("2024-02-03", "2024-03-01"),
            "'mode' 'append', 'existing' 'overwrite'",
            "no option 'existing'",
        ),
        (
            "x.tdb",
            part("2024-02-03", "2024-03-01")
                .replace("* FROM", "time, station, value AS other FROM"),
            append,
            "no column \"other\"",
        ),
        (
            "x.tdb",
            part("2024-02-03", "2024-03-01")
                .replace("* FROM", "time, station, concat(value, '') AS value FROM"),
            append,
            "of type",
        ),
        ("x.tdb", part("2024-01-03", "2024-01-04"), "", "choose a 'mode'"),
    ] {
        let error = case.copy(&rows, name, options).await.unwrap_err();
        assert!(error.contains(message), "{rows}\n{error}");
        assert!(
            files(&case.at("x.tdb")) == before && files(&case.at("short.tdb")) == short,
            "{rows}"
        );
    }
}

#[tokio::test]
async fn other_arrays_are_replaced_and_bad_options_refused() {
    let case = Case::new(reducing(2, 512)).await;
    case.copy(STATIONS, "x.tdb", "").await.unwrap();
    case.copy(AIR, "x.tdb", "'mode' 'overwrite', 'chunks' 'lat=5'").await.unwrap();
    assert_is(&case, "x.tdb", "time, lat, lon, t2m", AIR).await;
    fs::create_dir(case.at("other.tdb")).unwrap();
    fs::write(case.at("other.tdb").join("notes"), "all").unwrap();
    let before = files(&case.at(""));
    for (name, options, message) in [
        ("other.tdb", "'mode' 'overwrite'", "only an array is overwritten"),
        ("y.tdb", "'filters' 'lz5'", "there is no filter 'lz5'"),
        ("y.tdb", "'filters' 'delta=3'", "the filter 'delta' has no level"),
        ("y.tdb", "'filters' 'zstd=99'", "99"),
        ("y.tdb", "'filters' 'zstd', 'codec' 'gzip'", "leave 'codec' and 'level' out"),
        ("y.tdb", "'shards' 'time=3'", "the format tiledb has no option 'shards'"),
    ] {
        let error = case.copy(AIR, name, options).await.unwrap_err();
        assert!(error.contains(message), "{options}\n{error}");
        assert!(files(&case.at("")) == before, "{options}");
    }
    let create = format!(
        "CREATE EXTERNAL TABLE t (hour INT, site TEXT, v REAL) STORED AS TILEDB LOCATION '{}' OPTIONS (dimensions 'hour, site', can_grow 'true')",
        case.at("new.tdb").display()
    );
    query(&case.ctx, &create).await.unwrap();
    query(&case.ctx, "INSERT INTO t VALUES (1, 'a', 1.5), (2, 'b', 2.5)").await.unwrap();
    query(&case.ctx, "INSERT INTO t VALUES (3, 'b', 3.5)").await.unwrap();
    let rows = rows_from(&case.ctx, "SELECT * FROM t WHERE v IS NOT NULL ORDER BY hour").await;
    assert_eq!(rows, [["1", "a", "1.5"], ["2", "b", "2.5"], ["3", "b", "3.5"]]);
}
