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
            part("2024-01-03", "2024-01-04")
                .replace("* FROM", "time, station, value + 1 AS value FROM"),
            "'mode' 'append', 'existing' 'same'",
            "the array has another value",
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

/// The same statements change a TileDB array and a Zarr store.
#[tokio::test]
async fn cells_change_as_those_of_zarr_do() {
    let case = Case::new(reducing(2, 16)).await;
    let grid =
        "SELECT x, y, CAST(x * 10 + y AS DOUBLE) AS v, CAST(x AS INT) AS n, concat('t', y) AS t
        FROM (SELECT value AS x FROM range(1, 9)) CROSS JOIN (SELECT value AS y FROM range(1, 6))";
    let options = "'dimensions' 'x, y', 'chunks' 'x=3,y=2'";
    let fills = ", 'fill' 'n=-1, t=none'";
    case.copy(grid, "x.zarr", &format!("{options}{fills}")).await.unwrap();
    case.copy(grid, "x.tdb", &format!("{options}{fills}, 'can_grow' 'true'")).await.unwrap();
    for (name, format) in [("z", "ZARR"), ("d", "TILEDB")] {
        let at = case.at(if name == "z" { "x.zarr" } else { "x.tdb" });
        let sql = format!(
            "CREATE EXTERNAL TABLE {name} STORED AS {format} LOCATION '{}'{}",
            at.display(),
            if name == "d" { " OPTIONS (fill_as_null 'true')" } else { "" }
        );
        query(&case.ctx, &sql).await.unwrap();
    }
    let bumps = "(VALUES (2, 100), (7, 200)) s(x, more)";
    let both = "MERGE INTO {t} USING";
    let clauses = "ON {t}.x = s.x AND {t}.y = s.y WHEN MATCHED THEN UPDATE SET v = -1.0
        WHEN NOT MATCHED THEN INSERT (x, y, v, n, t) VALUES (s.x, s.y, 3.5, 5, 'z')";
    for statement in [
        "REPLACE INTO {t} (x, y, v, n, t) VALUES (2, 3, 0.5, 7, 'new'), (5, 1, NULL, 8, 'newer')"
            .to_owned(),
        format!(
            "MERGE INTO {{t}} USING {bumps} ON {{t}}.x = s.x WHEN MATCHED THEN UPDATE SET v = {{t}}.v + s.more"
        ),
        format!(
            "MERGE INTO {{t}} USING {bumps} ON {{t}}.x = s.x AND {{t}}.y = 2 WHEN MATCHED THEN UPDATE SET t = concat({{t}}.t, s.x), n = {{t}}.n + 1"
        ),
        "INSERT OVERWRITE {t} (x, y, v, n, t) VALUES (4, 2, 1.5, 3, 'c'), (6, 4, 2.5, NULL, 'd')"
            .to_owned(),
        "INSERT INTO {t} (x, y, v, n, t) VALUES (9, 1, 9.5, 9, 'ninth')".to_owned(),
        format!("{both} (VALUES (8, 1), (9, 2)) s(x, y) {clauses}"),
        format!("{both} (VALUES (10, 1), (10, 2)) s(x, y) {clauses}"),
        "REPLACE INTO {t} (x, y, v, n, t) SELECT x, y, v * 2, n, t FROM {t} WHERE y > 2".to_owned(),
    ] {
        let mut counts = vec![];
        let mut rows = vec![];
        for table in ["z", "d"] {
            let sql = statement.replace("{t}", table);
            counts.push(rows_from(&case.ctx, &sql).await);
            rows.push(
                sorted_rows_from(&case.ctx, &format!("SELECT x, y, v, n, t FROM {table}")).await,
            );
        }
        assert_eq!(counts[0], counts[1], "{statement}");
        assert_eq!(rows[0], rows[1], "{statement}");
        let report = verify(case.at("x.tdb").to_str().unwrap(), Depth::Cells).await;
        assert_eq!(findings(&report), "", "{statement}");
    }
    assert_eq!(rows_from(&case.ctx, "SELECT count(*), max(x) FROM d").await, [["50", "10"]]);
    // All rows may come again, with NULL and fill values as queries show them.
    for table in ["d", "read_tiledb('{at}')"] {
        let at = case.at("x.tdb").display().to_string();
        let all = format!("SELECT x, y, v, n, t FROM {}", table.replace("{at}", &at));
        case.copy(&all, "x.tdb", "'mode' 'append', 'existing' 'same'").await.unwrap();
    }
    // Changed cells and new labels would not be visible at once.
    let mixed = format!("{both} (VALUES (8, 1), (11, 2)) s(x, y) {clauses}").replace("{t}", "d");
    let error = query(&case.ctx, &mixed).await.unwrap_err().to_string();
    assert!(error.contains("write them in two statements"), "{error}");
    // Only tiles of the box around the rows are in the new fragment.
    let before = files(&case.at("x.tdb"));
    let rows = "SELECT 1 AS x, 1 AS y, 0.25 AS v, 1 AS n, 't' AS t";
    case.copy(rows, "x.tdb", "'mode' 'append', 'existing' 'overwrite'").await.unwrap();
    let after = files(&case.at("x.tdb"));
    let added: Vec<&String> = after.keys().filter(|name| !before.contains_key(*name)).collect();
    assert!(before.iter().all(|(name, bytes)| after.get(name) == Some(bytes)));
    let of_cells = added.iter().filter(|name| name.rsplit('/').next().unwrap().starts_with('a'));
    let sizes: usize = of_cells.map(|name| after[*name].len()).sum();
    assert!(added.iter().any(|it| it.ends_with(".wrt")) && sizes < 400, "{sizes} {added:?}");
    // Cells that are the same may come again, and other columns stay out.
    let again = format!("{rows} UNION ALL SELECT 11, 1, 0.5, 1, 't'");
    case.copy(&again, "x.tdb", "'mode' 'append', 'existing' 'same', 'dimensions' 'x, y'")
        .await
        .unwrap();
    assert_eq!(case.read("x.tdb", "count(*), max(x)").await, [["55", "11"]]);
    let part = "SELECT 12 AS x, 1 AS y, 0.5 AS v";
    let error =
        case.copy(part, "x.tdb", "'mode' 'append', 'existing' 'overwrite'").await.unwrap_err();
    assert!(error.contains("new cells have all attributes"), "{error}");
}

