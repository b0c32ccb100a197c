//! Dynamic filters, which become known while a query runs, and the chunks that they skip.

use std::sync::Arc;

use datafusion::datasource::MemTable;
use datafusion::physical_plan::metrics::MetricValue;
use datafusion::physical_plan::{ExecutionPlan, collect, displayable};
use datafusion::prelude::SessionContext;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt, IoMode};
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::{
    F32, Layout, TempTet, TestDataset, query, reducing, rows_of, session, tet_bytes,
};

const HOURS: usize = 512;
const STATIONS: usize = 256;
const EDGE: usize = 64;

/// An array of 512 hours x 256 stations in 8 x 4 chunks, with zone maps. A value is 1000 times its hour
/// plus its station; every tenth is NaN.
fn file() -> TempTet {
    let value = |hour: usize, station: usize| match (hour + station) % 10 {
        0 => f32::NAN,
        _ => (hour * 1_000 + station) as f32,
    };
    let cells = (0..HOURS).flat_map(|hour| (0..STATIONS).map(move |station| (hour, station)));
    let data = cells.flat_map(|(hour, station)| value(hour, station).to_le_bytes()).collect();
    let stations: Vec<String> = (0..STATIONS).map(|station| format!("S{station:03}")).collect();
    let values = TestDataset::new("t", F32, &[HOURS as u64, STATIONS as u64], &[64, 64], data)
        .with_metadata(json!({
            "dim_names": ["time", "station"],
            "coords": {"station": {"labels": stations}},
        }));
    let zone = |chunk: usize| {
        let (hour, station) = (chunk / 4 * EDGE, chunk % 4 * EDGE);
        let cells = (hour..hour + EDGE)
            .flat_map(|hour| (station..station + EDGE).map(move |station| value(hour, station)));
        let values: Vec<f32> = cells.clone().filter(|value| !value.is_nan()).collect();
        let hex = |value: f32| -> String {
            value.to_le_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
        };
        json!({"dataset_id": 0, "chunk_index": [chunk / 4, chunk % 4], "element_count": EDGE * EDGE,
            "null_count": EDGE * EDGE - values.len(),
            "min_le": hex(values.iter().copied().fold(f32::INFINITY, f32::min)),
            "max_le": hex(values.iter().copied().fold(f32::NEG_INFINITY, f32::max))})
    };
    let zones = json!({"version": 1, "chunks": (0..32).map(zone).collect::<Vec<Value>>()});
    let layout = Layout { history_version: Some(2), zones: Some(zones), ..Layout::default() };
    TempTet::new(&tet_bytes(&[values], &layout))
}

/// Registers the file as the table `t`, and a table of stations, three of which are in Iceland.
async fn register(ctx: &SessionContext, file: &TempTet, options: ArrayOptions) {
    ctx.register_array("t", file.location(), options.with_dataset("t")).await.unwrap();
    let stations = "SELECT * FROM (VALUES ('S003', 'IS'), ('S005', 'IS'), ('S070', 'IS'), ('S100', 'NO'), \
                    ('S255', 'FI'), (NULL, 'XX')) AS stations(station, country)";
    let batches = query(ctx, stations).await.unwrap();
    let table = MemTable::try_new(batches[0].schema(), vec![batches]).unwrap();
    ctx.register_table("stations", Arc::new(table)).unwrap();
}

async fn plan(ctx: &SessionContext, sql: &str) -> Arc<dyn ExecutionPlan> {
    ctx.sql(sql).await.unwrap().create_physical_plan().await.unwrap()
}

/// A metric of the scans and reductions of a plan that has run, summed over partitions: a count, or a
/// number of pruned chunks.
pub(crate) fn metric(plan: &Arc<dyn ExecutionPlan>, name: &str) -> usize {
    let of_children: usize = plan.children().into_iter().map(|child| metric(child, name)).sum();
    let ours = [
        "GridScanExec",
        "GridReduceExec",
        "GridLookupExec",
        "GridJoinReduceExec",
        "SparseScanExec",
        "SparseAnswerExec",
    ];
    if !ours.contains(&plan.name()) {
        return of_children;
    }
    let metrics = plan.metrics().unwrap();
    let of_node = metrics.iter().map(|metric| match metric.value() {
        MetricValue::Count { name: of, count } if of == name => count.value(),
        MetricValue::OutputRows(rows) if name == "output_rows" => rows.value(),
        MetricValue::PruningMetrics { name: of, pruning_metrics } if of == name => {
            pruning_metrics.pruned()
        }
        _ => 0,
    });
    of_children + of_node.sum::<usize>()
}

