//! Shapes of plans: dynamic filters, limits, orders, joins, sparse arrays, files of several years.

use std::sync::Arc;

use datafusion::physical_plan::{ExecutionPlan, collect, displayable};
use datafusion::prelude::SessionContext;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};

use super::sent::{bytes, plain_bytes, plan, query_sent, received, travelled};
use crate::reduce::random::agree;
use crate::support::{query, reducing, rows_from, rows_of, shipped, sorted_rows_from};

/// A session with tables of several formats and kinds.
pub(crate) async fn tables() -> SessionContext {
    let ctx = reducing(3, 100);
    for (name, location, dataset) in [
        ("temperature", "examples/data/stations.tet", Some("temperature")),
        ("elevation", "examples/data/stations.tet", Some("elevation")),
        ("sea", "examples/data/sea.zarr", None),
        ("air", "examples/data/air.nc", None),
        ("ships", "examples/data/ships", None),
        ("overlap", "tests/data/tiledb/overlap", None),
        ("years", "examples/data/years/*", None),
    ] {
        let options = ArrayOptions::default();
        let options = match dataset {
            Some(dataset) => options.with_dataset(dataset),
            None => options,
        };
        ctx.register_array(name, shipped(location), options).await.unwrap();
    }
    ctx
}

/// Queries of every shape over [`tables`], and the number of columns that identify a row.
pub(crate) const SHAPES: &[(&str, usize)] = &[
    (
        "SELECT c.name, a.time, weighted_avg(a.t2m, c.area_m2) FROM air a JOIN grid_coverage(air, (SELECT column1 AS name, column2 AS wkt \
         FROM (VALUES ('A', 'POLYGON ((0 40, 20 40, 9 60, 0 40))'), ('B', 'POLYGON ((-9 50, 9 50, 9 70, -9 50))')))) c \
         ON a.lat = c.lat AND a.lon = c.lon GROUP BY c.name, a.time",
        2,
    ),
    (
        "SELECT p.station, p.distance_m, a.time, a.t2m FROM grid_points(air, (SELECT DISTINCT station, 50.0 AS lat, 7.0 AS lon FROM elevation)) p \
         JOIN air a ON a.lat = p.cell_lat AND a.lon = p.cell_lon WHERE a.time < '2023-03-01'",
        3,
    ),
    ("SELECT max(time), first_value(station ORDER BY value) FROM temperature", 0),
    (
        "SELECT station, time, avg(value) OVER (PARTITION BY station ORDER BY time ROWS 5 PRECEDING) FROM temperature",
        2,
    ),
    (
        "SELECT station, time, lag(value, 3) OVER (PARTITION BY station ORDER BY time DESC) FROM temperature",
        2,
    ),
    (
        "SELECT station, r, value FROM (SELECT *, row_number() OVER (PARTITION BY station ORDER BY value DESC) AS r FROM temperature) WHERE r <= 2",
        2,
    ),
    (
        "SELECT t.station, t.time, t.value - e.value FROM temperature t LEFT JOIN elevation e ON t.station = e.station",
        2,
    ),
    ("SELECT * FROM temperature ORDER BY time DESC, station LIMIT 7", 2),
    ("SELECT time, value FROM temperature WHERE station = 'Bergen' AND value > 3", 2),
    ("SELECT * FROM temperature ORDER BY value DESC NULLS LAST, time, station LIMIT 5", 3),
    ("SELECT count(*), min(time), max(value) FROM temperature WHERE value < 0", 1),
    ("SELECT station, weighted_avg(value, value * value) FROM temperature GROUP BY station", 1),
    (
        "SELECT date_trunc('month', time) AS m, station, avg(value) FROM temperature GROUP BY m, station",
        2,
    ),
    (
        "SELECT e.station, avg(t.value) FROM temperature t JOIN elevation e ON t.station = e.station WHERE e.value > 50 GROUP BY e.station",
        1,
    ),
    // The array is reduced below the join.
    (
        "SELECT e.value > 50 AS high, avg(t.value), count(*) FROM temperature t LEFT JOIN elevation e ON t.station = e.station GROUP BY high",
        1,
    ),
    // The arrays are put side by side.
    (
        "SELECT t.time, t.station, t.value - e.value FROM temperature t JOIN elevation e ON t.station = e.station WHERE t.value > 3",
        2,
    ),
    (
        "SELECT t.station, corr(t.value, u.value) FROM temperature t JOIN temperature u ON t.time = u.time AND t.station = u.station GROUP BY t.station",
        1,
    ),
    ("SELECT DISTINCT station FROM temperature", 1),
    ("SELECT lat, corr(sst, ssh), count(sst) FROM sea WHERE lon > 90 GROUP BY lat", 1),
    ("SELECT lat, lon, max(t2m) FROM air WHERE time > '2023-06-01' GROUP BY lat, lon", 2),
    ("SELECT * FROM ships WHERE lat BETWEEN 55 AND 60", 2),
    ("SELECT count(*), sum(speed), min(depth) FROM ships WHERE lat < 60", 1),
    ("SELECT ship, count(*) FROM ships GROUP BY ship", 1),
    ("SELECT * FROM ships ORDER BY speed DESC NULLS LAST, ship, time LIMIT 3", 1),
    ("SELECT r, c, a, s FROM overlap WHERE r <> 2", 2),
    ("SELECT date_part('year', time) AS y, avg(t2m) FROM years GROUP BY y", 1),
    (
        "SELECT station, row_number() OVER (PARTITION BY station ORDER BY time) AS n FROM temperature ORDER BY station, n LIMIT 9",
        2,
    ),
];