/// Rows are never computed from an array that another program has changed since.
#[tokio::test]
async fn changes_of_other_programs_are_not_lost() {
    let case = Case::new(reducing(2, 16)).await;
    let at = case.at("x.tdb").display().to_string();
    let rows = "SELECT value AS x, CAST(value AS DOUBLE) AS v FROM range(4)";
    case.copy(rows, "x.tdb", "'dimensions' 'x'").await.unwrap();
    let create = format!("CREATE EXTERNAL TABLE t STORED AS TILEDB LOCATION '{at}'");
    query(&case.ctx, &create).await.unwrap();
    let other = reducing(2, 16);
    query(&other, &create).await.unwrap();
    let merge = "MERGE INTO t USING (VALUES (2, 1.0)) s(x, more) ON t.x = s.x WHEN MATCHED THEN UPDATE SET v = t.v + s.more";
    query(&other, merge).await.unwrap();
    query(&case.ctx, merge).await.unwrap();
    query(&other, merge).await.unwrap();
    let value = "SELECT v FROM t WHERE x = 2";
    assert_eq!(rows_from(&other, value).await, [["5.0"]]);
    let double = "REPLACE INTO t SELECT x, v * 2 AS v FROM t WHERE x = 2";
    let error = query(&case.ctx, double).await.unwrap_err().to_string();
    assert!(error.contains("run the statement again"), "{error}");
    query(&case.ctx, double).await.unwrap();
    assert_eq!(rows_from(&case.ctx, value).await, [["10.0"]]);
}

/// Far rows change cells of a box, whose tiles are not held in memory.
#[tokio::test]
async fn far_rows_change_a_box() {
    let case = Case::new(reducing(2, 64)).await;
    let rows =
        "SELECT value / 10 AS x, value % 10 AS y, CAST(value AS DOUBLE) AS v FROM range(2000)";
    case.copy(rows, "x.tdb", "'dimensions' 'x, y', 'chunks' 'x=3,y=4'").await.unwrap();
    let overwrite = "'mode' 'append', 'existing' 'overwrite'";
    let ends = "SELECT x, y, -1.0 AS v FROM (VALUES (0, 9), (100, 0), (199, 5)) t(x, y)";
    case.copy(ends, "x.tdb", overwrite).await.unwrap();
    let expected = format!(
        "SELECT x, y, CASE WHEN (x = 0 AND y = 9) OR (x = 100 AND y = 0) OR (x = 199 AND y = 5) THEN -1.0 ELSE v END AS v FROM ({rows})"
    );
    assert_is(&case, "x.tdb", "x, y, v", &expected).await;
    let error =
        case.copy(ends, "x.tdb", &format!("{overwrite}, 'max_cells' '1000'")).await.unwrap_err();
    assert!(error.contains("at most 1000 are written"), "{error}");
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