/// Runs a query; returns its rows, sorted, and the metrics `names`.
async fn run<const N: usize>(
    ctx: &SessionContext,
    sql: &str,
    names: [&str; N],
) -> (Vec<Vec<String>>, [usize; N]) {
    let plan = plan(ctx, sql).await;
    let batches = collect(Arc::clone(&plan), ctx.task_ctx()).await.unwrap();
    let mut rows = rows_of(&batches);
    rows.sort();
    (rows, names.map(|name| metric(&plan, name)))
}

/// A session without reductions, reordering, and pruning by zone maps or dynamic filters.
async fn plain(file: &TempTet) -> SessionContext {
    let ctx = session(1, 8192);
    register(&ctx, file, ArrayOptions::default().with_trust_zone_maps(false)).await;
    for option in ["enable_dynamic_filter_pushdown", "enable_sort_pushdown"] {
        query(&ctx, &format!("SET datafusion.optimizer.{option} = false")).await.unwrap();
    }
    ctx
}

const READ: [&str; 3] = ["chunks_read", "chunks_pruned_dynamic_filter", "output_rows"];

#[tokio::test]
async fn a_join_reads_only_its_stations() {
    let file = file();
    let plain = plain(&file).await;
    let sql = "SELECT time, value FROM t JOIN stations USING (station) WHERE country = 'IS'";
    let (expected, all) = run(&plain, sql, READ).await;
    assert_eq!((expected.len(), all), (3 * HOURS, [32, 0, HOURS * STATIONS]));
    for partitions in [1, 3] {
        for io in [IoMode::Mmap, IoMode::Pread] {
            let ctx = session(partitions, 8192);
            register(&ctx, &file, ArrayOptions::default().with_io(io)).await;
            let (found, read) = run(&ctx, sql, READ).await;
            assert_eq!(found, expected);
            // S003 and S005 are in one column of chunks, S070 in another.
            assert_eq!(read, [16, 16, 3 * HOURS], "{partitions} partitions");
        }
    }
    // If no station matches, the join does not read the array.
    let ctx = session(1, 8192);
    register(&ctx, &file, ArrayOptions::default()).await;
    let none = "SELECT * FROM t JOIN stations USING (station) WHERE country = 'SE'";
    assert_eq!(run(&ctx, none, READ).await, (vec![], [0, 0, 0]));
    // Static predicates prune first.
    let both = "SELECT time, value FROM t JOIN stations USING (station) WHERE country = 'IS' AND time < 100";
    let (found, read) = run(&ctx, both, READ).await;
    assert_eq!((found, read), (run(&plain, both, READ).await.0, [4, 4, 300]));
}

#[tokio::test]
async fn the_best_chunks_come_first() {
    let file = file();
    let plain = plain(&file).await;
    let ctx = reducing(1, 1024);
    register(&ctx, &file, ArrayOptions::default()).await;
    for (sql, chunks) in [
        ("SELECT * FROM t ORDER BY value DESC NULLS LAST LIMIT 5", 1),
        ("SELECT * FROM t ORDER BY value LIMIT 5", 1),
        // The best chunk has 64 rows of the last hour, but a tenth of them is NULL.
        ("SELECT * FROM t WHERE value IS NOT NULL ORDER BY value DESC LIMIT 60", 2),
        // The bounds of chunks with values above 100000 do not limit their values below it.
        ("SELECT value FROM t WHERE value < 100000 ORDER BY value DESC LIMIT 5", 4),
        ("SELECT * FROM t ORDER BY station, time LIMIT 5", 1),
        ("SELECT * FROM t ORDER BY station DESC, value LIMIT 5", 1),
        (
            "SELECT time, value FROM t WHERE station = 'S070' ORDER BY value DESC NULLS LAST LIMIT 5",
            1,
        ),
    ] {
        let (found, [read]) = run(&ctx, sql, ["chunks_read"]).await;
        assert_eq!(found, run(&plain, sql, ["chunks_read"]).await.0, "{sql}");
        assert_eq!(read, chunks, "{sql}");
    }
    // With NULLs first, any NULLs are an answer, and every chunk has some.
    let (found, [read]) =
        run(&ctx, "SELECT value FROM t ORDER BY value DESC LIMIT 5", ["chunks_read"]).await;
    assert_eq!((found, read), (vec![vec!["NULL".to_owned()]; 5], 1));
}

