//! Compares windows over arrays with a plain scan of the same rows, and with windows over sorted rows.
//!
//! Windows of stations cover 43824 hours x 256 stations of f32. `sst` has 4380 times x 73 x 144 of f32, of which 30 % are NaN,
//! in four columns of chunks. Each query is measured from SQL text to result. The bench prints the table `windows` of
//! `FIGURES.md`. `GRIDFUSION_BENCH_SMALL=1` shrinks the arrays for a smoke run.

use gridfusion::{ArrayOptions, GridfusionSessionContextExt};

use crate::common::figures::{Baseline, Figures};
use crate::common::support::{query, reducing};
use crate::common::{file, run, runtime, sst, table, values};

/// The names of windows, what they compute, and whether they are over `sst`.
const WINDOWS: [(&str, &str, &str); 12] = [
    ("mean of 24", "avg(value) OVER (PARTITION BY station ORDER BY time ROWS 23 PRECEDING)", "t"),
    (
        "mean of 24, centred, by interval",
        "avg(value) OVER (PARTITION BY station ORDER BY time RANGE BETWEEN INTERVAL '12 hours' PRECEDING AND INTERVAL '12 hours' FOLLOWING)",
        "t",
    ),
    (
        "greatest of 24",
        "max(value) OVER (PARTITION BY station ORDER BY time ROWS 23 PRECEDING)",
        "t",
    ),
    (
        "deviation of 720",
        "stddev(value) OVER (PARTITION BY station ORDER BY time ROWS 719 PRECEDING)",
        "t",
    ),
    ("running sum", "sum(value) OVER (PARTITION BY station ORDER BY time)", "t"),
    (
        "running sum of each month",
        "sum(value) OVER (PARTITION BY station, date_trunc('month', time) ORDER BY time)",
        "t",
    ),
    (
        "value of the day before",
        "value - lag(value, 24) OVER (PARTITION BY station ORDER BY time)",
        "t",
    ),
    ("`row_number`", "row_number() OVER (PARTITION BY station ORDER BY time)", "t"),
    (
        "mean of 24, compressed",
        "avg(value) OVER (PARTITION BY station ORDER BY time ROWS 23 PRECEDING)",
        "z",
    ),
    (
        "mean of 28 times, NULLs, four columns of chunks",
        "avg(value) OVER (PARTITION BY lat, lon ORDER BY time ROWS 27 PRECEDING)",
        "sst",
    ),
    (
        "last known value, a quarter of the times",
        "last_value(value) IGNORE NULLS OVER (PARTITION BY lat, lon ORDER BY time)",
        "sst",
    ),
    (
        "value of the time before, a quarter of the times",
        "value - lag(value) OVER (PARTITION BY lat, lon ORDER BY time)",
        "sst",
    ),
];

/// Other queries that return rows of a quarter of the times, or the first rows of all.
const OTHERS: [(&str, &str, &str); 4] = [
    (
        "`value - avg(value)` of whole partitions",
        "SELECT time, lat, lon, value - avg(value) OVER (PARTITION BY lat, lon) AS anomaly FROM sst WHERE time < 1095",
        "SELECT time, lat, lon, value FROM sst WHERE time < 1095",
    ),
    (
        "anomaly against a climatology by hour, as rows",
        "SELECT x.time, x.station, x.value - c.mean AS anomaly FROM t x JOIN (SELECT station, date_part('hour', time) AS h, avg(value) AS mean FROM t WHERE time < TIMESTAMP '1995-01-01' GROUP BY station, h) c ON x.station = c.station AND date_part('hour', x.time) = c.h WHERE x.time < TIMESTAMP '1995-01-01'",
        "SELECT time, station, value FROM t WHERE time < TIMESTAMP '1995-01-01'",
    ),
    (
        "3 greatest values per `lat`",
        "SELECT time, lat, lon, value FROM (SELECT *, row_number() OVER (PARTITION BY lat ORDER BY value DESC NULLS LAST) AS r FROM sst WHERE time < 1095) WHERE r <= 3",
        "SELECT time, lat, lon, value FROM sst WHERE time < 1095",
    ),
    (
        "self join by `time, lat, lon`",
        "SELECT x.time, x.lat, x.lon, x.value - y.value AS zero FROM sst x JOIN sst y ON x.time = y.time AND x.lat = y.lat AND x.lon = y.lon WHERE x.time < 1095",
        "SELECT time, lat, lon, value FROM sst WHERE time < 1095",
    ),
];

pub(crate) fn main() {
    let runtime = runtime();
    let (t, z, sst) = (file(values(), false), file(values(), true), sst());
    let mut figures = Figures::new("windows");
    let session = |on_grid: bool| {
        runtime.block_on(async {
            let ctx = table(&t, reducing(2, 8192)).await;
            ctx.register_array("z", z.location(), ArrayOptions::default()).await.unwrap();
            ctx.register_array("sst", sst.location(), ArrayOptions::default()).await.unwrap();
            let rules =
                ["grid_windows", "reduce_windows", "top_rows", "lookup_joins", "align_joins"];
            for rule in rules {
                query(&ctx, &format!("SET gridfusion.optimizer.enable_{rule} = {on_grid}"))
                    .await
                    .unwrap();
            }
            ctx
        })
    };
    let (ours, rows, heaps) = (session(true), session(false), session(false));
    // Off by default: a heap per partition instead of a sort.
    let heap = "SET datafusion.optimizer.enable_window_topn = true";
    runtime.block_on(query(&heaps, heap)).unwrap();
    for (name, function, from) in WINDOWS {
        let (columns, filter) = match from {
            "sst" => ("time, lat, lon", "time < 1095"),
            _ => ("time, station", "time < TIMESTAMP '1995-01-01'"),
        };
        let window = format!("SELECT {columns}, {function} AS result FROM {from} WHERE {filter}");
        let scan = format!("SELECT {columns}, value FROM {from} WHERE {filter}");
        figures.compare(
            name,
            || run(&runtime, &ours, &window),
            vec![
                ("a scan of the rows", Box::new(|| run(&runtime, &ours, &scan))),
                ("rows sorted", Box::new(|| run(&runtime, &rows, &window))),
            ],
        );
    }
    for (name, sql, scan) in OTHERS {
        let mut others: Vec<Baseline<'_>> = vec![
            ("a scan of the rows", Box::new(|| run(&runtime, &ours, scan))),
            ("rows sorted or hashed", Box::new(|| run(&runtime, &rows, sql))),
        ];
        if sql.contains("row_number()") {
            let top = "rows in heaps (`enable_window_topn`)";
            others.push((top, Box::new(|| run(&runtime, &heaps, sql))));
        }
        figures.compare(name, || run(&runtime, &ours, sql), others);
    }
    figures.finish();
}
