//! The plans of joins, and what they read.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringViewArray};
use datafusion::physical_plan::{collect, displayable};
use datafusion::prelude::SessionContext;
use gridfusion::exec::GridScanExec;
use gridfusion::{ArrayOpener, ArrayOptions, GridfusionSessionContextExt};
use serde_json::json;

use crate::codec::sent::{leaves, plan};
use crate::codec::shapes::{metric, tables};
use crate::support::{
    F64, I32, Layout, TempTet, TestDataset, query, reducing, rows_from, sorted_rows_from, tet_bytes,
};

/// The arrays of [`tables`], and a table of regions.
async fn with_regions() -> SessionContext {
    let ctx = tables().await;
    let stations = ["Bergen", "Oslo", "Oslo", "Nowhere"];
    let regions = ["west", "east", "capital", "sea"];
    let ranks = [1, 2, 3, 4];
    let batch = RecordBatch::try_from_iter([
        ("station", Arc::new(StringViewArray::from_iter_values(stations)) as ArrayRef),
        ("region", Arc::new(StringViewArray::from_iter_values(regions))),
        ("rank", Arc::new(Int64Array::from_iter_values(ranks))),
    ]);
    ctx.register_batch("regions", batch.unwrap()).unwrap();
    ctx
}

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
async fn arrays_are_reduced_below_joins() {
    let ctx = with_regions().await;
    let sql = "SELECT r.region, count(*), max(t.value) FROM temperature t JOIN regions r ON t.station = r.station GROUP BY r.region";
    let plan = text(&ctx, sql).await;
    let reduce = "GridReduceExec: mode=partial, gby=[station], aggr=[count(Int64(1)), max(t.value)], tier=dense, groups=6";
    assert!(plan.contains(reduce) && plan.contains("HashJoinExec"), "{plan}");
    assert!(!plan.contains("mode=Partial"), "{plan}");
    let [with, without] = both(&ctx, "eager_aggregation", sql).await;
    assert_eq!(with, without);
    // Both regions of Oslo count its cells, and a station without a match counts nothing.
    let counts: Vec<&str> = with.iter().map(|row| row[1].as_str()).collect();
    assert_eq!(counts, ["1440"; 3], "{with:?}");
    for (sql, is_below) in [
        (
            "SELECT r.region, avg(t.value - r.rank * 0.5) FROM temperature t JOIN regions r USING (station) GROUP BY 1",
            true,
        ),
        (
            "SELECT r.region, count(t.value) FROM regions r LEFT JOIN temperature t USING (station) GROUP BY 1",
            true,
        ),
        ("SELECT max(value) FROM temperature WHERE station IN (SELECT station FROM regions)", true),
        (
            "SELECT max(value) FROM temperature WHERE station NOT IN (SELECT station FROM regions)",
            true,
        ),
        (
            "SELECT max(t.value) FROM temperature t JOIN regions r ON t.station = r.station AND random() < r.rank + date_part('hour', t.time)",
            false,
        ),
        // Every cell has a state of its own.
        (
            "SELECT time, r.region, max(t.value) FROM temperature t JOIN regions r USING (station) GROUP BY 1, 2",
            false,
        ),
        (
            "SELECT r.region, max(t.value - r.rank) FROM temperature t JOIN regions r USING (station) GROUP BY 1",
            false,
        ),
        (
            "SELECT r.region, max(t.value - r.rank * 0.5) FROM temperature t JOIN regions r USING (station) GROUP BY 1",
            true,
        ),
        (
            "SELECT r.region, max(abs(t.value - r.rank * 0.5)) AS most FROM temperature t JOIN regions r USING (station) GROUP BY 1 HAVING max(abs(t.value - r.rank * 0.5)) > 1 ORDER BY most",
            true,
        ),
        (
            "SELECT sum(t.value * (r.rank * 0.5)) / sum(r.rank), max(r.region) FROM temperature t JOIN regions r USING (station)",
            true,
        ),
        ("SELECT stddev(r.rank) FROM temperature t JOIN regions r USING (station)", false),
        (
            "SELECT r.region, array_agg(t.value ORDER BY t.time) FROM temperature t JOIN regions r USING (station) GROUP BY 1",
            false,
        ),
    ] {
        let plan = text(&ctx, sql).await;
        let is_reduced = plan.contains("GridReduceExec") && plan.contains("HashJoinExec");
        assert_eq!(is_reduced, is_below, "{sql}\n{plan}");
        let [with, without] = both(&ctx, "eager_aggregation", sql).await;
        assert_eq!(with.len(), without.len(), "{sql}");
    }
}