/// Sums a metric over the nodes of a plan.
pub(crate) fn metric(plan: &Arc<dyn ExecutionPlan>, name: &str) -> usize {
    use datafusion::physical_plan::metrics::MetricValue;
    let own = plan.metrics().unwrap_or_default();
    let own = own.iter().filter(|it| it.value().name() == name).map(|it| match it.value() {
        MetricValue::PruningMetrics { pruning_metrics, .. } => pruning_metrics.pruned(),
        other => other.as_usize(),
    });
    own.sum::<usize>() + plan.children().into_iter().map(|it| metric(it, name)).sum::<usize>()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queries_of_every_shape_travel() {
    let ctx = tables().await;
    let worker = SessionContext::new();
    for &(sql, keys) in SHAPES {
        let sent = plan(&ctx, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        let received = received(&bytes(&sent).unwrap(), &worker);
        let received = received.unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert!(travelled(&received) > 0, "{sql}");
        let found = query_sent(&ctx, &worker, sql).await;
        let rows = agree(found, query(&ctx, sql).await, keys, 100.0);
        assert!(rows.unwrap_or_else(|why| panic!("{sql}: {why}")) > 0, "{sql}");
    }
}

/// In the session that received the plan, an operator and its scan share a filter again. So it skips chunks there, too.
#[tokio::test]
async fn dynamic_filters_skip_chunks() {
    let ctx = tables().await;
    let worker = SessionContext::new();
    for sql in [
        "SELECT * FROM temperature ORDER BY value, time, station LIMIT 2",
        "SELECT t.value FROM temperature t JOIN (SELECT max(time) AS last FROM sea) s ON t.time = s.last",
    ] {
        let sent = plan(&ctx, sql).await.unwrap();
        let received = received(&bytes(&sent).unwrap(), &worker).unwrap();
        let text = displayable(received.as_ref()).indent(false).to_string();
        let is_filtered = text.contains("GridScanExec") && text.contains("DynamicFilter");
        assert!(is_filtered || text.contains("GridLookupExec"), "{sql}: {text}");
        let rows = collect(Arc::clone(&received), worker.task_ctx()).await.unwrap();
        assert_eq!(rows_of(&rows), rows_from(&ctx, sql).await, "{sql}");
        let [read, pruned] =
            ["chunks_read", "chunks_pruned_dynamic_filter"].map(|name| metric(&received, name));
        assert!(pruned > 0 && read + pruned == 6, "{sql}: {read} and {pruned} of 6 chunks");
    }
}

/// A plan lists runs of chunks, and not each chunk.
#[tokio::test]
async fn a_million_chunks_are_few_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("many.zarr");
    let node = |dims: serde_json::Value, shape: serde_json::Value, chunk: serde_json::Value| {
        serde_json::json!({
            "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "float32",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": 0.0, "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
            "attributes": {}, "dimension_names": dims,
        })
    };
    let nodes = serde_json::json!({
        "value": node(["y", "x"].into(), [16_000, 16_000].into(), [16, 16].into()),
    });
    let root = serde_json::json!({
        "zarr_format": 3, "node_type": "group", "attributes": {},
        "consolidated_metadata": {"kind": "inline", "must_understand": false, "metadata": nodes},
    });
    std::fs::create_dir_all(&store).unwrap();
    std::fs::write(store.join("zarr.json"), root.to_string()).unwrap();
    let ctx = reducing(64, 8192);
    ctx.register_array("t", store.to_str().unwrap(), ArrayOptions::default()).await.unwrap();
    for sql in [
        "SELECT * FROM t",
        "SELECT avg(value) FROM t",
        "SELECT y, avg(value) FROM t WHERE x % 3 = 1 GROUP BY y",
        // Half of the chunks, in a pattern.
        "SELECT count(value) FROM t WHERE x > y AND (x + y) % 7 < 3",
        "SELECT * FROM t WHERE x > y ORDER BY y DESC, x",
    ] {
        let plan = plan(&ctx, sql).await.unwrap();
        let bytes = bytes(&plan).unwrap();
        assert!(bytes.len() < 64 << 10, "{sql}: {} bytes", bytes.len());
        assert!(plain_bytes(&plan).unwrap().len() < 64 << 10, "{sql}");
        let received = received(&bytes, &SessionContext::new()).unwrap();
        assert!(travelled(&received) > 0, "{sql}");
    }
    let small = "SELECT y, x, value FROM t WHERE y IN (5, 900) AND x > 15990 ORDER BY y, x";
    let found = query_sent(&ctx, &SessionContext::new(), small).await.unwrap();
    let mut found = rows_of(&found);
    found.sort();
    assert_eq!(found, sorted_rows_from(&ctx, small).await);
}

/// Files of text that another process writes are those that this one writes.
#[tokio::test]
async fn sinks_of_text_files_travel() {
    let (ctx, worker, folder) = (tables().await, reducing(2, 100), tempfile::tempdir().unwrap());
    for (name, options) in
        [("a.csv", ""), ("b.json", ""), ("c.csv", "OPTIONS (format.delimiter ';')")]
    {
        let target = folder.path().join(name);
        let rows = "SELECT station, time, value, 1.0 / (value - value) AS inf FROM temperature ORDER BY 1, 2 LIMIT 50";
        let sql = format!("COPY ({rows}) TO '{}' {options}", target.display());
        query(&ctx, &sql).await.unwrap();
        let expected = std::fs::read(&target).unwrap();
        std::fs::remove_file(&target).unwrap();
        let sent = plan(&ctx, &sql).await.unwrap();
        let received = received(&bytes(&sent).unwrap(), &worker).unwrap();
        collect(received, worker.task_ctx()).await.unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), expected, "{name}");
        assert!(
            expected.len() > 1000
                && (name != "b.json" || expected.windows(8).any(|it| it == b"Infinity"))
        );
    }
}
