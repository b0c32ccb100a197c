//! Compares aggregations over joins of arrays with the plain aggregation that reads the same cells, and with the same joins
//! over rows.
//!
//! The array `t` has 262144 hours x 256 stations of f32 (256 MiB). `p` has as many cells, in other chunks. `sst` has 4380 times x
//! 73 x 144 of f32, of which 30 % are NaN.
//! Each query is measured from SQL text to result. The bench prints the table `joins` of `FIGURES.md`.
//! `GRIDFUSION_BENCH_SMALL=1` shrinks both for a smoke run.

use datafusion::prelude::SessionContext;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use serde_json::json;

use crate::common::figures::Figures;
use crate::common::support::{F32, Layout, TempTet, TestDataset, query, reducing, tet_bytes};
use crate::common::{file, run, runtime, size, sst, table, values};

/// A query over a join, and the plain aggregation by the same keys.
struct Case {
    name: &'static str,
    join: &'static str,
    plain: (&'static str, &'static str),
}

const BY_STATION: (&str, &str) =
    ("`GROUP BY station`", "SELECT station, avg(value) FROM t GROUP BY station");
const MEAN: (&str, &str) = ("`avg(value)`", "SELECT avg(value) FROM t");

const CASES: [Case; 13] = [
    Case {
        name: "stations, mean by region",
        join: "SELECT s.region, avg(t.value) FROM t JOIN stations s ON t.station = s.station GROUP BY s.region",
        plain: BY_STATION,
    },
    Case {
        name: "39 of the stations, mean by region",
        join: "SELECT s.region, avg(t.value) FROM t JOIN few s ON t.station = s.station GROUP BY s.region",
        plain: BY_STATION,
    },
    Case {
        name: "stations without a match count too, by region and month",
        join: "SELECT s.region, date_part('month', t.time) AS m, avg(t.value), count(*) FROM t LEFT JOIN few s ON t.station = s.station GROUP BY s.region, m",
        plain: (
            "`GROUP BY station, month`",
            "SELECT station, date_part('month', time) AS m, avg(value), count(*) FROM t GROUP BY station, m",
        ),
    },
    Case {
        name: "a calendar by month, and regions",
        join: "SELECT c.season, s.region, max(t.value) FROM t JOIN calendar c ON date_part('month', t.time) = c.month JOIN stations s ON t.station = s.station GROUP BY c.season, s.region",
        plain: (
            "`GROUP BY station, month`",
            "SELECT station, date_part('month', time) AS m, max(value) FROM t GROUP BY station, m",
        ),
    },
    Case {
        name: "anomaly against a monthly climatology, mean by station",
        join: "SELECT t.station, avg(t.value - c.mean) FROM t JOIN (SELECT station, date_part('month', time) AS m, avg(value) AS mean FROM t GROUP BY station, m) c ON t.station = c.station AND date_part('month', t.time) = c.m GROUP BY t.station",
        plain: MEAN,
    },
    Case {
        name: "the same, standard deviation",
        join: "SELECT t.station, stddev(t.value - c.mean) FROM t JOIN (SELECT station, date_part('month', time) AS m, avg(value) AS mean FROM t GROUP BY station, m) c ON t.station = c.station AND date_part('month', t.time) = c.m GROUP BY t.station",
        plain: ("`stddev(value)`", "SELECT stddev(value) FROM t"),
    },
    Case {
        name: "the same, the greatest",
        join: "SELECT t.station, max(t.value - c.mean) FROM t JOIN (SELECT station, date_part('month', time) AS m, avg(value) AS mean FROM t GROUP BY station, m) c ON t.station = c.station AND date_part('month', t.time) = c.m GROUP BY t.station",
        plain: ("`max(value)`", "SELECT max(value) FROM t"),
    },
    Case {
        name: "the same, the greatest in size, `max(abs(…))`",
        join: "SELECT t.station, max(abs(t.value - c.mean)) FROM t JOIN (SELECT station, date_part('month', time) AS m, avg(value) AS mean FROM t GROUP BY station, m) c ON t.station = c.station AND date_part('month', t.time) = c.m GROUP BY t.station",
        plain: ("`max(value)`", "SELECT max(value) FROM t"),
    },
    Case {
        name: "mean by region, weighted by the areas of stations",
        join: "SELECT s.region, sum(t.value * s.area) / sum(s.area) FROM t JOIN stations s ON t.station = s.station GROUP BY s.region",
        plain: BY_STATION,
    },
    Case {
        name: "a mask of basins by `lat, lon`, mean by basin",
        join: "SELECT b.basin, avg(x.value) FROM sst x JOIN basins b ON x.lat = b.lat AND x.lon = b.lon GROUP BY b.basin",
        plain: ("`GROUP BY lat, lon`", "SELECT lat, lon, avg(value) FROM sst GROUP BY lat, lon"),
    },
    Case {
        name: "points by `lat, lon`, each time: states would be no fewer than rows",
        join: "SELECT x.time, p.basin, avg(x.value) FROM sst x JOIN basins p ON x.lat = p.lat AND x.lon = p.lon WHERE x.time < 400 GROUP BY x.time, p.basin",
        plain: (
            "`GROUP BY time` of as many cells",
            "SELECT time, avg(value) FROM sst WHERE time < 400 GROUP BY time",
        ),
    },
    Case {
        name: "50 overlapping regions of parts of cells by `lat, lon`, weighted mean at each time",
        join: "SELECT z.region, x.time, weighted_avg(x.value, z.part) FROM sst x JOIN zones z ON x.lat = z.lat AND x.lon = z.lon GROUP BY z.region, x.time",
        plain: ("`GROUP BY time`", "SELECT time, avg(value) FROM sst GROUP BY time"),
    },
    Case {
        name: "the same, standard deviation",
        join: "SELECT z.region, x.time, stddev(x.value * z.part) FROM sst x JOIN zones z ON x.lat = z.lat AND x.lon = z.lon GROUP BY z.region, x.time",
        plain: ("`GROUP BY time`", "SELECT time, stddev(value) FROM sst GROUP BY time"),
    },
];

