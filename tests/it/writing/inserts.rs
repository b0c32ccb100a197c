//! `INSERT INTO` the tables of Zarr stores.

use datafusion::dataframe::DataFrameWriteOptions;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};

use super::append::files;
use super::zarr::Case;
use crate::support::{query, reducing, rows_from, shipped};

/// Makes a store of two days and the table `t` of it.
async fn table(case: &Case) {
    let sql = "SELECT CAST(value / 3 AS INT) AS day, concat('s', value % 3) AS site, CAST(value AS REAL) AS t, CAST(value AS INT) AS n FROM range(6)";
    case.copy(sql, "x.zarr", "'dimensions' 'day, site', 'chunks' 'day=2', 'fill' 'n=-1'")
        .await
        .unwrap();
    let create = format!(
        "CREATE EXTERNAL TABLE t STORED AS ZARR LOCATION '{}'",
        case.at("x.zarr").display()
    );
    query(&case.ctx, &create).await.unwrap();
}

const ALL: &str = "SELECT count(*), count(t), sum(t), sum(n), max(day) FROM t";

#[tokio::test]
async fn inserted_rows_are_in_the_table() {
    let case = Case::new(reducing(2, 512)).await;
    table(&case).await;
    assert_eq!(rows_from(&case.ctx, ALL).await, [["6", "6", "15.0", "15", "1"]]);
    // Columns in another order, of other types that hold the same values, and from the table itself.
    let count = rows_from(&case.ctx, "INSERT INTO t (n, t, site, day) SELECT n + 6, CAST(t AS DOUBLE) + 6, site, day + 2 FROM t WHERE day = 0").await;
    assert_eq!(count, [["3"]]);
    assert_eq!(rows_from(&case.ctx, ALL).await, [["9", "9", "36.0", "36", "2"]]);
    // A column and rows that are left out are NULL.
    query(&case.ctx, "INSERT INTO t (day, site, n) VALUES (4, 's0', 100), (3, 's2', 1)")
        .await
        .unwrap();
    assert_eq!(rows_from(&case.ctx, ALL).await, [["15", "9", "36.0", "137", "4"]]);
    let stored = format!("SELECT count(*) FROM read_array('{}')", case.at("x.zarr").display());
    assert_eq!(rows_from(&case.ctx, &stored).await, [["15"]]);
    // A DataFrame.
    let frame = case.ctx.sql("SELECT CAST(9 AS INT) AS day, 's1' AS site, CAST(2 AS INT) AS n, CAST(0.5 AS REAL) AS t").await.unwrap();
    frame.write_table("t", DataFrameWriteOptions::new()).await.unwrap();
    assert_eq!(rows_from(&case.ctx, ALL).await, [["18", "10", "36.5", "139", "9"]]);
    let plan = rows_from(
        &case.ctx,
        "EXPLAIN INSERT INTO t (day, site, t, n) SELECT day + 20, site, t, n FROM t",
    )
    .await;
    let plan = plan.concat().concat();
    assert!(
        plan.contains(
            "ArraySink: format=zarr, mode=append, dimensions=[day, site], variables=[n, t]"
        ),
        "{plan}"
    );
}

#[tokio::test]
async fn what_has_no_place_is_refused_and_changes_nothing() {
    let case = Case::new(reducing(2, 512)).await;
    table(&case).await;
    let air = shipped("examples/data/air.nc");
    case.ctx.register_array("netcdf", &air, ArrayOptions::default()).await.unwrap();
    let many = format!(
        "CREATE EXTERNAL TABLE many STORED AS ZARR LOCATION '{}'",
        case.at("*.zarr").display()
    );
    query(&case.ctx, &many).await.unwrap();
    let before = files(&case.at("x.zarr"));
    for (sql, message) in [
        // DataFusion would round these.
        (
            "INSERT INTO t (day, site, t, n) SELECT day + 2, site, CAST(t AS DOUBLE) + 0.1, n FROM t",
            "of \"t\" cannot be appended",
        ),
        (
            "INSERT INTO t (day, site, t, n) SELECT day + 2, site, t, n + 0.5 FROM t",
            "of \"n\" cannot be appended: 0.5 would read as",
        ),
        (
            "INSERT INTO t (day, site, t, n) SELECT day + 2.5, site, t, n FROM t",
            "the label day=2.5 is no Int32",
        ),
        ("INSERT INTO t (day, site, t, n) VALUES (2, 's0', 1, 1.5)", "1.5 is no Int32"),
        ("INSERT INTO t (day, site, t, n) VALUES (2, 's0', 1, -1)", "-1 would read as NULL"),
        ("INSERT INTO t (day, site, t, n) VALUES (1, 's0', 1, 1)", "nothing is appended"),
        (
            "INSERT INTO t (day, site, t, n) VALUES (2, 'other', 1, 1)",
            "day=2 and site=other are not in the array",
        ),
        (
            "INSERT INTO t (day, site, t, n) VALUES (2, 's0', 1, 1), (2, 's0', 2, 2)",
            "two rows have the labels day=2, site=s0",
        ),
        (
            "INSERT INTO t (site, t, n) VALUES ('s0', 1, 1)",
            "the dimension \"day\" has NULL among its labels",
        ),
        ("INSERT INTO netcdf SELECT * FROM netcdf", "INSERT INTO an array of the format netcdf"),
        ("INSERT INTO many SELECT day + 2, site, t, n FROM t", "a table of several files"),
    ] {
        let error = query(&case.ctx, sql).await.unwrap_err().to_string();
        assert!(error.contains(message), "{sql}\n{error}");
        assert!(files(&case.at("x.zarr")) == before, "{sql}");
    }
    assert_eq!(rows_from(&case.ctx, ALL).await, [["6", "6", "15.0", "15", "1"]]);
}