/// Without groups, NaN is the greatest number, wherever it is among the cells. Divisions by zero are infinite.
#[tokio::test]
async fn nan_and_infinity_are_those_of_rows() {
    let value = |cell: i32| if cell == 17 { f64::NAN } else { f64::from(cell % 7) };
    let data = (0..48).flat_map(|cell| value(cell).to_le_bytes()).collect();
    let dataset = TestDataset::new("value", F64, &[24, 2], &[6, 2], data);
    let file = TempTet::new(&tet_bytes(&[dataset], &Layout::default()));
    let ctx = reducing(2, 8192);
    let options = ArrayOptions::default().with_nan_as_null(false);
    ctx.register_array("t", file.location(), options).await.unwrap();
    query(&ctx, "CREATE TABLE s AS SELECT column1 AS k, column2 AS w, column3 AS z FROM (VALUES (0, 10.0, 0.0), (1, -3.0, 2.0)) v").await.unwrap();
    for (aggregate, is_grouped) in [
        ("max(t.value)", false),
        ("max(s.w - t.value)", false),
        ("min(s.w - t.value)", false),
        ("max(s.w - t.value)", true),
        ("max(abs(s.w - t.value))", false),
        ("max(abs(t.value - s.w))", true),
        ("max(abs(t.value * 2.0 - s.w / s.z))", true),
        ("avg((t.value - s.w) / s.z)", true),
        ("avg((t.value + 10.5 - s.w) / s.z)", true),
        ("sum((t.value - s.w) * (s.w / s.z))", false),
        ("weighted_avg((t.value - s.w) / s.z, 2 * s.w)", true),
    ] {
        let from = "t JOIN s ON t.dim_1 = s.k WHERE t.dim_0 < 8";
        let sql = match is_grouped {
            true => format!("SELECT s.k, {aggregate} FROM {from} GROUP BY s.k"),
            false => format!("SELECT {aggregate} FROM {from}"),
        };
        let [with, without] = both(&ctx, "eager_aggregation", &sql).await;
        assert_eq!(with, without, "{sql}");
    }
    let sql = "SELECT max(s.w - t.value), max(t.value) FROM t JOIN s ON t.dim_1 = s.k";
    let [with, without] = both(&ctx, "eager_aggregation", sql).await;
    assert_eq!(with, without);
    assert_eq!(with, [["NaN", "NaN"]]);
}

/// The filter of a join skips chunks of the reduction below it.
#[tokio::test]
async fn a_join_skips_chunks_of_a_reduction() {
    let ctx = with_regions().await;
    let sql = "SELECT max(t.value) FROM temperature t JOIN (SELECT min(time) AS first FROM sea) s ON date_trunc('day', t.time) = date_trunc('day', s.first)";
    let plan = plan(&ctx, sql).await.unwrap();
    let text = displayable(plan.as_ref()).indent(false).to_string();
    assert!(text.contains("GridReduceExec"), "{text}");
    let rows = collect(Arc::clone(&plan), ctx.task_ctx()).await.unwrap();
    assert_eq!(rows.iter().map(RecordBatch::num_rows).sum::<usize>(), 1);
    let read = metric(&plan, "chunks_read");
    assert!(read < 6, "{read} of 6 chunks are read: {text}");
}

