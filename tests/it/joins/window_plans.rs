//! The plans of windows and lookups, and what they read.

use std::sync::Arc;

use datafusion::physical_plan::{collect, displayable};
use datafusion::prelude::SessionContext;
use gridfusion::codec::SharedLeaf;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde_json::json;

use crate::codec::sent::plan;
use crate::codec::shapes::{metric, tables};
use crate::support::cases::{Axis, Case};
use crate::support::{
    F64, Layout, TempTet, TestDataset, limited, query, reducing, rows_from, rows_of,
    sorted_rows_from, tet_bytes,
};

const ROLLING: &str = "avg(value) OVER (PARTITION BY station ORDER BY time ROWS 23 PRECEDING)";

async fn text(ctx: &SessionContext, sql: &str) -> String {
    displayable(plan(ctx, sql).await.unwrap().as_ref()).indent(false).to_string()
}

/// The rows of a query with and without a setting.
async fn both(ctx: &SessionContext, setting: &str, sql: &str) -> [Vec<Vec<String>>; 2] {
    let with = sorted_rows_from(ctx, sql).await;
    query(ctx, &format!("SET gridfusion.optimizer.enable_{setting} = false")).await.unwrap();
    let without = sorted_rows_from(ctx, sql).await;
    query(ctx, &format!("SET gridfusion.optimizer.enable_{setting} = true")).await.unwrap();
    [with, without]
}

#[tokio::test]
async fn windows_run_along_a_dimension_or_over_rows() {
    let ctx = tables().await;
    let over = |window: &str| format!("count(value) OVER ({window})");
    for (function, rest, is_on_grid) in [
        (ROLLING.to_owned(), "", true),
        (over("PARTITION BY station ORDER BY time DESC"), "", true),
        (over("PARTITION BY station, date_trunc('month', time) ORDER BY time"), "", true),
        (over("PARTITION BY time ORDER BY station"), "", true),
        (over("ORDER BY time"), " WHERE station = 'Oslo'", true),
        (over("ORDER BY time"), "", false),
        (over("PARTITION BY station ORDER BY value"), "", false),
        (over("PARTITION BY station ORDER BY time, value"), "", false),
        (over("PARTITION BY substr(station, 1, 1) ORDER BY time"), "", false),
        (over("PARTITION BY station, date_part('hour', time) ORDER BY time"), "", false),
        (over("PARTITION BY station ORDER BY time"), " WHERE value > 0", false),
        (
            "sum(value) FILTER (WHERE value > 0) OVER (PARTITION BY station ORDER BY time)".into(),
            "",
            false,
        ),
        ("lag(value) IGNORE NULLS OVER (PARTITION BY station ORDER BY time)".into(), "", false),
        (
            "last_value(value) IGNORE NULLS OVER (PARTITION BY station ORDER BY time)".into(),
            "",
            true,
        ),
        ("row_number() OVER (PARTITION BY station ORDER BY time, random())".into(), "", false),
        ("lag(value, 24, 0.5) OVER (PARTITION BY station ORDER BY time)".into(), "", true),
    ] {
        let sql =
            format!("SELECT time, station, value, {function} AS result FROM temperature{rest}");
        let plan = text(&ctx, &sql).await;
        assert_eq!(plan.contains("GridWindowExec"), is_on_grid, "{sql}\n{plan}");
        let [with, without] = both(&ctx, "grid_windows", &sql).await;
        assert_eq!(with.len(), without.len(), "{sql}");
        if !function.contains("avg") {
            assert!(with == without && !with.is_empty(), "{sql}");
        }
    }
}

/// The chunks of the selected labels are read, those behind a border twice, and rows are in order without a sort.
#[tokio::test]
async fn windows_read_selected_chunks_in_order() {
    let ctx = tables().await;
    let all = format!("SELECT time, station, {ROLLING} AS mean FROM temperature");
    let sql = format!("{all} WHERE time >= TIMESTAMP '2024-02-01' ORDER BY time");
    let of_query = plan(&ctx, &sql).await.unwrap();
    let shown = text(&ctx, &sql).await;
    assert!(shown.contains("GridWindowExec") && !shown.contains("SortExec"), "{shown}");
    let rows = collect(Arc::clone(&of_query), ctx.task_ctx()).await.unwrap();
    assert!(rows.iter().any(|batch| batch.num_rows() > 0));
    let (read, pruned) = (metric(&of_query, "chunks_read"), metric(&of_query, "output_rows"));
    assert!((3..6).contains(&read) && pruned > 0, "{read} of 6 chunks, {pruned} rows");
    // Three partitions of two chunks each: the second and the third one read the chunk before theirs.
    let of_query = plan(&ctx, &all).await.unwrap();
    collect(Arc::clone(&of_query), ctx.task_ctx()).await.unwrap();
    assert_eq!(metric(&of_query, "chunks_read"), 8, "{}", text(&ctx, &all).await);
}

