//! Plans as `EXPLAIN` shows them, and the metrics of `EXPLAIN ANALYZE`.

use std::sync::Arc;

use datafusion::physical_plan::{ExecutionPlan, collect, displayable};
use datafusion::prelude::SessionContext;
use gridfusion::exec::GridScanExec;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use insta::assert_snapshot;
use serde_json::json;

use crate::support::{F32, I32, Layout, TempTet, TestDataset, query, reducing, session, tet_bytes};

/// 40 hours x 12 stations in chunks of 10 x 4: a grid of 4 x 3 chunks of 160 bytes.
fn file() -> TempTet {
    let data = (0..480).flat_map(|i| (i as f32).to_le_bytes()).collect();
    let stations: Vec<String> = (0..12).map(|i| format!("S{i:02}")).collect();
    let metadata = json!({
        "dim_names": ["time", "station"],
        "coords": {"station": {"labels": stations}},
        "attrs": {"units": "K"},
    });
    let hours = (0..40_i32).flat_map(i32::to_le_bytes).collect();
    let time = TestDataset::new("time", I32, &[40], &[40], hours).with_metadata(
        json!({"dim_names": ["time"], "attrs": {"units": "hours since 2024-01-01"}}),
    );
    let value = TestDataset::new("t", F32, &[40, 12], &[10, 4], data).with_metadata(metadata);
    TempTet::new(&tet_bytes(
        &[value, time],
        &Layout { history_version: Some(2), ..Layout::default() },
    ))
}

async fn context(partitions: usize) -> (SessionContext, TempTet) {
    let file = file();
    let ctx = session(partitions, 8192);
    ctx.register_array("t", file.location(), ArrayOptions::default().with_dataset("t"))
        .await
        .unwrap();
    (ctx, file)
}

async fn plan(ctx: &SessionContext, sql: &str) -> Arc<dyn ExecutionPlan> {
    ctx.sql(sql).await.unwrap().create_physical_plan().await.unwrap()
}

async fn explain(ctx: &SessionContext, sql: &str) -> String {
    displayable(plan(ctx, sql).await.as_ref()).indent(false).to_string()
}

/// Runs a query; returns metrics of its scan, summed over partitions.
async fn metrics(ctx: &SessionContext, sql: &str, names: &[&str]) -> Vec<usize> {
    fn scan(plan: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
        if plan.downcast_ref::<GridScanExec>().is_some() {
            return Some(Arc::clone(plan));
        }
        plan.children().into_iter().find_map(scan)
    }
    let plan = plan(ctx, sql).await;
    collect(Arc::clone(&plan), ctx.task_ctx()).await.unwrap();
    let scan = scan(&plan).unwrap_or_else(|| panic!("{sql}: no scan"));
    let metrics = scan.metrics().unwrap();
    let sum = |name: &str| match name {
        "output_rows" => metrics.output_rows().unwrap_or_default(),
        _ => metrics.sum_by_name(name).unwrap_or_else(|| panic!("no metric {name}")).as_usize(),
    };
    names.iter().map(|name| sum(name)).collect()
}

#[tokio::test]
async fn a_predicate_on_dimensions_leaves_no_filter() {
    let (ctx, _file) = context(1).await;
    let sql = "SELECT time, value FROM t WHERE station = 'S05' AND time < '2024-01-01T12:00:00'";
    assert_snapshot!(explain(&ctx, sql).await, @"GridScanExec: dataset=t, chunks=2/12, selection=[time=2024-01-01T00:00:00..2024-01-01T11:00:00, station=S05], projection=[time, value]");
    let sql =
        "SELECT value FROM t WHERE date_part('hour', time) IN (0, 6, 12, 18) AND station LIKE '%1'";
    assert_snapshot!(explain(&ctx, sql).await, @"GridScanExec: dataset=t, chunks=8/12, selection=[time=2024-01-01T00:00:00|2024-01-01T06:00:00|2024-01-01T12:00:00|… (7 of 40), station=S01|S11], projection=[value]");
    assert_snapshot!(explain(&ctx, "SELECT value FROM t WHERE station = 'nowhere'").await, @"GridScanExec: dataset=t, chunks=0/12, selection=[station=none], projection=[value]");
}

