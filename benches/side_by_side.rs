//! Measures the cost of reading several arrays as one table.
//!
//! - Two variables of 64 MiB each, with equal and with different chunks, compared with tables of one
//!   variable.
//! - One array as a file and as 64 files. The same of packed numbers, where each file has its own packing.
//! - A thousand small files, with one packing and with a thousand.
//!
//! Queries are warm, on two partitions, and are measured from SQL text to the result.
//! `GRIDFUSION_BENCH_SMALL=1` shrinks the arrays for a smoke run.

use std::path::Path;

use datafusion::prelude::SessionContext;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::common::figures::{Baseline, Figures};
use crate::common::support::{F32, I16, I32, Layout, TestDataset, reducing, tet_bytes};
use crate::common::{is_small, run, runtime};

const STATIONS: u64 = 256;

const JOIN: &str = "SELECT a.station, corr(a.value, b.value) FROM a JOIN b USING (time, station)
    GROUP BY a.station";

/// The number of hours of an array of 64 MiB.
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

/// Packed integers with a factor of their own for each `file`, as a month of ERA5 has.
fn packed(hours: u64, chunk: [u64; 2], file: u64) -> TestDataset {
    let mut rng = SmallRng::seed_from_u64(hours + file);
    let value = |_| rng.random_range(-6000..6000_i16).to_le_bytes();
    let data = (0..hours * STATIONS).flat_map(value).collect();
    let scale = 0.01 + file as f64 * 0.0001;
    let attributes = json!({
        "scale_factor": scale.to_string(), "add_offset": "270", "_FillValue": "-32767"
    });
    TestDataset::new("value", I16, &[hours, STATIONS], &chunk, data)
        .with_metadata(json!({"dim_names": ["time", "station"], "attrs": attributes}))
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

/// Compares a query with others that together give the same result.
fn compare(
    figures: &mut Figures,
    (runtime, ctx): (&Runtime, &SessionContext),
    (name, sql): (&str, &str),
    (baseline, others): (&str, &[&str]),
) {
    let others: Baseline<'_> =
        (baseline, Box::new(|| others.iter().for_each(|sql| run(runtime, ctx, sql))));
    figures.compare(name, || run(runtime, ctx, sql), vec![others]);
}

fn wide(figures: &mut Figures, runtime: &Runtime, folder: &Path) {
    let hours = hours();
    let (chunk, other) = ([4096.min(hours), STATIONS], [1024, 64]);
    for (name, b, zstd) in [
        ("cut alike", chunk, false),
        ("cut differently", other, false),
        ("cut differently, zstd", other, true),
    ] {
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
            figures,
            (runtime, &ctx),
            (
                &format!("`avg(a), avg(b) GROUP BY station`, {name}"),
                "SELECT station, avg(a), avg(b) FROM wide GROUP BY station",
            ),
            ("two queries of one variable", &[&alone("a"), &alone("b")]),
        );
        compare(
            figures,
            (runtime, &ctx),
            (
                &format!("`corr(a, b) GROUP BY station`, {name}"),
                "SELECT station, corr(a, b) FROM wide GROUP BY station",
            ),
            ("a join of two tables on time and station", &[JOIN]),
        );
    }
}