#[tokio::test]
async fn arrays_are_joined_side_by_side() {
    let ctx = with_regions().await;
    // States of one array suffice, so the other one is joined with them.
    let sql = "SELECT e.value > 50 AS high, max(t.value), count(*) FROM temperature t JOIN elevation e ON t.station = e.station GROUP BY 1";
    let plan = text(&ctx, sql).await;
    assert!(plan.contains("GridReduceExec") && plan.contains("GridLookupExec"), "{plan}");
    // Both rules apply to arrays side by side that are joined with a table.
    let sql = "SELECT r.region, corr(t.value, u.value) FROM temperature t JOIN temperature u ON t.time = u.time AND t.station = u.station JOIN regions r ON t.station = r.station GROUP BY 1";
    let plan = text(&ctx, sql).await;
    assert!(
        plan.contains("dataset=temperature + temperature") && plan.contains("GridReduceExec"),
        "{plan}"
    );
    assert_eq!(rows_from(&ctx, sql).await.len(), 3);
    for (sql, is_aligned) in [
        (
            "SELECT t.time, t.station, t.value, e.value FROM temperature t JOIN elevation e ON t.station = e.station",
            true,
        ),
        (
            "SELECT t.time, t.value - e.value FROM temperature t LEFT JOIN elevation e ON t.station = e.station",
            true,
        ),
        (
            "SELECT count(*) FROM temperature t JOIN temperature u ON t.time = u.time AND t.station = u.station WHERE u.value > 3",
            true,
        ),
        (
            "SELECT t.value FROM elevation e JOIN temperature t ON t.station = e.station AND t.value < e.value",
            true,
        ),
        // The left array may have rows without a match.
        (
            "SELECT t.value FROM temperature t LEFT JOIN elevation e ON t.station = e.station AND e.value > 50",
            false,
        ),
        (
            "SELECT t.value FROM elevation t JOIN temperature e ON t.station = e.station AND t.value = e.value",
            false,
        ),
        ("SELECT count(*) FROM temperature t JOIN temperature u ON t.station = u.station", false),
    ] {
        let plan = text(&ctx, sql).await;
        let joins = plan.contains("Join") || plan.contains("GridLookup");
        assert_eq!(!joins, is_aligned, "{sql}\n{plan}");
        let [with, without] = both(&ctx, "align_joins", sql).await;
        assert!(with == without && (!is_aligned || !with.is_empty()), "{sql}");
    }
}

/// The origin of a scan of arrays side by side opens the same table again.
#[tokio::test]
async fn arrays_side_by_side_open_again() {
    let ctx = with_regions().await;
    let sql = "SELECT * FROM temperature t JOIN elevation e ON t.station = e.station";
    let plan = plan(&ctx, sql).await.unwrap();
    let scan = leaves(&plan).remove(0);
    let scan = scan.downcast_ref::<GridScanExec>().unwrap();
    let opened =
        ArrayOpener::from_session(&ctx.state()).reopen(scan.origin().unwrap()).await.unwrap();
    assert_eq!(opened.as_grid().unwrap().array().schema(), scan.array().schema());
    ctx.register_table("again", opened.into_provider()).unwrap();
    let again = "SELECT time, station, temperature, elevation FROM again";
    let joined = "SELECT t.time, t.station, t.value, e.value FROM temperature t JOIN elevation e ON t.station = e.station";
    assert_eq!(sorted_rows_from(&ctx, again).await, sorted_rows_from(&ctx, joined).await);
}

/// Coordinates of other units may have equal labels. Attributes of columns stay those of their own array.
#[tokio::test]
async fn labels_with_other_attributes_are_equal() {
    let file = |title: &str, factor: f64| {
        let labels = (0..6).flat_map(|at| f64::from(at).to_le_bytes()).collect();
        let values = (0..6).flat_map(|at| (factor * f64::from(at)).to_le_bytes()).collect();
        let metadata = json!({"dim_names": ["depth"], "attrs": {"long_name": title}});
        let datasets = [
            TestDataset::new("v", F64, &[6], &[4], values)
                .with_metadata(json!({"dim_names": ["depth"]})),
            TestDataset::new("depth", F64, &[6], &[6], labels).with_metadata(metadata),
        ];
        let layout = Layout { history_version: Some(1), ..Layout::default() };
        TempTet::new(&tet_bytes(&datasets, &layout))
    };
    let (t, p) = (file("depth of the water", 1.0), file("level", 2.0));
    let ctx = reducing(1, 8192);
    for (name, file) in [("t", &t), ("p", &p)] {
        let options = ArrayOptions::default().with_dataset("v");
        ctx.register_array(name, file.location(), options).await.unwrap();
    }
    let sql = "SELECT * FROM t JOIN p ON t.depth = p.depth";
    let frame = ctx.sql(sql).await.unwrap();
    let batches = frame.collect().await.unwrap();
    let schema = batches[0].schema();
    let names: Vec<_> =
        schema.fields().iter().filter_map(|it| it.metadata().get("long_name")).collect();
    assert_eq!(names, ["depth of the water", "level"]);
    assert!(text(&ctx, sql).await.contains("dataset=v + v"));
}