/// Two arrays of the same labels in one file, so that it is also a wide table. `p` has chunks of other shape.
fn pair() -> TempTet {
    let (hours, stations, chunk) = size();
    let metadata = || json!({"dim_names": ["time", "station"]});
    let dataset = |name: &str, chunk: [u64; 2]| {
        TestDataset::new(name, F32, &[hours, stations], &chunk, values()).with_metadata(metadata())
    };
    let datasets = [dataset("t", [chunk, stations]), dataset("p", [chunk * 2, stations / 2])];
    let layout = Layout { history_version: Some(1), ..Layout::default() };
    TempTet::new(&tet_bytes(&datasets, &layout))
}

/// A join of arrays, and the same over a wide table.
const ARRAYS: [(&str, &str, &str); 3] = [
    (
        "two arrays, `corr GROUP BY station`",
        "SELECT a.station, corr(a.value, b.value) FROM a JOIN b ON a.time = b.time AND a.station = b.station GROUP BY a.station",
        "SELECT station, corr(t, p) FROM wide GROUP BY station",
    ),
    (
        "two arrays, `avg(a.value - b.value)`",
        "SELECT avg(a.value - b.value) FROM a JOIN b ON a.time = b.time AND a.station = b.station",
        "SELECT avg(t - p) FROM wide",
    ),
    (
        "two arrays, rows of 1024 times",
        "SELECT a.time, a.station, a.value, b.value FROM a JOIN b ON a.time = b.time AND a.station = b.station WHERE a.time < 1024",
        "SELECT time, station, t, p FROM wide WHERE time < 1024",
    ),
];

/// Makes the tables that are joined, in memory.
async fn tables(ctx: &SessionContext) {
    for sql in [
        "CREATE TABLE stations AS SELECT station, substr(station, 7) AS region, 0.5 + row_number() OVER (ORDER BY station) AS area FROM (SELECT DISTINCT station FROM t)",
        "CREATE TABLE few AS SELECT * FROM stations WHERE substr(station, 6) IN ('10', '20', '07') OR station LIKE '%3_'",
        "CREATE TABLE calendar AS SELECT m AS month, m / 4 AS season FROM (SELECT DISTINCT date_part('month', time) AS m FROM t)",
        "CREATE TABLE zones AS SELECT r AS region, lat, lon, (1 + CAST(lat * 2 + lon * 6 + r AS BIGINT) % 20 + 20) / 40.0 AS part FROM (SELECT unnest(range(0, 50)) AS r) CROSS JOIN (SELECT DISTINCT lat FROM sst) CROSS JOIN (SELECT DISTINCT lon FROM sst) WHERE abs(lat - (r * 37 % 121 - 60)) <= 12.5 AND abs(lon - (r * 53 % 320 - 70)) <= 12.5",
        "CREATE TABLE basins AS SELECT lat, lon, CAST(lat * lon AS BIGINT) % 7 AS basin FROM (SELECT DISTINCT lat, lon FROM sst)",
    ] {
        query(ctx, sql).await.unwrap();
    }
}

pub(crate) fn main() {
    let runtime = runtime();
    let (t, sst) = (file(values(), false), sst());
    let mut figures = Figures::new("joins");
    let session = |eager: bool| {
        runtime.block_on(async {
            let ctx = table(&t, reducing(2, 8192)).await;
            let options = ArrayOptions::default();
            ctx.register_array("sst", sst.location(), options).await.unwrap();
            tables(&ctx).await;
            for rule in ["eager_aggregation", "join_reduce"] {
                let set = format!("SET gridfusion.optimizer.enable_{rule} = {eager}");
                query(&ctx, &set).await.unwrap();
            }
            ctx
        })
    };
    let (ours, rows) = (session(true), session(false));
    for Case { name, join, plain: (plain_name, plain) } in CASES {
        figures.compare(
            name,
            || run(&runtime, &ours, join),
            vec![
                (plain_name, Box::new(|| run(&runtime, &ours, plain))),
                ("rows joined", Box::new(|| run(&runtime, &rows, join))),
            ],
        );
    }
    let pair = pair();
    let session = |align: bool| {
        runtime.block_on(async {
            let ctx = reducing(2, 8192);
            for (name, dataset) in [("a", Some("t")), ("b", Some("p")), ("wide", None)] {
                let options = ArrayOptions::default();
                let options = match dataset {
                    Some(dataset) => options.with_dataset(dataset),
                    None => options,
                };
                ctx.register_array(name, pair.location(), options).await.unwrap();
            }
            query(&ctx, &format!("SET gridfusion.optimizer.enable_align_joins = {align}"))
                .await
                .unwrap();
            ctx
        })
    };
    let (ours, rows) = (session(true), session(false));
    for (name, join, wide) in ARRAYS {
        figures.compare(
            name,
            || run(&runtime, &ours, join),
            vec![
                ("a wide table", Box::new(|| run(&runtime, &ours, wide))),
                ("rows joined", Box::new(|| run(&runtime, &rows, join))),
            ],
        );
    }
    figures.finish();
}