/// One array as a file and as 64 files. `dataset` returns it for a number of hours, a chunk and a file.
fn files(
    figures: &mut Figures,
    runtime: &Runtime,
    folder: &Path,
    (files, dataset): (&str, impl Fn(u64, [u64; 2], u64) -> TestDataset),
) {
    let (hours, count) = (hours(), 64);
    let of_file = hours / count;
    let chunk = [of_file, STATIONS];
    write(&folder.join("whole.tet"), &[dataset(hours, chunk, 0), time(0, hours)]);
    for number in 0..count {
        let path = folder.join(format!("part-{number:02}.tet"));
        write(&path, &[dataset(of_file, chunk, number), time(number * of_file, of_file)]);
    }
    let ctx = reducing(2, 8192);
    runtime.block_on(async {
        let text = |name: &str| folder.join(name).to_str().unwrap().to_owned();
        let default = ArrayOptions::default;
        ctx.register_array("whole", text("whole.tet"), default()).await.unwrap();
        ctx.register_array("parts", text("part-*.tet"), default()).await.unwrap();
    });
    for (what, sql) in [
        ("`avg(value) GROUP BY station`", "SELECT station, avg(value) FROM {} GROUP BY station"),
        ("`avg(value) GROUP BY time`", "SELECT time, avg(value) FROM {} GROUP BY time"),
        (
            "`max(value), max(time)` over rows",
            "SELECT max(value), max(time) FROM (SELECT * FROM {} WHERE value + 1 > 0)",
        ),
        ("`ORDER BY time DESC LIMIT 10`", "SELECT * FROM {} ORDER BY time DESC, station LIMIT 10"),
    ] {
        let of = |table: &str| sql.replace("{}", table);
        compare(
            figures,
            (runtime, &ctx),
            (&format!("{what}, {files}"), &of("parts")),
            ("the same array in one file", &[&of("whole")]),
        );
    }
}

fn thousand(figures: &mut Figures, runtime: &Runtime, folder: &Path) {
    let (count, of_file) = (if is_small() { 20 } else { 1000 }, 24);
    let chunk = [of_file, STATIONS];
    for number in 0..count {
        for (name, file) in [("same", 0), ("own", number)] {
            let path = folder.join(format!("{name}-{number:04}.tet"));
            write(&path, &[packed(of_file, chunk, file), time(number * of_file, of_file)]);
        }
    }
    let ctx = reducing(2, 8192);
    let register = |name: &str| {
        let pattern = folder.join(format!("{name}-*.tet")).to_str().unwrap().to_owned();
        let _ = ctx.deregister_table(name);
        runtime.block_on(ctx.register_array(name, pattern, ArrayOptions::default())).unwrap();
    };
    let title = format!("{count} files of packed numbers, each with its own packing");
    let same: Baseline<'_> = ("files with the same packing", Box::new(|| register("same")));
    let query = format!("{title}: making the table");
    figures.compare(query.as_str(), || register("own"), vec![same]);
    register("same");
    register("own");
    let mean = |table: &str| format!("SELECT station, avg(value) FROM {table} GROUP BY station");
    let name = format!("{title}: the mean of all days by station");
    let (own, same) = (mean("own"), mean("same"));
    let baseline = ("files with the same packing", &[same.as_str()][..]);
    compare(figures, (runtime, &ctx), (name.as_str(), own.as_str()), baseline);
}

fn days(figures: &mut Figures, runtime: &Runtime, folder: &Path) {
    let (count, of_file) = (if is_small() { 20 } else { 1000 }, 24);
    for number in 0..count {
        let part = variable("value", of_file, [of_file, STATIONS], true);
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
    figures.compare(format!("{count} files: making the table").as_str(), register, vec![]);
    for (what, sql) in [
        (
            "the mean of one day",
            "SELECT avg(value) FROM days WHERE time >= '1990-01-11' AND time < '1990-01-12'",
        ),
        (
            "the mean of all days by station",
            "SELECT station, avg(value) FROM days GROUP BY station",
        ),
    ] {
        let name = format!("{count} files: {what}");
        figures.compare(name.as_str(), || run(runtime, &ctx, sql), vec![]);
    }
}

pub(crate) fn main() {
    let runtime = runtime();
    let folder = tempfile::tempdir().unwrap();
    let mut figures = Figures::new("side_by_side");
    wide(&mut figures, &runtime, folder.path());
    let plain = |hours, chunk, _| variable("value", hours, chunk, false);
    files(&mut figures, &runtime, folder.path(), ("64 files", plain));
    let own = "64 files with their own packing";
    files(&mut figures, &runtime, folder.path(), (own, packed));
    days(&mut figures, &runtime, folder.path());
    thousand(&mut figures, &runtime, folder.path());
    figures.finish();
}