/// Rows without a match are below the join, and may be ones on which an expression fails.
#[tokio::test]
async fn expressions_that_may_fail_stay_above_joins() {
    let ctx = with_regions().await;
    for sql in [
        "SELECT r.region, sum(100 / CAST(t.value AS BIGINT)) FROM temperature t JOIN regions r USING (station) GROUP BY 1",
        "SELECT r.region, count(*) FILTER (WHERE 100 % CAST(t.value AS BIGINT) > 2) FROM temperature t JOIN regions r USING (station) GROUP BY 1",
    ] {
        let plan = text(&ctx, sql).await;
        assert!(!plan.contains("GridReduceExec"), "{sql}\n{plan}");
    }
    let infinite = "SELECT r.region, avg(t.value / (r.rank - 1.0)) AS a FROM temperature t JOIN regions r USING (station) WHERE r.region = 'west' GROUP BY 1";
    let [with, without] = both(&ctx, "eager_aggregation", infinite).await;
    assert_eq!(with, without);
}

#[tokio::test]
async fn partitions_of_windows_are_reduced() {
    let ctx = with_regions().await;
    for (sql, is_reduced) in [
        (
            "SELECT time, station, value - avg(value) OVER (PARTITION BY station) FROM temperature",
            true,
        ),
        ("SELECT value / sum(value) OVER () AS part FROM temperature WHERE value > 3", true),
        (
            "SELECT max(value) OVER (PARTITION BY station ORDER BY time ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM temperature",
            true,
        ),
        ("SELECT sum(value) OVER (PARTITION BY station ORDER BY time) FROM temperature", false),
        ("SELECT row_number() OVER (PARTITION BY station) FROM temperature", false),
        (
            "SELECT count(*) FILTER (WHERE value > 3) OVER (PARTITION BY station) FROM temperature",
            false,
        ),
        // Each cell is a partition of its own.
        ("SELECT sum(value) OVER (PARTITION BY station, time) FROM temperature", false),
        ("SELECT sum(value) OVER (PARTITION BY round(value)) FROM temperature", false),
    ] {
        let plan = text(&ctx, sql).await;
        assert_eq!(plan.contains("GridReduceExec"), is_reduced, "{sql}\n{plan}");
        assert_eq!(!plan.contains("Window"), is_reduced, "{sql}\n{plan}");
    }
    // Rows come in the order of the array.
    let sql = "SELECT time, station, count(*) OVER (PARTITION BY station) FROM temperature";
    query(&ctx, "SET datafusion.execution.target_partitions = 1").await.unwrap();
    let rows = rows_from(&ctx, sql).await;
    let times: Vec<&String> = rows.iter().map(|row| &row[0]).collect();
    assert!(rows.len() == 8640 && times.is_sorted(), "{} rows", rows.len());
    assert!(rows.iter().all(|row| row[2] == "1440"));
}

/// Times of day restart each day, so the first and the last time of a chunk do not bound them.
#[tokio::test]
async fn times_of_day_prune_no_chunks() {
    let hours = (0..24).map(|hour| hour + 20).flat_map(i32::to_le_bytes).collect();
    let metadata = json!({"dim_names": ["time"], "attrs": {"units": "hours since 2024-01-01"}});
    let values = (0..24).flat_map(|hour| f64::from(hour).to_le_bytes()).collect();
    let datasets = [
        TestDataset::new("v", F64, &[24], &[8], values)
            .with_metadata(json!({"dim_names": ["time"]})),
        TestDataset::new("time", I32, &[24], &[24], hours).with_metadata(metadata),
    ];
    let layout = Layout { history_version: Some(1), ..Layout::default() };
    let file = TempTet::new(&tet_bytes(&datasets, &layout));
    let ctx = reducing(2, 8192);
    let options = ArrayOptions::default().with_dataset("v");
    ctx.register_array("t", file.location(), options).await.unwrap();
    query(&ctx, "CREATE TABLE noon AS SELECT TIME '23:00' AS k").await.unwrap();
    for sql in [
        "SELECT value FROM t WHERE CAST(time AS TIME) = TIME '23:00' OR value < 0",
        "SELECT t.value FROM t JOIN noon ON CAST(t.time AS TIME) = noon.k",
        "SELECT sum(t.value) FROM t JOIN noon ON CAST(t.time AS TIME) = noon.k",
    ] {
        assert_eq!(rows_from(&ctx, sql).await, [["3.0"]], "{sql}");
    }
}
