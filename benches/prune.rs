//! How little is read, and how fast is it, where the bounds of chunks say which ones matter?
//!
//! 4096 chunks of 1 MiB with zone maps; a 16th of that beside the same rows as Parquet, a row group
//! per chunk, and beside sessions in which one kind of pruning is switched off; 256 MiB in chunks that are cut on
//! both axes; a grid of a million chunks, of which only the plan is made. Warm, two partitions, times from SQL text to the result.
//! `GRIDFUSION_BENCH_SMALL=1` shrinks it for a smoke run; `cargo bench --bench prune -- alone` runs one part.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a benchmark stops where it fails"
)]

#[allow(dead_code, reason = "shared with the other benches, which use more of it")]
mod common;
#[path = "common/streamed.rs"]
mod streamed;

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use common::support::{query, reducing, session};
use common::{is_small, runtime};
use datafusion::config::TableParquetOptions;
use datafusion::dataframe::DataFrameWriteOptions;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::{ParquetReadOptions, SessionContext};
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use streamed::{PEAK, Streamed};
use tokio::runtime::Runtime;

/// Hours in a chunk of 1 MiB that spans the stations.
fn hours() -> u64 {
    if is_small() { 16 } else { 1024 }
}

const STATIONS: u64 = 256;

/// Chunks that span the stations, one after the other along the hours.
fn line(chunks: u64) -> Streamed {
    let shape = [chunks * hours(), STATIONS];
    Streamed { shape, chunk: [hours(), STATIONS], has_payloads: true, has_zones: true }
}

/// What a query took.
struct Measured {
    seconds: f64,
    /// Chunks read; nothing for plans and for peers.
    read: Option<usize>,
}

fn print(what: &str, measured: &Measured, chunks: Option<u64>, note: &str) {
    let read = match (measured.read, chunks) {
        (Some(read), Some(chunks)) => format!("{read} of {chunks}"),
        _ => String::new(),
    };
    println!("{what:52} {:>10.2} {read:>14}  {note}", measured.seconds * 1e3);
}

fn ratio(a: &Measured, b: &Measured, of: &str) -> String {
    format!("{:.2} x {of}", a.seconds / b.seconds)
}

