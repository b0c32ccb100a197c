//! `CREATE EXTERNAL TABLE` with columns: the first rows make the array.

use super::zarr::Case;
use crate::support::{query, reducing, rows_from};

fn create(case: &Case, name: &str, columns: &str, options: &str) -> String {
    let at = case.at(name);
    format!(
        "CREATE EXTERNAL TABLE t ({columns}) STORED AS ZARR LOCATION '{}' OPTIONS ({options})",
        at.display()
    )
}

const COLUMNS: &str =
    "v REAL, time TIMESTAMP, n INT, station TEXT, day DATE, warm BOOLEAN, \"Name\" TEXT";

#[tokio::test]
async fn the_first_rows_make_the_array() {
    let case = Case::new(reducing(2, 512)).await;
    let options = "'dimensions' 'time, station', 'chunks' 'time=2', 'codec' 'gzip', 'fill' 'n=-9, Name=none, warm=false'";
    let sql = create(&case, "x.zarr", COLUMNS, &options.replace(", warm=false", ""));
    query(&case.ctx, &sql).await.unwrap();
    assert!(!case.at("x.zarr").exists());
    assert!(rows_from(&case.ctx, "SELECT * FROM t").await.is_empty());
    let none = "INSERT INTO t SELECT * FROM t";
    assert_eq!(rows_from(&case.ctx, none).await, [["0"]]);
    assert!(!case.at("x.zarr").exists());
    let plan = rows_from(
        &case.ctx,
        "EXPLAIN INSERT INTO t VALUES (1, '2024-01-01', 1, 'a', '2024-01-01', true, 'x')",
    );
    let plan = plan.await.concat().concat();
    assert!(plan.contains("ArraySink: format=zarr, dimensions=[time, station]"), "{plan}");
    assert!(!case.at("x.zarr").exists());
    let insert = "INSERT INTO t VALUES (1.5, '2024-01-01T06:00', 1, 'a', '2024-01-03', true, 'x'), (2.5, '2024-01-01T06:00', NULL, 'b', NULL, false, NULL)";
    assert_eq!(rows_from(&case.ctx, insert).await, [["2"]]);
    // Columns keep the order of the declaration, by which VALUES are inserted.
    let all = "SELECT * FROM t ORDER BY time, station";
    let first = vec!["1.5", "2024-01-01T06:00:00", "1", "a", "2024-01-03T00:00:00", "true", "x"];
    let second = vec!["2.5", "2024-01-01T06:00:00", "NULL", "b", "NULL", "false", "NULL"];
    assert_eq!(rows_from(&case.ctx, all).await, [first.clone(), second.clone()]);
    let insert = "INSERT INTO t VALUES (3.5, '2024-01-02', 3, 'b', '2024-01-04', true, 'y'), (4.5, '2024-01-02', 4, 'a', '2024-01-05', true, 'z')";
    query(&case.ctx, insert).await.unwrap();
    let third = vec!["4.5", "2024-01-02T00:00:00", "4", "a", "2024-01-05T00:00:00", "true", "z"];
    let fourth = vec!["3.5", "2024-01-02T00:00:00", "3", "b", "2024-01-04T00:00:00", "true", "y"];
    assert_eq!(rows_from(&case.ctx, all).await, [first, second, third, fourth]);
    let some = "SELECT n, station FROM t WHERE time > '2024-01-01T12:00' AND v > 4";
    assert_eq!(rows_from(&case.ctx, some).await, [["4", "a"]]);
    let merge = "MERGE INTO t USING (VALUES ('a', 10)) s(station, add) ON t.station = s.station WHEN MATCHED THEN UPDATE SET n = t.n + s.add";
    assert_eq!(rows_from(&case.ctx, merge).await, [["2"]]);
    assert_eq!(
        rows_from(&case.ctx, "SELECT n FROM t WHERE station = 'a' ORDER BY time").await,
        [["11"], ["14"]]
    );
    // Another session finds the array.
    assert_eq!(case.read("x.zarr", "count(*), sum(v)").await, [["4", "12.0"]]);
}