/// Frames behind NaN, infinity and large numbers are exact.
#[tokio::test]
async fn nothing_stays_of_values_that_have_left_the_frame() {
    let values = [1.0, f64::NAN, 2.0, 3.0, f64::INFINITY, 4.0, 5.0, 1e300, 0.25, 0.5, 0.75];
    let data = values.iter().flat_map(|it| it.to_le_bytes()).collect();
    let dataset = TestDataset::new("value", F64, &[11], &[4], data)
        .with_metadata(json!({"dim_names": ["x"]}));
    let layout = Layout { history_version: Some(1), ..Layout::default() };
    let file = TempTet::new(&tet_bytes(&[dataset], &layout));
    let ctx = reducing(2, 3);
    let options = ArrayOptions::default().with_nan_as_null(false);
    ctx.register_array("t", file.location(), options).await.unwrap();
    let sql = "SELECT x, sum(value) OVER (ORDER BY x ROWS 1 PRECEDING), stddev_pop(value) OVER (ORDER BY x ROWS CURRENT ROW) FROM t ORDER BY x";
    assert!(text(&ctx, sql).await.contains("GridWindowExec"));
    let sums: Vec<String> =
        rows_from(&ctx, sql).await.into_iter().map(|row| row[1].clone()).collect();
    assert_eq!(
        sums,
        ["1.0", "NaN", "NaN", "5.0", "inf", "inf", "9.0", "1e300", "1e300", "0.75", "1.25"]
    );
    let spreads = rows_from(&ctx, sql).await.into_iter().map(|row| row[2].clone());
    assert!(spreads.into_iter().all(|spread| spread == "0.0"));
}

/// Windows that need too much memory sort rows, and the pool refuses others.
#[tokio::test]
async fn windows_account_for_their_memory() {
    let ctx = tables().await;
    let sql = "SELECT time, station, sum(value) OVER (PARTITION BY station ORDER BY time ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS s FROM temperature";
    assert!(text(&ctx, sql).await.contains("GridWindowExec"));
    query(&ctx, "SET gridfusion.reduce_memory = 50000").await.unwrap();
    assert!(!text(&ctx, sql).await.contains("GridWindowExec"));
    let rolling = format!("SELECT time, station, {ROLLING} FROM temperature");
    query(&ctx, "SET gridfusion.reduce_memory = 500000").await.unwrap();
    assert!(text(&ctx, &rolling).await.contains("GridWindowExec"));
}

#[tokio::test]
async fn lookups_read_only_labels_with_a_match() {
    let ctx = tables().await;
    let sql = "SELECT t.time, t.value, n.k FROM temperature t JOIN (VALUES (TIMESTAMP '2024-01-05 12:00:00', 1), (TIMESTAMP '2024-01-05 12:00:00', 2), (NULL, 3)) n(time, k) ON t.time = n.time";
    let of_query = plan(&ctx, sql).await.unwrap();
    assert!(text(&ctx, sql).await.contains("GridLookupExec"));
    let rows = collect(Arc::clone(&of_query), ctx.task_ctx()).await.unwrap();
    assert_eq!(rows.iter().map(|batch| batch.num_rows()).sum::<usize>(), 12);
    assert_eq!(metric(&of_query, "chunks_read"), 1);
    let [with, without] = both(&ctx, "lookup_joins", sql).await;
    assert!(with == without);
    for (sql, is_looked_up) in [
        // A climatology, and an array that is joined by a function of a dimension.
        (
            "SELECT t.station, t.value - c.mean FROM (SELECT station, date_part('month', time) AS m, avg(value) AS mean FROM temperature GROUP BY station, m) c RIGHT JOIN temperature t ON t.station = c.station AND date_part('month', t.time) = c.m",
            true,
        ),
        (
            "SELECT t.time, t.value, d.value FROM temperature t JOIN temperature d ON date_trunc('day', t.time) = d.time AND t.station = d.station",
            true,
        ),
        (
            "SELECT t.time FROM temperature t WHERE t.station IN (SELECT station FROM elevation WHERE value > 50)",
            true,
        ),
        ("SELECT t.time FROM temperature t JOIN elevation e ON t.value = e.value", false),
        (
            "SELECT t.time FROM temperature t FULL JOIN (VALUES ('Oslo')) s(station) ON t.station = s.station",
            false,
        ),
    ] {
        let plan = text(&ctx, sql).await;
        assert_eq!(plan.contains("GridLookupExec"), is_looked_up, "{sql}\n{plan}");
        let [with, without] = both(&ctx, "lookup_joins", sql).await;
        assert!(with == without, "{sql}");
    }
}

/// The rows of the other side are accounted for.
#[tokio::test]
async fn lookups_account_for_their_memory() {
    let ctx = limited(2, 8192, 200_000);
    let options = ArrayOptions::default().with_dataset("temperature");
    ctx.register_array("t", "examples/data/stations.tet", options).await.unwrap();
    query(&ctx, "CREATE TABLE s AS SELECT value AS k, CAST(value AS VARCHAR) AS station FROM generate_series(1, 8000)").await.unwrap();
    let sql = "SELECT t.time, s.k FROM s JOIN t ON t.station = s.station";
    let error = query(&ctx, sql).await.unwrap_err().to_string();
    assert!(error.contains("GridLookupExec"), "{error}");
}

