//! Compares gridfusion with DuckDB, xarray and xarray-sql.
//!
//! The array of `common` as a `.tet` file for gridfusion, as Parquet for DuckDB, and as Zarr for xarray, with two threads each. `peers.py` runs
//! the other tools and leaves out those that are not installed. Without any, the bench measures nothing.
//! `GRIDFUSION_BENCH_SMALL=1` shrinks it for a smoke run.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::common::figures::Figures;
use crate::common::support::{query, reducing};
use crate::common::{file, is_small, run, runtime, size, table, values};

/// A query: its name in `FIGURES.md`, its name in `peers.py`, and its SQL. Not all tools have all queries.
const CASES: [(&str, &str, &str); 6] = [
    ("mean by station", "by_station", "SELECT station, avg(value) FROM t GROUP BY station"),
    ("mean by time", "by_time", "SELECT time, avg(value) FROM t GROUP BY time"),
    (
        "mean by station and month",
        "by_month",
        "SELECT station, date_trunc('month', time), avg(value) FROM t GROUP BY 1, 2",
    ),
    (
        "mean by station where value > 280",
        "half",
        "SELECT station, avg(value) FROM t WHERE value > 280 GROUP BY station",
    ),
    (
        "one day of one station",
        "one_day",
        "SELECT time, value FROM t WHERE station = 'ST00007'
         AND time >= '1990-02-01' AND time < '1990-02-02'",
    ),
    (
        "a year of rows as CSV",
        "csv",
        "COPY (SELECT * FROM t WHERE time < '1991-01-01') TO '{folder}/ours.csv'",
    ),
];

/// Milliseconds per tool and query, or `None` if no tool is installed.
fn peers(directory: &Path) -> Option<Value> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches").join("peers.py");
    let runs = if is_small() { "1" } else { "3" };
    let output = Command::new("python3").arg(script).arg(directory).args(["--runs", runs]).output();
    match output.ok()? {
        output if output.status.success() => Some(serde_json::from_slice(&output.stdout).unwrap()),
        output if output.status.code() == Some(3) => None,
        output => panic!("{}", String::from_utf8_lossy(&output.stderr)),
    }
}

pub(crate) fn main() {
    let (runtime, data) = (runtime(), values());
    let folder = tempfile::tempdir().unwrap();
    let (_, stations, _) = size();
    let names: String = (0..stations).map(|number| format!("ST{number:05}\n")).collect();
    std::fs::write(folder.path().join("stations.txt"), names).unwrap();
    std::fs::write(folder.path().join("t.f32"), &data).unwrap();
    let array = file(data, false);
    let ctx = runtime.block_on(table(&array, reducing(2, 8192)));
    let parquet = folder.path().join("t.parquet");
    let copy = format!("COPY (SELECT * FROM t) TO '{}' STORED AS PARQUET", parquet.display());
    runtime.block_on(query(&ctx, &copy)).unwrap();
    let Some(measured) = peers(folder.path()) else {
        println!("neither DuckDB nor xarray is installed; nothing is measured");
        return;
    };
    let mut figures = Figures::new("peers");
    for (name, peer, sql) in CASES {
        let sql = sql.replace("{folder}", &folder.path().display().to_string());
        let others = measured.as_object().unwrap().iter();
        let others: Vec<_> = others
            .filter_map(|(tool, times)| Some((tool.as_str(), times[peer].as_f64()?)))
            .collect();
        assert!(!others.is_empty(), "no tool has the query '{peer}'");
        let others = others.into_iter();
        figures.beside_peers(name, || run(&runtime, &ctx, &sql), others);
    }
    figures.finish();
}