#[tokio::test]
async fn what_cannot_be_a_new_table_is_told() {
    let case = Case::new(reducing(2, 512)).await;
    case.copy("SELECT value AS x, value AS v FROM range(3)", "there.zarr", "'dimensions' 'x'")
        .await
        .unwrap();
    let columns = "x INT, v DOUBLE";
    for (sql, message) in [
        (create(&case, "x.zarr", columns, "'level' '3'"), "a new table needs its dimensions"),
        (create(&case, "x.zarr", columns, "'dimensions' 'y'"), "'y', which is no column"),
        (
            create(&case, "x.zarr", columns, "'dimensions' 'x', 'colour' 'red'"),
            "no option 'colour'",
        ),
        (
            create(&case, "x.zarr", columns, "'dimensions' 'x', 'mode' 'append'"),
            "INSERT INTO appends",
        ),
        (create(&case, "there.zarr", columns, "'dimensions' 'x'"), "leave the column list out"),
        (
            create(&case, "x.zarr", columns, "'dimensions' 'x'").replace("ZARR", "ARRAY"),
            "name a format for a new array",
        ),
        (
            create(&case, "x.zarr", "x INT, v DOUBLE DEFAULT 5", "'dimensions' 'x'"),
            "has no DEFAULT",
        ),
        (
            create(&case, "x.zarr", "x INT, v DOUBLE NOT NULL", "'dimensions' 'x'"),
            "cannot be NOT NULL",
        ),
    ] {
        let Err(error) = query(&case.ctx, &sql).await else { panic!("{sql}") };
        assert!(error.to_string().contains(message), "{sql}\n{error}");
    }
    let of_times = create(
        &case,
        "times.zarr",
        "time TIMESTAMP NOT NULL, v DOUBLE",
        "'dimensions' 'time', 'aws.region' 'eu'",
    );
    query(&case.ctx, &of_times.replace("TABLE t ", "TABLE times ")).await.unwrap();
    query(&case.ctx, "INSERT INTO times SELECT concat('2024-01-0', value), value FROM range(1, 4)")
        .await
        .unwrap();
    let rows = rows_from(&case.ctx, "SELECT max(time), sum(v) FROM times").await;
    assert_eq!(rows, [["2024-01-03T00:00:00", "6.0"]]);
    query(&case.ctx, &create(&case, "x.zarr", columns, "'dimensions' 'x'")).await.unwrap();
    for (sql, message) in [
        ("INSERT INTO t SELECT value + 0.5, value FROM range(2)", "0.5 of \"x\" is no Int32"),
        ("INSERT INTO t SELECT value, 9007199254740993 FROM range(2)", "9007199254740993"),
        ("INSERT INTO t VALUES (1, 1), (1, 2)", "two rows have the labels x=1"),
        (
            "MERGE INTO t USING (VALUES (1)) s(x) ON t.x = s.x WHEN MATCHED THEN UPDATE SET v = 1",
            "the table has no rows yet",
        ),
    ] {
        let Err(error) = query(&case.ctx, sql).await else { panic!("{sql}") };
        assert!(error.to_string().contains(message), "{sql}\n{error}");
        assert!(!case.at("x.zarr").exists(), "{sql}");
    }
    // An array that another program has made meanwhile.
    case.copy(
        "SELECT CAST(value AS INT) AS x, CAST(value AS DOUBLE) AS v FROM range(3)",
        "x.zarr",
        "'dimensions' 'x'",
    )
    .await
    .unwrap();
    query(&case.ctx, "INSERT INTO t VALUES (7, 0.5)").await.unwrap();
    assert_eq!(rows_from(&case.ctx, "SELECT count(*), sum(v) FROM t").await, [["4", "3.5"]]);
}