#[tokio::test]
async fn predicates_over_several_dimensions_prune_chunks() {
    let (ctx, _file) = context(1).await;
    let sql = "SELECT value FROM t WHERE station = 'S00' OR time > '2024-01-02T10:00:00'";
    assert_snapshot!(explain(&ctx, sql).await, @r"
    FilterExec: station@1 = S00 OR time@0 > 1704189600000000, projection=[value@2]
      GridScanExec: dataset=t, chunks=6/12, projection=[time, station, value]
    ");
    let sql = "SELECT value FROM t WHERE value > 3 AND station = 'S00'";
    assert_snapshot!(explain(&ctx, sql).await, @r"
    FilterExec: value@0 > 3
      GridScanExec: dataset=t, chunks=4/12, selection=[station=S00], projection=[value]
    ");
}

#[tokio::test]
async fn statistics_answer_without_a_scan() {
    let (ctx, _file) = context(2).await;
    for sql in [
        "SELECT count(*) FROM t",
        "SELECT count(*), min(time), max(station), count(DISTINCT station) FROM t WHERE station > 'S03'",
        "SELECT max(time) FROM t WHERE date_part('hour', time) = 3",
    ] {
        let plan = explain(&ctx, sql).await;
        assert!(
            plan.contains("PlaceholderRowExec") && !plan.contains("GridScanExec"),
            "{sql}\n{plan}"
        );
    }
}

#[tokio::test]
async fn limits_stop_reading() {
    let (ctx, _file) = context(1).await;
    assert_snapshot!(explain(&ctx, "SELECT * FROM t LIMIT 45").await, @"GridScanExec: dataset=t, chunks=2/12, projection=[time, station, value], limit=45");
    let counted =
        metrics(&ctx, "SELECT * FROM t LIMIT 45", &["output_rows", "chunks_read", "bytes_read"])
            .await;
    assert_eq!(counted, [45, 2, 320]);
}

#[tokio::test]
async fn a_box_reads_exactly_its_chunks() {
    let names = ["output_rows", "chunks_read", "bytes_read", "bytes_decoded", "cells_skipped"];
    for partitions in [1, 3] {
        let (ctx, _file) = context(partitions).await;
        let boxed = "SELECT time, station, value FROM t
            WHERE time BETWEEN '2024-01-01T08:00:00' AND '2024-01-01T11:00:00' AND station IN ('S03', 'S04')";
        assert_eq!(metrics(&ctx, boxed, &names).await, [8, 4, 640, 640, 152]);
        let all = "SELECT * FROM t";
        assert_eq!(metrics(&ctx, all, &names).await, [480, 12, 1920, 1920, 0]);
        let dimensions_only = "SELECT time, station FROM t WHERE station <> 'S00'";
        assert_eq!(metrics(&ctx, dimensions_only, &names).await, [440, 0, 0, 0, 40]);
    }
}

#[tokio::test]
async fn chunks_pruned_are_shown() {
    let (ctx, _file) = context(2).await;
    let sql = "EXPLAIN ANALYZE SELECT value FROM t WHERE station = 'S07'";
    let batches = ctx.sql(sql).await.unwrap().collect().await.unwrap();
    let text = arrow::util::pretty::pretty_format_batches(&batches).unwrap().to_string();
    assert!(text.contains("chunks_pruned_selection=12 total → 4 matched"), "{text}");
    assert!(text.contains("chunks_pruned_zone_map=4 total → 4 matched"), "{text}");
    assert!(text.contains("time_decode="), "{text}");
}

/// A scan has the target number of partitions, but at most one per chunk.
#[tokio::test]
async fn partitions_are_slabs() {
    for (partitions, expected) in [(1, 1), (4, 4), (100, 12)] {
        let (ctx, _file) = context(partitions).await;
        let plan = plan(&ctx, "SELECT value FROM t").await;
        assert_eq!(plan.properties().output_partitioning().partition_count(), expected);
    }
}

/// Small chunks are joined into batches, and large ones are cut close to the batch size.
#[tokio::test]
async fn batches_are_near_the_batch_size() {
    let file = file();
    for batch_size in [7, 64, 100, 8192] {
        let ctx = session(1, batch_size);
        ctx.register_array("t", file.location(), ArrayOptions::default().with_dataset("t"))
            .await
            .unwrap();
        let batches = ctx.sql("SELECT * FROM t").await.unwrap().collect().await.unwrap();
        let (last, full) = batches.split_last().unwrap();
        assert!(full.iter().all(|batch| batch.num_rows() <= batch_size));
        assert!(full.iter().all(|batch| 2 * batch.num_rows() >= batch_size), "{batch_size}");
        assert!(last.num_rows() <= batch_size);
    }
}

/// An aggregation or window that runs over the rows of an array tells why, at its scan.
#[tokio::test]
async fn scans_show_why_their_rows_are_needed() {
    let file = file();
    let ctx = reducing(2, 8192);
    let options = ArrayOptions::default().with_dataset("t");
    ctx.register_array("t", file.location(), options).await.unwrap();
    let window = |over: &str| format!("SELECT sum(value) OVER ({over} ROWS 1 PRECEDING) FROM t");
    let cases = [
        ("SELECT value, count(*) FROM t GROUP BY value", "the key value depends on a variable"),
        (
            "SELECT count(*) FROM t GROUP BY concat(station, time)",
            "the key concat(t.station,t.time) depends on several dimensions",
        ),
        (
            "SELECT 1 / (date_part('hour', time) - 3) AS k, avg(value) FROM t GROUP BY k",
            "the keys have too many groups, or fail on a label",
        ),
        (
            "SELECT time, avg(value), array_agg(value) FROM t GROUP BY time",
            "no reduction computes array_agg(t.value) by these keys",
        ),
        (
            "SELECT time, sum(value * random()) FROM t GROUP BY time",
            "a function such as random() has another value for each row",
        ),
        (
            "SELECT time, station, avg(value) FROM t GROUP BY ROLLUP (time, station)",
            "grouping sets are several aggregations of one row",
        ),
        (
            &window("PARTITION BY station ORDER BY value"),
            "ORDER BY of the window is no single dimension",
        ),
        (
            &window("PARTITION BY value ORDER BY time"),
            "PARTITION BY has a key of no single dimension",
        ),
        (&window("ORDER BY time"), "partitions of the window have several labels of station"),
        (
            &window("PARTITION BY station ORDER BY date_part('hour', time)"),
            "the window needs another order of rows than that of time",
        ),
        (
            "SELECT sum(value) OVER (PARTITION BY station ORDER BY time ROWS 1 PRECEDING) FROM t WHERE value > 3",
            "a condition leaves out rows below the window",
        ),
    ];
    for (sql, reason) in cases {
        let text = explain(&ctx, sql).await;
        assert!(text.contains(&format!(", rows because {reason}")), "{sql}\n{text}");
        assert_eq!(text.matches("rows because").count(), 1, "{sql}\n{text}");
    }
    let means = "SELECT time, station, avg(value) FROM t GROUP BY time, station";
    let rolling = window("PARTITION BY station ORDER BY time");
    for sql in
        [means, &rolling, "SELECT value FROM t", "SELECT avg(value) FROM (SELECT * FROM t LIMIT 3)"]
    {
        assert!(!explain(&ctx, sql).await.contains("because"), "{sql}");
    }
    query(&ctx, "SET gridfusion.reduce_memory = 1000").await.unwrap();
    let text = explain(&ctx, means).await;
    assert!(text.contains("rows because 480 groups take "), "{text}");
    assert!(text.contains(" bytes, and gridfusion.reduce_memory is 1000\n"), "{text}");
    let text = explain(&ctx, &rolling).await;
    assert!(text.contains("rows because the lines of the window take "), "{text}");
}
