//! Measures how little a query reads, and how fast it is, if chunk statistics show which chunks matter.
//!
//! - `many`: 4096 chunks of 1 MiB with zone maps.
//! - `parquet`: 256 such chunks, compared with the same rows as Parquet, a row group per chunk.
//! - `alone`: 256 such chunks, compared with sessions that lack one kind of pruning.
//! - `both`: 256 MiB in chunks that are split on both axes.
//! - `million`: plans over a grid of a million chunks.
//!
//! Queries are warm, on two partitions, and are measured from SQL text to the result.
//! `GRIDFUSION_BENCH_SMALL=1` shrinks them for a smoke run. `cargo bench -- prune alone` runs one
//! part, and does not update `FIGURES.md`.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::config::TableParquetOptions;
use datafusion::dataframe::DataFrameWriteOptions;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::{ParquetReadOptions, SessionContext};
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use tokio::runtime::Runtime;

use crate::common::figures::{Baseline, Figures, Query};
use crate::common::streamed::{PEAK, Streamed};
use crate::common::support::{query, reducing, session};
use crate::common::{is_small, run, runtime};

/// Hours in a chunk of 1 MiB that spans the stations.
fn hours() -> u64 {
    if is_small() { 16 } else { 1024 }
}

const STATIONS: u64 = 256;

/// An array of chunks that span the stations, and follow one another along the hours.
fn line(chunks: u64) -> Streamed {
    let shape = [chunks * hours(), STATIONS];
    Streamed { shape, chunk: [hours(), STATIONS], has_payloads: true, has_zones: true }
}

/// The number of chunks that a query reads, out of `chunks`, as text.
fn count_chunks(runtime: &Runtime, ctx: &SessionContext, sql: &str, chunks: u64) -> String {
    let read = runtime.block_on(async {
        let plan = ctx.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
        black_box(collect(Arc::clone(&plan), ctx.task_ctx()).await.unwrap());
        chunks_read(&plan)
    });
    read.map_or_else(String::new, |read| format!("{read} of {chunks}"))
}

/// The state that all parts of the bench share.
struct Bench<'a> {
    runtime: &'a Runtime,
    directory: &'a Path,
    figures: Figures,
}

/// A name, a session, and a query in the session.
type Contestant<'a> = (&'a str, &'a SessionContext, &'a str);

impl Bench<'_> {
    /// Adds a query over a table of `chunks` chunks, compared with another query or session, if any.
    fn compare(&mut self, ours: Contestant<'_>, chunks: u64, other: Option<Contestant<'_>>) {
        let runtime = self.runtime;
        let (name, ctx, sql) = ours;
        let query = Query { name, chunks: count_chunks(runtime, ctx, sql, chunks) };
        let baseline =
            |(name, ctx, sql)| -> Baseline<'_> { (name, Box::new(move || run(runtime, ctx, sql))) };
        let baselines = other.map(baseline).into_iter().collect();
        self.figures.compare(query, || run(runtime, ctx, sql), baselines);
    }
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