#[tokio::test]
async fn extremes_leave_chunks_unread() {
    let file = file();
    let over_rows = session(2, 8192);
    let reduced = reducing(1, 8192);
    for ctx in [&over_rows, &reduced] {
        register(ctx, &file, ArrayOptions::default()).await;
    }
    // The selection takes a part of each chunk, so no zone map answers for a chunk.
    for (sql, expected, chunks) in [
        ("SELECT min(value) FROM t WHERE station LIKE '%1'", "1.0", 2),
        ("SELECT max(value) FROM t WHERE station LIKE '%1'", "511251.0", 1),
        ("SELECT max(value) FROM t WHERE station LIKE '%1' AND value < 200000", "198251.0", 4),
        ("SELECT min(value), max(value) FROM t WHERE station LIKE '%1'", "1.0 511251.0", 3),
    ] {
        let (found, [read]) = run(&reduced, sql, ["chunks_read"]).await;
        assert_eq!(found[0].join(" "), expected, "{sql}");
        assert!(read <= chunks, "{sql}: {read} chunks read");
        let (found, [read]) = run(&over_rows, sql, ["chunks_read"]).await;
        assert_eq!(found[0].join(" "), expected, "{sql}");
        assert!(read <= 32, "{sql}: {read} chunks read over rows");
    }
    let (_, [pruned]) =
        run(&over_rows, "SELECT min(value) FROM t", ["chunks_pruned_dynamic_filter"]).await;
    assert!(pruned > 16, "{pruned}");
}

#[tokio::test]
async fn a_reduction_skips_groups_that_a_join_drops() {
    let file = file();
    let plain = plain(&file).await;
    // Dense kernels read on from S003 to S005, because the cell in between costs less than to begin anew.
    for (aggregate, groups) in [("avg(value)", 4), ("median(value)", 3)] {
        let sql = format!(
            "SELECT station, a, n FROM stations JOIN (SELECT station, {aggregate} AS a, count(*) AS n \
             FROM t GROUP BY station) USING (station) WHERE country = 'IS'"
        );
        let expected = run(&plain, &sql, READ).await.0;
        assert_eq!(expected.len(), 3);
        for partitions in [1, 2] {
            let ctx = reducing(partitions, 8192);
            register(&ctx, &file, ArrayOptions::default()).await;
            let (found, read) = run(&ctx, &sql, READ).await;
            assert_eq!((found, read), (expected.clone(), [16, 16, groups]), "{sql}");
        }
    }
    // Other groups in the same chunks are left out, too.
    let ctx = reducing(1, 8192);
    register(&ctx, &file, ArrayOptions::default()).await;
    let by_hour = "SELECT time, n FROM (VALUES (3), (70)) AS hours(time) \
                   JOIN (SELECT time, count(value) AS n FROM t GROUP BY time) USING (time)";
    let (found, read) = run(&ctx, by_hour, READ).await;
    assert_eq!((found.len(), read), (2, [8, 24, 2]));
}

/// A hash join above a lookup skips chunks as one above a scan does.
#[tokio::test]
async fn joins_above_lookups_skip_chunks() {
    let file = file();
    let sql = "SELECT t.time, t.value, country, tag FROM t JOIN stations ON t.station = stations.station \
               JOIN tags ON t.time = tags.hour";
    let mut answers = vec![];
    for lookups in [true, false] {
        let ctx = reducing(2, 8192);
        register(&ctx, &file, ArrayOptions::default()).await;
        let tags = "CREATE TABLE tags AS SELECT * FROM (VALUES (5, 'a'), (6, 'b')) AS q(hour, tag)";
        query(&ctx, tags).await.unwrap();
        query(&ctx, &format!("SET gridfusion.optimizer.enable_lookup_joins = {lookups}"))
            .await
            .unwrap();
        let shown = displayable(plan(&ctx, sql).await.as_ref()).indent(false).to_string();
        let has = |node: &str| shown.contains(node);
        assert!(has("HashJoinExec") && has("GridLookupExec") == lookups, "{shown}");
        let names = ["chunks_read", "chunks_pruned_dynamic_filter", "bytes_read"];
        let (rows, read) = run(&ctx, sql, names).await;
        // Two hours of one row of chunks, in which three of four have a station.
        assert_eq!((rows.len(), read), (10, [3, 29, 3 * EDGE * EDGE * 4]), "{shown}");
        answers.push(rows);
    }
    assert_eq!(answers[0], answers[1]);
}