/// Median seconds of some runs after a first one; a run that takes seconds is not repeated often.
fn median<T>(mut run: impl FnMut() -> T) -> (f64, T) {
    let start = Instant::now();
    let mut last = run();
    let runs = match start.elapsed().as_secs_f64() {
        _ if is_small() => 1,
        ..0.5 => 11,
        _ => 3,
    };
    let mut seconds = Vec::new();
    for _ in 0..runs {
        let start = Instant::now();
        last = run();
        seconds.push(start.elapsed().as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    (seconds[runs / 2], last)
}

fn measure(runtime: &Runtime, ctx: &SessionContext, sql: &str) -> Measured {
    let run = || {
        runtime.block_on(async {
            let plan = ctx.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
            black_box(collect(Arc::clone(&plan), ctx.task_ctx()).await.unwrap());
            plan
        })
    };
    let (seconds, plan) = median(run);
    Measured { seconds, read: chunks_read(&plan) }
}

fn chunks_read(plan: &Arc<dyn ExecutionPlan>) -> Option<usize> {
    let own = plan.metrics().and_then(|metrics| metrics.sum_by_name("chunks_read"));
    let below = plan.children().into_iter().filter_map(chunks_read);
    own.map(|read| read.as_usize()).into_iter().chain(below).reduce(|a, b| a + b)
}

async fn register(ctx: &SessionContext, path: &Path) {
    let path = path.to_str().unwrap();
    ctx.register_array("t", path, ArrayOptions::default()).await.unwrap();
}

/// The queries of few chunks, over any table of such rows.
fn needles() -> [(&'static str, String); 3] {
    [
        ("WHERE value > v, in one chunk", format!("SELECT * FROM t WHERE value > {}", PEAK / 2.0)),
        ("ORDER BY value DESC LIMIT 10", "SELECT * FROM t ORDER BY value DESC LIMIT 10".into()),
        ("ORDER BY value LIMIT 10", "SELECT * FROM t ORDER BY value LIMIT 10".into()),
    ]
}

fn many_chunks(runtime: &Runtime, directory: &Path) {
    let chunks = if is_small() { 64 } else { 4096 };
    let (array, path) = (line(chunks), directory.join("line.tet"));
    array.write(&path);
    println!("\n{chunks} chunks of {} kB", array.cells_per_chunk() * 4 / 1024);
    let ctx = reducing(2, 8192);
    runtime.block_on(register(&ctx, &path));
    for (what, sql) in needles() {
        print(what, &measure(runtime, &ctx, &sql), Some(chunks), "");
    }

    // Both over rows: a reduction would make the list's query another one.
    let rows = session(2, 8192);
    runtime.block_on(register(&rows, &path));
    let picked = "CREATE TABLE picked AS VALUES ('ST00007'), ('ST00099'), ('ST00200')";
    runtime.block_on(query(&rows, picked)).unwrap();
    let part = format!("time < {}", array.shape[0] / 16);
    let aggregate = "SELECT count(*), max(time), max(value) FROM t";
    let list = format!("{aggregate} WHERE station IN ('ST00007', 'ST00099', 'ST00200') AND {part}");
    let join = format!("{aggregate} JOIN picked ON station = column1 WHERE {part}");
    let list = measure(runtime, &rows, &list);
    let join = measure(runtime, &rows, &join);
    print("3 of 256 stations, as a list", &list, Some(chunks), "");
    print("3 of 256 stations, as a join", &join, Some(chunks), &ratio(&join, &list, "the list"));
    std::fs::remove_file(path).unwrap();
}

/// Writes the rows as Parquet with a row group per chunk.
async fn write_parquet(array: &Streamed, tet: &Path, parquet: &Path) {
    let ctx = session(1, 8192); // rows stay in order
    register(&ctx, tet).await;
    let mut options = TableParquetOptions::default();
    options.global.max_row_group_size = array.cells_per_chunk() as usize;
    options.global.compression = Some("uncompressed".into());
    let one_file = DataFrameWriteOptions::new().with_single_file_output(true);
    let rows = ctx.table("t").await.unwrap();
    rows.write_parquet(parquet.to_str().unwrap(), one_file, Some(options)).await.unwrap();
}

fn beside_parquet(runtime: &Runtime, directory: &Path) {
    let chunks = if is_small() { 16 } else { 256 };
    let (array, tet) = (line(chunks), directory.join("part.tet"));
    let parquet = directory.join("part.parquet");
    array.write(&tet);
    runtime.block_on(write_parquet(&array, &tet, &parquet));
    println!("\n{chunks} chunks beside {chunks} row groups of Parquet");
    let (ours, theirs) = (reducing(2, 8192), session(2, 8192));
    runtime.block_on(register(&ours, &tet));
    let path = parquet.to_str().unwrap();
    runtime.block_on(theirs.register_parquet("t", path, ParquetReadOptions::default())).unwrap();
    for (what, sql) in needles() {
        let (ours, theirs) = (measure(runtime, &ours, &sql), measure(runtime, &theirs, &sql));
        print(what, &ours, Some(chunks), &ratio(&ours, &theirs, "Parquet"));
        print("  the same over Parquet", &theirs, None, "");
    }
}

/// A session whose table is the file; `adds` what gridfusion adds to a session, then with some settings.
fn with_settings(
    runtime: &Runtime,
    path: &Path,
    adds: bool,
    options: ArrayOptions,
    settings: &[&str],
) -> SessionContext {
    let ctx = if adds { reducing(2, 8192) } else { session(2, 8192) };
    runtime.block_on(async {
        ctx.register_array("t", path.to_str().unwrap(), options).await.unwrap();
        for setting in settings {
            query(&ctx, &format!("SET {setting} = false")).await.unwrap();
        }
    });
    ctx
}

/// The best of some runs of the same query in several sessions, in turn, so that all meet the same machine.
fn in_turn<const N: usize>(
    runtime: &Runtime,
    sessions: [&SessionContext; N],
    sql: &str,
) -> [Measured; N] {
    let runs = if is_small() { 1 } else { 9 };
    let mut best = [(); N].map(|()| Measured { seconds: f64::INFINITY, read: None });
    for _ in 0..=runs {
        for (ctx, best) in sessions.iter().zip(&mut best) {
            let start = Instant::now();
            let plan = runtime.block_on(async {
                let plan = ctx.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
                black_box(collect(Arc::clone(&plan), ctx.task_ctx()).await.unwrap());
                plan
            });
            let seconds = start.elapsed().as_secs_f64().min(best.seconds);
            *best = Measured { seconds, read: chunks_read(&plan) };
        }
    }
    best
}

/// Times the same query with and without each kind of pruning at run time.
fn each_alone(runtime: &Runtime, directory: &Path) {
    let (chunks, path) = (if is_small() { 16 } else { 256 }, directory.join("alone.tet"));
    line(chunks).write(&path);
    println!("\n{chunks} chunks, beside sessions that lack one thing");
    let trusting = ArrayOptions::default;
    let full = with_settings(runtime, &path, true, trusting(), &[]);
    let compare = |what: &str, sql: &str, without: &SessionContext, lack: &str| {
        let [with, without] = in_turn(runtime, [&full, without], sql);
        print(what, &with, Some(chunks), &ratio(&with, &without, "the next"));
        print(&format!("  without {lack}"), &without, Some(chunks), "");
    };
    // The selection cuts every chunk, so that no zone map answers for one.
    let blind = trusting().with_trust_zone_maps(false);
    let blind = with_settings(runtime, &path, true, blind, &[]);
    let over_rows = with_settings(runtime, &path, true, trusting(), &["gridfusion.reduce"]);
    for extreme in ["max(value)", "min(value)", "min(value), max(value)"] {
        let sql = format!("SELECT {extreme} FROM t WHERE station LIKE '%7'");
        compare(extreme, &sql, &blind, "zone maps");
        compare(extreme, &sql, &over_rows, "a reduction, over rows");
    }
    let sort_pushdown = "datafusion.optimizer.enable_sort_pushdown";
    let in_grid_order = with_settings(runtime, &path, false, trusting(), &[sort_pushdown]);
    let without_rule = with_settings(runtime, &path, false, trusting(), &[]);
    for order in ["value DESC NULLS LAST", "value"] {
        let sql = format!("SELECT * FROM t ORDER BY {order} LIMIT 10");
        compare(&format!("ORDER BY {order}"), &sql, &in_grid_order, "a priority");
        let sql = format!("SELECT * FROM t WHERE value IS NOT NULL ORDER BY {order} LIMIT 10");
        compare(&format!("a filter, ORDER BY {order}"), &sql, &without_rule, "BestFirstRule");
    }
    std::fs::remove_file(path).unwrap();
}

fn both_axes(runtime: &Runtime, directory: &Path) {
    let (rows, path) = (if is_small() { 64 } else { 256 } * hours(), directory.join("both.tet"));
    let chunk = [rows / 64, STATIONS / 4];
    let array = Streamed { shape: [rows, STATIONS], chunk, has_payloads: true, has_zones: false };
    array.write(&path);
    println!("\n{} chunks, cut on both axes", array.chunks());
    let ctx = reducing(2, 8192);
    runtime.block_on(register(&ctx, &path));
    for order in ["time", "time DESC"] {
        let sql = format!("SELECT * FROM t ORDER BY {order} LIMIT 10");
        let measured = measure(runtime, &ctx, &sql);
        print(&format!("ORDER BY {order} LIMIT 10"), &measured, Some(array.chunks()), "");
    }
}

fn million_chunks(runtime: &Runtime, directory: &Path) {
    let along = if is_small() { 30 } else { 1000 };
    // Bounds are looked at only where more would be read without them: large chunks.
    let (edge, path) = (1 << 10, directory.join("plan.tet"));
    let shape = [along * edge, along * edge];
    Streamed { shape, chunk: [edge; 2], has_payloads: false, has_zones: true }.write(&path);
    println!("\na grid of {} chunks, planned only", along * along);
    let plan = |what: &str, trusts: bool, predicate: String| {
        let ctx = reducing(2, 8192);
        let options = ArrayOptions::default().with_trust_zone_maps(trusts);
        runtime.block_on(ctx.register_array("t", path.to_str().unwrap(), options)).unwrap();
        let sql = format!("SELECT * FROM t WHERE {predicate}");
        // The first plan reads the zone maps, which the table keeps.
        let (seconds, _) = median(|| {
            runtime.block_on(async {
                ctx.sql(&sql).await.unwrap().create_physical_plan().await.unwrap()
            })
        });
        print(what, &Measured { seconds, read: None }, None, "");
    };
    let middle = shape[0] / 2;
    plan(
        "a predicate over two dimensions",
        false,
        format!("time < {middle} OR station < 'ST00100'"),
    );
    plan("a predicate over values", true, format!("value > {}", along * along - 3));
    let both = format!("value > {} AND (time > {middle} OR value < 10)", along * along - 3);
    plan("a predicate over values and a dimension", true, both);
}

/// A part of the bench, over files in a folder.
type Part = fn(&Runtime, &Path);

fn main() {
    // Cargo names a directory below the target directory.
    let parent = option_env!("CARGO_TARGET_TMPDIR").map_or_else(std::env::temp_dir, PathBuf::from);
    let directory = tempfile::tempdir_in(parent).unwrap();
    let runtime = runtime();
    println!("{:52} {:>10} {:>14}", "", "ms", "chunks read");
    let parts: [(&str, Part); 5] = [
        ("many", many_chunks),
        ("parquet", beside_parquet),
        ("alone", each_alone),
        ("both", both_axes),
        ("million", million_chunks),
    ];
    let names: Vec<String> =
        std::env::args().skip(1).filter(|name| !name.starts_with('-')).collect();
    for (name, part) in parts {
        if names.is_empty() || names.iter().any(|it| it == name) {
            part(&runtime, directory.path());
        }
    }
}