/// Queries whose answers are in few chunks.
fn needles() -> [(&'static str, String); 3] {
    [
        ("`WHERE value > v`", format!("SELECT * FROM t WHERE value > {}", PEAK / 2.0)),
        ("`ORDER BY value DESC LIMIT 10`", "SELECT * FROM t ORDER BY value DESC LIMIT 10".into()),
        ("`ORDER BY value LIMIT 10`", "SELECT * FROM t ORDER BY value LIMIT 10".into()),
    ]
}

fn many_chunks(bench: &mut Bench<'_>) {
    let chunks = if is_small() { 64 } else { 4096 };
    let (array, path) = (line(chunks), bench.directory.join("line.tet"));
    array.write(&path);
    let ctx = reducing(2, 8192);
    bench.runtime.block_on(register(&ctx, &path));
    for (name, sql) in needles() {
        bench.compare((name, &ctx, &sql), chunks, None);
    }

    // Both run over rows: otherwise the query with a list would become a reduction.
    let rows = session(2, 8192);
    bench.runtime.block_on(register(&rows, &path));
    let picked = "CREATE TABLE picked AS VALUES ('ST00007'), ('ST00099'), ('ST00200')";
    bench.runtime.block_on(query(&rows, picked)).unwrap();
    let part = format!("time < {}", array.shape[0] / 16);
    let aggregate = "SELECT count(*), max(time), max(value) FROM t";
    let list = format!("{aggregate} WHERE station IN ('ST00007', 'ST00099', 'ST00200') AND {part}");
    let join = format!("{aggregate} JOIN picked ON station = column1 WHERE {part}");
    bench.compare(
        ("3 of 256 stations, by a join", &rows, &join),
        chunks,
        Some(("the same stations in a list", &rows, &list)),
    );
    std::fs::remove_file(path).unwrap();
}

/// Writes the rows as Parquet with a row group per chunk.
async fn write_parquet(array: &Streamed, tet: &Path, parquet: &Path) {
    let ctx = session(1, 8192); // one partition keeps the order of rows
    register(&ctx, tet).await;
    let mut options = TableParquetOptions::default();
    options.global.max_row_group_size = array.cells_per_chunk() as usize;
    options.global.compression = Some("uncompressed".into());
    let one_file = DataFrameWriteOptions::new().with_single_file_output(true);
    let rows = ctx.table("t").await.unwrap();
    rows.write_parquet(parquet.to_str().unwrap(), one_file, Some(options)).await.unwrap();
}

fn beside_parquet(bench: &mut Bench<'_>) {
    let chunks = if is_small() { 16 } else { 256 };
    let (array, tet) = (line(chunks), bench.directory.join("part.tet"));
    let parquet = bench.directory.join("part.parquet");
    array.write(&tet);
    bench.runtime.block_on(write_parquet(&array, &tet, &parquet));
    let (ours, theirs) = (reducing(2, 8192), session(2, 8192));
    bench.runtime.block_on(register(&ours, &tet));
    let path = parquet.to_str().unwrap();
    let options = ParquetReadOptions::default();
    bench.runtime.block_on(theirs.register_parquet("t", path, options)).unwrap();
    for (name, sql) in needles() {
        let peer = ("DataFusion over Parquet, a row group per chunk", &theirs, sql.as_str());
        bench.compare((name, &ours, &sql), chunks, Some(peer));
    }
}

/// A session with the file as its table and some settings off. With `adds`, it has gridfusion's rules and
/// functions.
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

/// Compares queries with the same queries in sessions that lack one kind of pruning at run time.
fn each_alone(bench: &mut Bench<'_>) {
    let (chunks, path) = (if is_small() { 16 } else { 256 }, bench.directory.join("alone.tet"));
    line(chunks).write(&path);
    let trusting = ArrayOptions::default;
    let runtime = bench.runtime;
    let full = with_settings(runtime, &path, true, trusting(), &[]);
    let mut compare = |name: &str, sql: &str, without: &SessionContext, lack: &str| {
        let lacking = format!("the same without {lack}");
        bench.compare((name, &full, sql), chunks, Some((&lacking, without, sql)));
    };
    // The selection takes a part of each chunk, so no zone map answers for a chunk.
    let blind = trusting().with_trust_zone_maps(false);
    let blind = with_settings(runtime, &path, true, blind, &[]);
    let over_rows =
        with_settings(runtime, &path, true, trusting(), &["gridfusion.optimizer.enable_reduce"]);
    for extreme in ["max(value)", "min(value)", "min(value), max(value)"] {
        let sql = format!("SELECT {extreme} FROM t WHERE station LIKE '%7'");
        let name = format!("`{extreme}` of some stations");
        compare(&name, &sql, &blind, "chunk statistics");
        compare(&name, &sql, &over_rows, "a reduction, over rows");
    }
    let sort_pushdown = "datafusion.optimizer.enable_sort_pushdown";
    let in_grid_order = with_settings(runtime, &path, false, trusting(), &[sort_pushdown]);
    let without_rule = with_settings(runtime, &path, false, trusting(), &[]);
    for order in ["value DESC NULLS LAST", "value"] {
        let sql = format!("SELECT * FROM t ORDER BY {order} LIMIT 10");
        compare(
            &format!("`ORDER BY {order}`"),
            &sql,
            &in_grid_order,
            "reading the best chunks first",
        );
        let sql = format!("SELECT * FROM t WHERE value IS NOT NULL ORDER BY {order} LIMIT 10");
        compare(
            &format!("`WHERE value IS NOT NULL ORDER BY {order}`"),
            &sql,
            &without_rule,
            "gridfusion's rule for filters",
        );
    }
    std::fs::remove_file(path).unwrap();
}

fn both_axes(bench: &mut Bench<'_>) {
    let rows = if is_small() { 64 } else { 256 } * hours();
    let path = bench.directory.join("both.tet");
    let chunk = [rows / 64, STATIONS / 4];
    let array = Streamed { shape: [rows, STATIONS], chunk, has_payloads: true, has_zones: false };
    array.write(&path);
    let ctx = reducing(2, 8192);
    bench.runtime.block_on(register(&ctx, &path));
    for order in ["time", "time DESC"] {
        let sql = format!("SELECT * FROM t ORDER BY {order} LIMIT 10");
        let name = format!("`ORDER BY {order} LIMIT 10`, chunks cut on both axes");
        bench.compare((&name, &ctx, &sql), array.chunks(), None);
    }
}

fn million_chunks(bench: &mut Bench<'_>) {
    let along = if is_small() { 30 } else { 1000 };
    // Large chunks, because zone maps are read only if chunks would cost more.
    let (edge, path) = (1 << 10, bench.directory.join("plan.tet"));
    let shape = [along * edge, along * edge];
    Streamed { shape, chunk: [edge; 2], has_payloads: false, has_zones: true }.write(&path);
    let mut plan = |what: &str, trusts: bool, predicate: String| {
        let ctx = reducing(2, 8192);
        let options = ArrayOptions::default().with_trust_zone_maps(trusts);
        let path = path.to_str().unwrap();
        bench.runtime.block_on(ctx.register_array("t", path, options)).unwrap();
        let sql = format!("SELECT * FROM t WHERE {predicate}");
        // The first plan reads the chunk statistics, which the table keeps.
        let planning = || {
            bench.runtime.block_on(async {
                ctx.sql(&sql).await.unwrap().create_physical_plan().await.unwrap();
            })
        };
        let name = format!("only a plan of {} chunks, a predicate over {what}", along * along);
        bench.figures.compare(name.as_str(), planning, vec![]);
    };
    let middle = shape[0] / 2;
    plan("two dimensions", false, format!("time < {middle} OR station < 'ST00100'"));
    plan("values", true, format!("value > {}", along * along - 3));
    let both = format!("value > {} AND (time > {middle} OR value < 10)", along * along - 3);
    plan("values and a dimension", true, both);
}

/// A part of the bench.
type Part = fn(&mut Bench<'_>);

pub(crate) fn main() {
    // Cargo names a directory below the target directory.
    let parent = option_env!("CARGO_TARGET_TMPDIR").map_or_else(std::env::temp_dir, PathBuf::from);
    let directory = tempfile::tempdir_in(parent).unwrap();
    let (runtime, mut figures) = (runtime(), Figures::with_chunks("prune"));
    let names = figures.take_texts();
    let mut bench = Bench { runtime: &runtime, directory: directory.path(), figures };
    let parts: [(&str, Part); 5] = [
        ("many", many_chunks),
        ("parquet", beside_parquet),
        ("alone", each_alone),
        ("both", both_axes),
        ("million", million_chunks),
    ];
    for (name, part) in parts {
        if names.is_empty() || names.iter().any(|it| it == name) {
            part(&mut bench);
        }
    }
    // `FIGURES.md` shows all parts, so single parts do not update it.
    if names.is_empty() {
        bench.figures.finish();
    }
}