#[tokio::test]
async fn plans_show_what_was_pushed_down() {
    let file = file();
    let ctx = reducing(2, 8192);
    register(&ctx, &file, ArrayOptions::default()).await;
    let shown = async |sql| displayable(plan(&ctx, sql).await.as_ref()).indent(false).to_string();
    assert_snapshot!(shown("SELECT value FROM t ORDER BY value DESC LIMIT 5").await, @r"
    SortPreservingMergeExec: [value@0 DESC], fetch=5
      SortExec: TopK(fetch=5), expr=[value@0 DESC], preserve_partitioning=[true]
        GridScanExec: dataset=t, chunks=32/32, projection=[value], filters=[DynamicFilter [ empty ]]
    ");
    assert_snapshot!(shown("SELECT value FROM t JOIN stations USING (station) WHERE country = 'IS'").await, @r"
    GridLookupExec: join_type=Inner, on=[(CAST(stations.station AS Utf8View)@1, station@0)], dataset=t, chunks=32/32, projection=[value]
      CoalescePartitionsExec
        ProjectionExec: expr=[station@0 as station, CAST(station@0 AS Utf8View) as CAST(stations.station AS Utf8View)]
          RepartitionExec: partitioning=RoundRobinBatch(2), input_partitions=1
            FilterExec: country@1 = IS, projection=[station@0]
              DataSourceExec: partitions=1, partition_sizes=[1]
    ");
    query(&ctx, "SET gridfusion.optimizer.enable_lookup_joins = false").await.unwrap();
    assert_snapshot!(shown("SELECT value FROM t JOIN stations USING (station) WHERE country = 'IS'").await, @r"
    HashJoinExec: mode=CollectLeft, join_type=Inner, on=[(CAST(stations.station AS Utf8View)@1, station@0)], projection=[value@3]
      CoalescePartitionsExec
        ProjectionExec: expr=[station@0 as station, CAST(station@0 AS Utf8View) as CAST(stations.station AS Utf8View)]
          RepartitionExec: partitioning=RoundRobinBatch(2), input_partitions=1
            FilterExec: country@1 = IS, projection=[station@0]
              DataSourceExec: partitions=1, partition_sizes=[1]
      GridScanExec: dataset=t, chunks=32/32, projection=[station, value], filters=[DynamicFilter [ empty ]]
    ");
    query(&ctx, "SET gridfusion.optimizer.enable_lookup_joins = true").await.unwrap();
    assert_snapshot!(shown("SELECT a FROM stations JOIN (SELECT station, avg(value) AS a FROM t GROUP BY station) USING (station)").await, @r"
    HashJoinExec: mode=CollectLeft, join_type=Inner, on=[(CAST(stations.station AS Utf8View)@1, station@0)], projection=[a@3]
      ProjectionExec: expr=[station@0 as station, CAST(station@0 AS Utf8View) as CAST(stations.station AS Utf8View)]
        DataSourceExec: partitions=1, partition_sizes=[1]
      ProjectionExec: expr=[station@0 as station, avg(t.value)@1 as a]
        GridReduceExec: mode=whole, gby=[station], aggr=[avg(t.value)], tier=dense, groups=256, dataset=t, chunks=32/32, filters=[DynamicFilter [ empty ]]
    ");
    // The limit applies to rows before any filter, so the scan takes no dynamic filter.
    assert_snapshot!(shown("SELECT value FROM (SELECT * FROM t LIMIT 100) JOIN stations USING (station)").await, @r"
    HashJoinExec: mode=CollectLeft, join_type=Inner, on=[(CAST(stations.station AS Utf8View)@1, station@0)], projection=[value@3]
      ProjectionExec: expr=[station@0 as station, CAST(station@0 AS Utf8View) as CAST(stations.station AS Utf8View)]
        DataSourceExec: partitions=1, partition_sizes=[1]
      GridScanExec: dataset=t, chunks=1/32, projection=[station, value], limit=100
    ");
}

#[tokio::test]
async fn ranges_of_labels_spare_a_repartition() {
    let file = file();
    let ctx = session(4, 8192);
    register(&ctx, &file, ArrayOptions::default()).await;
    let shown = async |sql| displayable(plan(&ctx, sql).await.as_ref()).indent(false).to_string();
    let by_hour = "SELECT time, array_agg(value) FROM t WHERE station < 'S064' GROUP BY time";
    assert_snapshot!(shown(by_hour).await, @r"
    AggregateExec: mode=SinglePartitioned, gby=[time@0 as time], aggr=[array_agg(t.value)], ordering_mode=Sorted
      GridScanExec: dataset=t, chunks=8/32, selection=[station=S000..S063], projection=[time, value]
    ");
    // Every partition has every station.
    assert_snapshot!(shown("SELECT station, array_agg(value) FROM t GROUP BY station").await, @r"
    AggregateExec: mode=FinalPartitioned, gby=[station@0 as station], aggr=[array_agg(t.value)]
      RepartitionExec: partitioning=Hash([station@0], 4), input_partitions=4
        AggregateExec: mode=Partial, gby=[station@0 as station], aggr=[array_agg(t.value)]
          GridScanExec: dataset=t, chunks=32/32, projection=[station, value]
    ");
}
