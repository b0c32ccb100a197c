//! Plans of queries on workers, their answers, and the metrics of all workers together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::physical_plan::{ExecutionPlan, collect, displayable};
use datafusion::prelude::SessionContext;
use gridfusion::GridTable;
use gridfusion_distributed::{Cluster, WorkerServer, with_worker_metrics};

use super::workers::{Workers, plan, query_on_workers};
use crate::codec::shapes::{SHAPES, metric, tables};
use crate::joins::join_reduce::{MEANS, grid};
use crate::reduce::random::agree;
use crate::support::{cell, query, rows_of, sorted_rows_from};

fn text(plan: &Arc<dyn ExecutionPlan>) -> String {
    displayable(plan.as_ref()).indent(true).to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queries_of_every_shape_run_on_workers() {
    let ctx = tables().await;
    let mut distributed = 0;
    for count in 1..=3 {
        let workers = Workers::start(count, &ctx).await;
        let coordinator = workers.coordinate(&ctx);
        for &(sql, keys) in SHAPES {
            let plan = plan(&coordinator, sql).await;
            let plan = plan.unwrap_or_else(|error| panic!("{sql}: {error}"));
            distributed += usize::from(text(&plan).contains("DistributedExec"));
            let found = collect(plan, coordinator.task_ctx()).await;
            let rows = agree(found, query(&ctx, sql).await, keys, 100.0);
            assert!(rows.unwrap_or_else(|why| panic!("{count}: {sql}: {why}")) > 0, "{sql}");
        }
    }
    // The other queries have a scan of one partition only, or statistics give the answer.
    assert!(distributed > 2 * SHAPES.len(), "{distributed}");
}

#[tokio::test]
async fn rows_do_not_multiply() {
    let ctx = tables().await;
    for table in ["temperature", "sea", "air", "ships", "overlap", "years"] {
        // Filters that statistics cannot answer.
        for sql in [
            format!("SELECT count(*) FROM {table}"),
            format!("SELECT count(*) FROM (SELECT * FROM {table} ORDER BY 1)"),
            format!("SELECT count(*) FROM (SELECT DISTINCT * FROM {table})"),
            format!("SELECT count(*) FROM {table} a, (SELECT 1 AS x UNION ALL SELECT 2) b"),
        ] {
            let expected = cell(&ctx, &sql).await;
            for workers in [1, 2, 3] {
                let found = query_on_workers(&ctx, workers, &sql).await.unwrap();
                assert_eq!(rows_of(&found), [[expected.clone()]], "{workers}: {sql}");
            }
        }
    }
}

/// A shuffle merges the rows of several tasks as they come, so no node above relies on their order.
#[tokio::test]
async fn shuffled_rows_are_sorted_again() {
    let ctx = tables().await;
    let of = "FROM temperature t JOIN (VALUES ('a', 'Bergen'), ('b', 'Oslo'), ('a', 'Tromso')) s (name, station) ON t.station = s.station";
    let mut shuffles = 0;
    for sql in [
        format!(
            "SELECT t.time, s.name, count(DISTINCT t.value) {of} GROUP BY s.name, t.time ORDER BY t.time"
        ),
        format!(
            "SELECT t.time, sum(t.value) OVER (PARTITION BY s.name, t.time) {of} ORDER BY t.time"
        ),
        format!(
            "SELECT t.time, count(DISTINCT t.value) {of} GROUP BY t.time ORDER BY t.time LIMIT 7"
        ),
        format!(
            "SELECT t.time, count(DISTINCT t.value) AS c {of} GROUP BY t.time HAVING count(DISTINCT t.value) > 0 ORDER BY t.time LIMIT 7"
        ),
        format!(
            "SELECT a.time, a.d FROM (SELECT t.time, count(DISTINCT t.value) AS d {of} GROUP BY t.time) a \
             JOIN (VALUES (2), (3)) e (v) ON a.d = e.v ORDER BY a.time LIMIT 4"
        ),
        format!(
            "SELECT t.time, nth_value(t.value, 2 ORDER BY t.value) {of} GROUP BY t.time ORDER BY t.time"
        ),
    ] {
        let expected = sorted_rows_from(&ctx, &sql).await;
        for count in [2, 3] {
            let workers = Workers::start(count, &ctx).await;
            let coordinator = workers.coordinate(&ctx);
            let plan = plan(&coordinator, &sql).await.unwrap();
            plan.apply(|node| {
                if node.name() == "NetworkShuffleExec" {
                    shuffles += 1;
                    assert!(
                        node.properties().eq_properties.oeq_class().is_empty(),
                        "{}",
                        text(&plan)
                    );
                }
                Ok(TreeNodeRecursion::Continue)
            })
            .unwrap();
            let found = rows_of(&collect(plan, coordinator.task_ctx()).await.unwrap());
            assert!(found.is_sorted_by_key(|row| row[0].clone()), "{count}: {sql}");
            let mut sorted = found;
            sorted.sort();
            assert_eq!(sorted, expected, "{count}: {sql}");
        }
    }
    assert!(shuffles > 6, "{shuffles}");
}

/// The shapes of plans: partial and whole reductions, scans by ranges of chunks, TopK, sparse tiles.
#[tokio::test]
async fn plans_show_stages_and_tasks() {
    let ctx = tables().await;
    let workers = Workers::start(2, &ctx).await;
    let ctx = workers.coordinate(&ctx);
    let mut shown = String::new();
    for sql in [
        "SELECT station, avg(value) FROM temperature GROUP BY station",
        "SELECT date_trunc('day', time) AS day, max(value) FROM temperature GROUP BY day",
        "SELECT * FROM temperature ORDER BY time, station",
        "SELECT * FROM temperature ORDER BY value LIMIT 3",
        "SELECT ship, count(*) FROM ships GROUP BY ship",
    ] {
        let plan = plan(&ctx, sql).await.unwrap();
        let lines = text(&plan).lines().map(|line| format!("    {line}\n")).collect::<String>();
        shown += &format!("{sql}\n{lines}");
    }
    insta::assert_snapshot!(shown, @r#"
    SELECT station, avg(value) FROM temperature GROUP BY station
        DistributedExec
          CoalescePartitionsExec
            [Stage 2] => NetworkCoalesceExec: output_partitions=6, input_tasks=2
              AggregateExec: mode=FinalPartitioned, gby=[station@0 as station], aggr=[avg(temperature.value)]
                [Stage 1] => NetworkShuffleExec: output_partitions=3, input_tasks=2
                  RepartitionExec: partitioning=Hash([station@0], 6), input_partitions=3
                    DistributedLeafExec: GridReduceExec: mode=partial, gby=[station], aggr=[avg(temperature.value)], tier=dense, groups=6, dataset=temperature, chunks=6/6
    SELECT date_trunc('day', time) AS day, max(value) FROM temperature GROUP BY day
        DistributedExec
          CoalescePartitionsExec
            [Stage 1] => NetworkCoalesceExec: output_partitions=6, input_tasks=2
              ProjectionExec: expr=[date_trunc(Utf8("day"),temperature.time)@0 as day, max(temperature.value)@1 as max(temperature.value)]
                DistributedLeafExec: GridReduceExec: mode=whole, gby=[date_trunc(Utf8("day"),temperature.time)], aggr=[max(temperature.value)], tier=dense, groups=60, dataset=temperature, chunks=6/6
    SELECT * FROM temperature ORDER BY time, station
        DistributedExec
          SortPreservingMergeExec: [time@0 ASC NULLS LAST, station@1 ASC NULLS LAST]
            [Stage 1] => NetworkCoalesceExec: output_partitions=6, input_tasks=2
              DistributedLeafExec: GridScanExec: dataset=temperature, chunks=6/6, projection=[time, station, value]
    SELECT * FROM temperature ORDER BY value LIMIT 3
        DistributedExec
          SortPreservingMergeExec: [value@2 ASC NULLS LAST], fetch=3
            [Stage 1] => NetworkCoalesceExec: output_partitions=6, input_tasks=2
              SortExec: TopK(fetch=3), expr=[value@2 ASC NULLS LAST], preserve_partitioning=[true]
                DistributedLeafExec: GridScanExec: dataset=temperature, chunks=6/6, projection=[time, station, value], filters=[DynamicFilter [ empty ]]
    SELECT ship, count(*) FROM ships GROUP BY ship
        ProjectionExec: expr=[ship@0 as ship, count(Int64(1))@1 as count(*)]
          AggregateExec: mode=FinalPartitioned, gby=[ship@0 as ship], aggr=[count(Int64(1))]
            RepartitionExec: partitioning=Hash([ship@0], 3), input_partitions=3
              AggregateExec: mode=Partial, gby=[ship@0 as ship], aggr=[count(Int64(1))]
                RepartitionExec: partitioning=RoundRobinBatch(3), input_partitions=1
                  SparseScanExec: array=ships, fragments=3/3, tiles=33/33, merged_tiles=10, projection=[ship]
    "#);
}

/// datafusion-distributed cannot divide partitions that are declared as ranges of labels, so they are not.
#[tokio::test]
async fn ranges_of_labels_are_not_declared() {
    let ctx = tables().await;
    // The scan is not divided, so its own partitions are those of the stage.
    let cluster = Cluster::new(["http://127.0.0.1:1"]).unwrap().with_bytes_per_task(1 << 30);
    let state = SessionStateBuilder::new_from_existing(ctx.state());
    let coordinator = SessionContext::new_with_state(cluster.coordinate(state).unwrap().build());
    let sql = "SELECT * FROM temperature ORDER BY time, station";
    assert!(plan(&coordinator, sql).await.is_ok());
    query(&coordinator, "SET gridfusion.declare_range = true").await.unwrap();
    let error = plan(&coordinator, sql).await.map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("range partitioned data is not supported"), "{error}");
}

#[tokio::test]
async fn metrics_of_workers_add_up() {
    let ctx = tables().await;
    let workers = Workers::start(3, &ctx).await;
    let coordinator = workers.coordinate(&ctx);
    for sql in [
        "SELECT station, avg(value) FROM temperature WHERE time < '2024-02-01' GROUP BY station",
        "SELECT date_trunc('month', time) AS m, avg(value) FROM temperature GROUP BY m",
        "SELECT * FROM temperature WHERE station = 'Bergen'",
        "SELECT * FROM ships WHERE lat BETWEEN 55 AND 60",
    ] {
        let counts = async |ctx: &SessionContext| -> Result<Vec<usize>> {
            let plan = plan(ctx, sql).await?;
            collect(Arc::clone(&plan), ctx.task_ctx()).await?;
            let plan = with_worker_metrics(plan).await?;
            let names = ["chunks_read", "tiles_read", "chunks_pruned_selection", "bytes_read"];
            Ok(names.iter().map(|name| metric(&plan, name)).collect())
        };
        let (one, many) = (counts(&ctx).await.unwrap(), counts(&coordinator).await.unwrap());
        assert_eq!(one, many, "{sql}");
        assert!(one[0] + one[1] > 0, "{sql}");
    }
    let analyzed = query(
        &coordinator,
        "EXPLAIN ANALYZE SELECT station, avg(value) FROM temperature GROUP BY station",
    )
    .await;
    let analyzed = rows_of(&analyzed.unwrap()).concat().join(" ");
    assert!(analyzed.contains("chunks_read=6") && analyzed.contains("Stage 1"), "{analyzed}");
}

/// Workers share the chunks of a join. Each gets all rows that it looks up, and none hashes cells.
#[tokio::test]
async fn joins_that_look_up_rows_are_shared() {
    let (ctx, _file) = grid().await;
    let on = "ON t.lat = w.lat AND t.lon = w.lon";
    let queries = [
        (MEANS.to_owned(), "GridJoinReduceExec: mode=whole"),
        (
            format!(
                "SELECT w.region, sum(t.value * w.part), count(*) FROM t JOIN w {on} GROUP BY w.region"
            ),
            "GridJoinReduceExec: mode=partial",
        ),
        (format!("SELECT t.time, t.value, w.region FROM t JOIN w {on}"), "GridLookupExec"),
        (format!("SELECT t.time, t.value, w.region FROM t LEFT JOIN w {on}"), "GridLookupExec"),
        (
            "SELECT t.time, t.value FROM t WHERE t.lat NOT IN (SELECT lat FROM w WHERE lat > 0)"
                .to_owned(),
            "GridLookupExec: join_type=RightAnti",
        ),
        (
            format!(
                "SELECT a.time, a.mean, b.region FROM (SELECT t.time, w.region, avg(t.value) AS mean FROM t JOIN w {on} \
                 GROUP BY t.time, w.region) a JOIN w b ON a.region = b.region"
            ),
            "GridJoinReduceExec",
        ),
        (
            format!(
                "SELECT t.time, t.value FROM t JOIN w {on} UNION ALL SELECT t.lat, t.value FROM t JOIN w {on}"
            ),
            "GridLookupExec",
        ),
        // A limit of the other side is one of all tasks together.
        (
            format!(
                "SELECT count(*) FROM (SELECT w.region, sum(t.value) AS s FROM t JOIN (SELECT 'a' AS region, lat, lon FROM w \
                 WHERE lat = 0 UNION ALL SELECT 'b', lat, lon FROM w WHERE lat = 0 LIMIT 1) w {on} GROUP BY w.region) WHERE s > 0"
            ),
            "JoinShareExec",
        ),
    ];
    let counts =
        async |ctx: &SessionContext, sql: &str| -> Result<(Vec<Vec<String>>, Vec<usize>)> {
            let plan = plan(ctx, sql).await?;
            let mut rows = rows_of(&collect(Arc::clone(&plan), ctx.task_ctx()).await?);
            rows.sort();
            let plan = with_worker_metrics(plan).await?;
            Ok((rows, vec![metric(&plan, "chunks_read"), metric(&plan, "bytes_read")]))
        };
    for count in 1..=3 {
        let workers = Workers::start(count, &ctx).await;
        let coordinator = workers.coordinate(&ctx);
        for (sql, node) in &queries {
            let shown = text(&plan(&coordinator, sql).await.unwrap());
            assert!(shown.contains(node), "{count}: {sql}: {shown}");
            // Each input of a union has a task of its own, and divides no join.
            let is_shared = shown.contains("DistributedLeafExec: JoinShareExec");
            assert!(is_shared || shown.contains("DistributedUnionExec"), "{count}: {sql}: {shown}");
            let (one, many) = (counts(&ctx, sql).await, counts(&coordinator, sql).await);
            let (one, many) = (one.unwrap(), many.unwrap_or_else(|error| panic!("{sql}: {error}")));
            assert_eq!(one.0, many.0, "{count}: {sql}");
            // Tasks below a limit may end before they have sent what they measured.
            assert!(one.1 == many.1 || sql.contains("LIMIT"), "{count}: {sql}");
        }
    }
    let workers = Workers::start(2, &ctx).await;
    let coordinator = workers.coordinate(&ctx);
    let analyzed = query(&coordinator, &format!("EXPLAIN ANALYZE {MEANS}")).await.unwrap();
    let analyzed = rows_of(&analyzed).concat().join(" ");
    assert!(analyzed.contains("chunks_read=") && analyzed.contains("matrices="), "{analyzed}");
    // More partitions than chunks: the rows are dealt to the others just before all are merged.
    query(&coordinator, "SET datafusion.execution.target_partitions = 9").await.unwrap();
    for (sql, _) in &queries {
        let (one, many) = (counts(&ctx, sql).await, counts(&coordinator, sql).await);
        assert_eq!(
            one.unwrap().0,
            many.unwrap_or_else(|error| panic!("{sql}: {error}")).0,
            "{sql}"
        );
    }
}

/// Joins of queries that stay in the coordinator are those of one process. So are joins with more rows than each process should
/// hold.
#[tokio::test]
async fn joins_that_stay_are_those_of_one_process() {
    let (ctx, _file) = grid().await;
    let workers = Workers::start(2, &ctx).await;
    let state = SessionStateBuilder::new_from_existing(ctx.state());
    let small = workers.cluster().with_bytes_per_task(1 << 40).coordinate(state).unwrap();
    let small = SessionContext::new_with_state(small.build());
    let limited = workers.coordinate(&ctx);
    // Five rows of 24 bytes do not fit, and a place for each of six labels in two partitions does.
    query(&limited, "SET gridfusion.reduce_memory = 100").await.unwrap();
    let by_lat = "SELECT t.time, t.value, w.region FROM t JOIN w ON t.lat = w.lat";
    for (coordinator, sql, node) in
        [(&small, MEANS, "GridJoinReduceExec"), (&limited, by_lat, "GridLookupExec")]
    {
        let plan = plan(coordinator, sql).await.unwrap();
        let shown = text(&plan);
        assert!(shown.contains(node), "{sql}: {shown}");
        for other in ["JoinShareExec", "BroadcastExec", "DistributedExec"] {
            assert!(!shown.contains(other), "{sql}: {shown}");
        }
        let mut rows = rows_of(&collect(plan, coordinator.task_ctx()).await.unwrap());
        rows.sort();
        assert_eq!(rows, sorted_rows_from(&ctx, sql).await, "{sql}");
    }
}

/// A scan skips chunks by the filter of an operator in the same stage.
#[tokio::test]
async fn dynamic_filters_skip_chunks_on_workers() {
    let ctx = tables().await;
    let workers = Workers::start(2, &ctx).await;
    let coordinator = workers.coordinate(&ctx);
    let sql = "SELECT * FROM temperature ORDER BY value, time, station LIMIT 2";
    let plan = plan(&coordinator, sql).await.unwrap();
    let rows = collect(Arc::clone(&plan), coordinator.task_ctx()).await.unwrap();
    assert_eq!(rows_of(&rows), rows_of(&query(&ctx, sql).await.unwrap()));
    let plan = with_worker_metrics(plan).await.unwrap();
    let [read, pruned] =
        ["chunks_read", "chunks_pruned_dynamic_filter"].map(|name| metric(&plan, name));
    assert!(pruned > 0 && read + pruned == 6, "{read} and {pruned} of 6 chunks");
}

/// Two tasks among three workers: the same two get them each time.
#[tokio::test]
async fn equal_regions_go_to_equal_workers() {
    let ctx = tables().await;
    let tasks: [Arc<AtomicUsize>; 3] = Default::default();
    let counting = |tasks: &Arc<AtomicUsize>| {
        let tasks = Arc::clone(tasks);
        WorkerServer::default().without_token().with_session(move |session| {
            tasks.fetch_add(1, Ordering::Relaxed);
            session
        })
    };
    let workers = Workers::of(tasks.iter().map(counting).collect()).await;
    // The scan decodes 172,800 bytes.
    let cluster = workers.cluster().with_bytes_per_task(100_000);
    let state = SessionStateBuilder::new_from_existing(ctx.state());
    let coordinator = SessionContext::new_with_state(cluster.coordinate(state).unwrap().build());
    for _ in 0..10 {
        query(&coordinator, "SELECT * FROM temperature ORDER BY time, station").await.unwrap();
    }
    let mut counts = tasks.map(|tasks| tasks.load(Ordering::Relaxed));
    counts.sort_unstable();
    assert_eq!(counts, [0, 10, 10]);
}

/// Parquet files are read by workers, too, and joined there. `COPY` writes in the coordinator.
#[tokio::test]
async fn parquet_files_in_the_same_query() {
    let ctx = tables().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cells.parquet");
    let path = path.to_str().unwrap();
    let workers = Workers::start(2, &ctx).await;
    let coordinator = workers.coordinate(&ctx);
    let copy = format!(
        "COPY (SELECT time, station, value FROM temperature) TO '{path}' STORED AS PARQUET"
    );
    assert_eq!(rows_of(&query(&coordinator, &copy).await.unwrap()), [["8640"]]);
    coordinator.register_parquet("cells", path, Default::default()).await.unwrap();
    let sql = "SELECT count(*), count(a.value) FROM temperature a JOIN cells b ON a.time = b.time AND a.station = b.station";
    let plan = plan(&coordinator, sql).await.unwrap();
    let shown = text(&plan);
    for leaf in ["DistributedLeafExec: JoinShareExec", "DistributedLeafExec: DataSourceExec"] {
        assert!(shown.contains(leaf), "{shown}");
    }
    let found = rows_of(&collect(plan, coordinator.task_ctx()).await.unwrap());
    assert_eq!(found, rows_of(&query(&ctx, sql).await.unwrap()));
}

/// Workers with other settings give the same answers; the session's time zone travels.
#[tokio::test]
async fn settings_of_workers_do_not_matter() {
    let ctx = tables().await;
    query(&ctx, "SET datafusion.execution.time_zone = 'Asia/Kolkata'").await.unwrap();
    let mut config = gridfusion::GridfusionConfig::default();
    (config.optimizer.enable_reduce, config.optimizer.reduce_memory) = (false, 1);
    let server = || {
        let other = WorkerServer::default().without_token().with_config(config.clone());
        other.with_session(|mut session| {
            session.config().get_or_insert_default().options_mut().execution.target_partitions = 7;
            session
        })
    };
    let workers = Workers::of(vec![server(), server()]).await;
    let coordinator = workers.coordinate(&ctx);
    for sql in [
        "SELECT station, avg(value) FROM temperature GROUP BY station",
        "SELECT date_trunc('month', time) AS m, max(value) FROM temperature GROUP BY m",
        "SELECT max(to_timestamp(cast(value AS text) || '-01-01')) FROM (SELECT 2000 + count(value) AS value FROM temperature GROUP BY time)",
        "SELECT station, count(*) FROM temperature WHERE cast(time AS timestamptz) < '2024-02-02T00:00:00' GROUP BY station",
    ] {
        let plan = plan(&coordinator, sql).await.unwrap();
        assert!(text(&plan).contains("DistributedExec"), "{sql}: {}", text(&plan));
        let mut found = rows_of(&collect(plan, coordinator.task_ctx()).await.unwrap());
        found.sort();
        assert_eq!(found, sorted_rows_from(&ctx, sql).await, "{sql}");
    }
}

/// `EXPLAIN` shows stages, and the chunks of each task.
#[tokio::test]
async fn explain_shows_tasks() {
    let ctx = tables().await;
    let workers = Workers::start(2, &ctx).await;
    let coordinator = workers.coordinate(&ctx);
    for format in ["", "FORMAT TREE "] {
        let sql =
            format!("EXPLAIN {format}SELECT station, avg(value) FROM temperature GROUP BY station");
        let shown = rows_of(&query(&coordinator, &sql).await.unwrap()).concat().join("\n");
        for part in
            ["Stage 1 ── tasks=2, partitions=6", "t0: GridReduceExec: mode=partial", "chunks=3/6"]
        {
            assert!(shown.contains(part), "{shown}");
        }
    }
}

/// A query over an array that the program opened itself stays in its process, and so does one that would lose a condition.
#[tokio::test]
async fn some_queries_do_not_travel() {
    let ctx = tables().await;
    let opened = ctx.table_provider("temperature").await.unwrap();
    let opened = (opened.as_ref() as &dyn std::any::Any).downcast_ref::<GridTable>().unwrap();
    let own = Arc::new(GridTable::new(opened.array()));
    ctx.register_table("own", own).unwrap();
    let workers = Workers::start(2, &ctx).await;
    let coordinator = workers.coordinate(&ctx);
    let sql = "SELECT station, avg(value) FROM own GROUP BY station ORDER BY station";
    let found = query(&coordinator, sql).await.unwrap();
    assert_eq!(rows_of(&found), rows_of(&query(&ctx, sql).await.unwrap()));
    // DataFusion's messages have no place for the filter of a window, nor for its treatment of NULLs.
    for function in [
        "count(*) FILTER (WHERE value > 3) OVER (PARTITION BY station)",
        "count(*) FILTER (WHERE value > 3) OVER (PARTITION BY station ORDER BY time ROWS 2 PRECEDING)",
        "lag(nullif(value, 1.5)) IGNORE NULLS OVER (PARTITION BY station ORDER BY time)",
        // Nor for the direction of `lag`, which runs against the order of the rows here.
        "sum(value) FILTER (WHERE true) OVER (PARTITION BY station ORDER BY time ROWS 2 PRECEDING), lag(value, 2) OVER (PARTITION BY station ORDER BY time DESC)",
        // Ours do.
        "last_value(nullif(value, 1.5)) IGNORE NULLS OVER (PARTITION BY station ORDER BY time)",
    ] {
        let sql = format!(
            "SELECT time, station, {function} FROM temperature ORDER BY station, time LIMIT 50"
        );
        let found = query(&coordinator, &sql).await.unwrap();
        assert_eq!(rows_of(&found), rows_of(&query(&ctx, &sql).await.unwrap()), "{sql}");
    }
    let joined = "SELECT count(*) FROM own JOIN temperature t ON own.value = t.value";
    let plan = plan(&coordinator, joined).await.unwrap();
    assert!(!text(&plan).contains("DistributedExec"), "{}", text(&plan));
    let found = collect(plan, coordinator.task_ctx()).await.unwrap();
    assert_eq!(rows_of(&found), rows_of(&query(&ctx, joined).await.unwrap()));
}