/// Zeros of both signs are two partitions of a window, as over rows.
#[tokio::test]
async fn zeros_of_both_signs_are_two_partitions() {
    let mut rng = StdRng::seed_from_u64(5);
    let axes = vec![Axis::Numbers(vec![-0.25, 0.25, 3.0]), Axis::Index(9)];
    let case = Case::of_axes(&mut rng, axes, &[3, 9], &[2, 4], false);
    let ours = reducing(2, 8192);
    let options = ArrayOptions::default().with_dataset("v");
    ours.register_array("t", case.file.location(), options).await.unwrap();
    for sql in [
        "SELECT d0, r FROM (SELECT *, row_number() OVER (PARTITION BY round(d0) ORDER BY value, d1) AS r FROM t) WHERE r <= 2",
        "SELECT d0, d1, count(*) OVER (PARTITION BY round(d0), d1 ORDER BY d0) FROM t",
        "SELECT d0, d1, count(*) OVER (PARTITION BY round(d0)) FROM t",
    ] {
        let expected = sorted_rows_from(&case.in_memory(), sql).await;
        assert_eq!(sorted_rows_from(&ours, sql).await, expected, "{sql}");
    }
}

/// Many rows with one key neither make large batches nor slow down other cells.
#[tokio::test]
async fn lookups_return_batches_of_usual_size() {
    let ctx = tables().await;
    query(&ctx, "CREATE TABLE events AS SELECT value AS id, CASE WHEN value < 3000 THEN 'Oslo' ELSE 'Bergen' END AS station FROM generate_series(1, 3000)").await.unwrap();
    let join = "temperature t JOIN events e ON t.station = e.station";
    for (sql, rows) in [
        (format!("SELECT t.time, e.id FROM {join}"), 1440 * 3000),
        (format!("SELECT t.time, e.id FROM {join} WHERE CAST(t.value AS VARCHAR) = 'none'"), 0),
        ("SELECT time FROM temperature t WHERE EXISTS (SELECT 1 FROM events e WHERE e.station = t.station)".into(), 2880),
        ("SELECT time FROM temperature t WHERE NOT EXISTS (SELECT 1 FROM events e WHERE e.station = t.station)".into(), 5760),
    ] {
        let of_query = plan(&ctx, &sql).await.unwrap();
        assert!(text(&ctx, &sql).await.contains("GridLookupExec"), "{sql}");
        let batches = collect(of_query, ctx.task_ctx()).await.unwrap();
        let lens: Vec<usize> = batches.iter().map(|batch| batch.num_rows()).collect();
        assert_eq!(lens.iter().sum::<usize>(), rows, "{sql}");
        // The session has batches of 100 rows.
        assert!(lens.iter().all(|len| *len <= 100) && lens.len() < 30 + rows / 50, "{sql}");
    }
}

/// A filter above a lookup reaches its chunks.
#[tokio::test]
async fn lookups_pass_filters_on() {
    let ctx = tables().await;
    let sql = "SELECT t.time, t.station, t.value, s.k FROM temperature t JOIN (VALUES ('Oslo', 1), ('Bergen', 2)) s(station, k) ON t.station = s.station ORDER BY t.value DESC, t.time, t.station LIMIT 3";
    let shown = text(&ctx, sql).await;
    let lookup = shown.lines().find(|line| line.contains("GridLookupExec"));
    assert!(lookup.is_some_and(|line| line.contains("DynamicFilter")), "{shown}");
    let found = rows_from(&ctx, sql).await;
    query(&ctx, "SET gridfusion.optimizer.enable_lookup_joins = false").await.unwrap();
    assert!(!text(&ctx, sql).await.contains("GridLookupExec"));
    assert_eq!(found, rows_from(&ctx, sql).await);
    assert_eq!(found.len(), 3);
}

/// The shares of a share return its rows, each once.
#[tokio::test]
async fn shares_of_windows_can_be_divided_again() {
    let ctx = tables().await;
    for sql in [
        format!("SELECT time, station, {ROLLING} FROM temperature"),
        "SELECT time, station, sum(value) OVER (PARTITION BY station ORDER BY time) FROM temperature".into(),
    ] {
        let leaf = plan(&ctx, &sql).await.unwrap();
        let leaf = leaf.children().first().map_or_else(|| Arc::clone(&leaf), |it| Arc::clone(it));
        assert_eq!(leaf.name(), "GridWindowExec");
        let mut rows = vec![];
        for share in SharedLeaf::from_node(&leaf).unwrap().shares(2).unwrap() {
            for share in SharedLeaf::from_node(&share).unwrap().shares(3).unwrap() {
                rows.extend(rows_of(&collect(share, ctx.task_ctx()).await.unwrap()));
            }
        }
        let mut expected = rows_of(&collect(leaf, ctx.task_ctx()).await.unwrap());
        expected.sort();
        rows.sort();
        assert!(rows == expected && rows.len() == 8640, "{sql}");
    }
}
