//! What does it cost that arrays stand side by side as one table?
//!
//! Two variables of 64 MiB each, cut alike and cut differently, against tables of one variable; one array as a
//! file and as 64 files; a thousand small files. Warm, two partitions, times from SQL text to the result.
//! `GRIDFUSION_BENCH_SMALL=1` shrinks it for a smoke run.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a benchmark stops where it fails")]

#[allow(dead_code, reason = "shared with the other benches, which use more of it")]
mod common;

use std::path::Path;
use std::time::Instant;

use common::support::{F32, I32, Layout, TestDataset, reducing, tet_bytes};
use common::{is_small, run, runtime};
use datafusion::prelude::SessionContext;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde_json::json;
use tokio::runtime::Runtime;

const STATIONS: u64 = 256;

/// Hours of an array of 64 MiB.
fn hours() -> u64 {
    if is_small() { 4096 } else { 65_536 }
}

fn variable(name: &str, hours: u64, chunk: [u64; 2], zstd: bool) -> TestDataset {
    let mut rng = SmallRng::seed_from_u64(hours + name.len() as u64);
    let value = |_| ((rng.random_range(-600..600) as f32) / 10.0).to_le_bytes();
    let data = (0..hours * STATIONS).flat_map(value).collect();
    TestDataset::new(name, F32, &[hours, STATIONS], &chunk, data)
        .with_zstd(zstd)
        .with_metadata(json!({"dim_names": ["time", "station"]}))
}

fn time(start: u64, hours: u64) -> TestDataset {
    let data = (start..start + hours).flat_map(|hour| (hour as i32).to_le_bytes()).collect();
    let units = json!({"dim_names": ["time"], "attrs": {"units": "hours since 1990-01-01"}});
    TestDataset::new("time", I32, &[hours], &[hours], data).with_metadata(units)
}

fn write(path: &Path, datasets: &[TestDataset]) {
    let layout = Layout { history_version: Some(1), ..Layout::default() };
    std::fs::write(path, tet_bytes(datasets, &layout)).unwrap();
}

/// Median milliseconds of some runs after a first one.
fn median(mut run: impl FnMut()) -> f64 {
    run();
    let mut times: Vec<f64> = (0..if is_small() { 1 } else { 11 })
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// One query, and the same in another way; the second is what the ratio is to.
fn compare(runtime: &Runtime, ctx: &SessionContext, what: &str, sql: &str, others: &[&str]) {
    let ours = median(|| run(runtime, ctx, sql));
    let theirs: f64 = others.iter().map(|sql| median(|| run(runtime, ctx, sql))).sum();
    println!("{what:64} {ours:>9.2} {theirs:>9.2} {:>7.2}", ours / theirs);
}

fn wide(runtime: &Runtime, folder: &Path) {
    let hours = hours();
    let (chunk, other) = ([4096.min(hours), STATIONS], [1024, 64]);
    for (name, b, zstd) in
        [("alike", chunk, false), ("differently", other, false), ("differently, zstd", other, true)]
    {
        let path = folder.join("wide.tet");
        write(
            &path,
            &[variable("a", hours, chunk, zstd), variable("b", hours, b, zstd), time(0, hours)],
        );
        let ctx = reducing(2, 8192);
        runtime.block_on(async {
            let location = path.to_str().unwrap();
            ctx.register_array("wide", location, ArrayOptions::default()).await.unwrap();
            for dataset in ["a", "b"] {
                let options = ArrayOptions::default().with_dataset(dataset);
                ctx.register_array(dataset, location, options).await.unwrap();
            }
        });
        let alone =
            |table: &str| format!("SELECT station, avg(value) FROM {table} GROUP BY station");
        compare(
            runtime,
            &ctx,
            &format!("avg(a), avg(b) GROUP BY station, cut {name}; one by one"),
            "SELECT station, avg(a), avg(b) FROM wide GROUP BY station",
            &[&alone("a"), &alone("b")],
        );
        compare(
            runtime,
            &ctx,
            &format!("corr(a, b) GROUP BY station, cut {name}; a join"),
            "SELECT station, corr(a, b) FROM wide GROUP BY station",
            &[
                "SELECT a.station, corr(a.value, b.value) FROM a JOIN b USING (time, station) GROUP BY a.station",
            ],
        );
    }
}

fn files(runtime: &Runtime, folder: &Path) {
    let (hours, count) = (hours(), 64);
    let of_file = hours / count;
    let whole = folder.join("whole.tet");
    write(&whole, &[variable("t", hours, [of_file, STATIONS], false), time(0, hours)]);
    for number in 0..count {
        let path = folder.join(format!("part-{number:02}.tet"));
        let part = variable("t", of_file, [of_file, STATIONS], false);
        write(&path, &[part, time(number * of_file, of_file)]);
    }
    let ctx = reducing(2, 8192);
    runtime.block_on(async {
        let text = |name: &str| folder.join(name).to_str().unwrap().to_owned();
        let default = ArrayOptions::default;
        ctx.register_array("whole", text("whole.tet"), default()).await.unwrap();
        ctx.register_array("parts", text("part-*.tet"), default()).await.unwrap();
    });
    for (what, sql) in [
        ("avg(value) GROUP BY station", "SELECT station, avg(value) FROM {} GROUP BY station"),
        ("avg(value) GROUP BY time", "SELECT time, avg(value) FROM {} GROUP BY time"),
        (
            "max(value) over rows",
            "SELECT max(value), max(time) FROM (SELECT * FROM {} WHERE value + 1 > 0)",
        ),
        ("ORDER BY time DESC LIMIT 10", "SELECT * FROM {} ORDER BY time DESC, station LIMIT 10"),
    ] {
        let of = |table: &str| sql.replace("{}", table);
        compare(
            runtime,
            &ctx,
            &format!("{what}, 64 files; one file"),
            &of("parts"),
            &[&of("whole")],
        );
    }
}

fn thousand(runtime: &Runtime, folder: &Path) {
    let (count, of_file) = (if is_small() { 20 } else { 1000 }, 24);
    for number in 0..count {
        let part = variable("t", of_file, [of_file, STATIONS], true);
        write(
            &folder.join(format!("day-{number:04}.tet")),
            &[part, time(number * of_file, of_file)],
        );
    }
    let pattern = folder.join("day-*.tet").to_str().unwrap().to_owned();
    let ctx = reducing(2, 8192);
    let register = || {
        let _ = ctx.deregister_table("days");
        runtime
            .block_on(ctx.register_array("days", pattern.as_str(), ArrayOptions::default()))
            .unwrap();
    };
    println!("{:64} {:>9.2}", format!("{count} files: register"), median(register));
    for (what, sql) in [
        (
            "one day of them",
            "SELECT avg(value) FROM days WHERE time >= '1990-01-11' AND time < '1990-01-12'",
        ),
        ("all of them", "SELECT station, avg(value) FROM days GROUP BY station"),
    ] {
        println!(
            "{:64} {:>9.2}",
            format!("{count} files: {what}"),
            median(|| run(runtime, &ctx, sql))
        );
    }
}

fn main() {
    let runtime = runtime();
    let folder = tempfile::tempdir().unwrap();
    println!("{:64} {:>9} {:>9} {:>7}", "milliseconds", "ours", "other", "ratio");
    wide(&runtime, folder.path());
    files(&runtime, folder.path());
    thousand(&runtime, folder.path());
}
