//! How fast is a scan, against the same rows in memory and against the codec itself?
//!
//! The array: 262144 hours x 256 stations of f32 (256 MiB) in chunks of 4096 x 256, text labels on
//! one axis and times on the other, with zone maps as the reference writer embeds them, warm, two
//! partitions. After criterion's own report, the ratios
//! to each baseline are printed. `GRIDFUSION_BENCH_SMALL=1` shrinks everything for a smoke run.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a benchmark stops where it fails"
)]

#[allow(dead_code, reason = "shared with the tests, which use more of it")]
#[path = "../tests/it/support.rs"]
mod support;

use std::hint::black_box;
use std::sync::Arc;

use arrow::array::{RecordBatch, UInt32Array};
use arrow::compute::take_record_batch;
use criterion::{Criterion, criterion_group};
use datafusion::datasource::MemTable;
use datafusion::physical_plan::ExecutionPlanProperties;
use datafusion::prelude::SessionContext;
use gridfusion::{GridfusionSessionContextExt, TetReadOptions};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde_json::json;
use support::{F32, I32, Layout, TempTet, TestDataset, session, tet_bytes};
use tokio::runtime::Runtime;

const CONSUME_ALL: &str = "SELECT max(time), max(station), max(value) FROM t";
const COUNT_VALUES: &str = "SELECT count(value) FROM t";
const MAX_VALUE: &str = "SELECT max(value) FROM t";
const ONE_DAY: &str = "SELECT time, value FROM t WHERE station = 'ST00007'
    AND time BETWEEN '1990-02-01T00:00:00' AND '1990-02-01T23:00:00'";

/// Hours, stations, hours per chunk.
fn size() -> (u64, u64, u64) {
    if std::env::var_os("GRIDFUSION_BENCH_SMALL").is_some() {
        (8192, 16, 1024)
    } else {
        (262_144, 256, 4096)
    }
}

fn values() -> Vec<u8> {
    let (hours, stations, _) = size();
    let mut rng = SmallRng::seed_from_u64(0);
    let yearly = |hour: u64| 280.0 + 10.0 * (hour as f64 / 8760.0 * std::f64::consts::TAU).sin();
    (0..hours)
        .flat_map(|hour| (0..stations).map(move |_| hour))
        .flat_map(|hour| {
            let value = yearly(hour) + rng.random_range(-6.0..6.0);
            (((value * 100.0).round() / 100.0) as f32).to_le_bytes()
        })
        .collect()
}

fn file(data: Vec<u8>, zstd: bool) -> TempTet {
    let (hours, stations, chunk) = size();
    let labels: Vec<String> = (0..stations).map(|i| format!("ST{i:05}")).collect();
    let metadata =
        json!({"dim_names": ["time", "station"], "coords": {"station": {"labels": labels}}});
    let value = TestDataset::new("t", F32, &[hours, stations], &[chunk, stations], data)
        .with_zstd(zstd)
        .with_metadata(metadata);
    let hours_since = (0..hours as i32).flat_map(i32::to_le_bytes).collect();
    let time = TestDataset::new("time", I32, &[hours], &[hours], hours_since).with_metadata(
        json!({"dim_names": ["time"], "attrs": {"units": "hours since 1990-01-01"}}),
    );
    let zone = |number: u64| {
        let cells = chunk.min(hours - number * chunk) * stations;
        json!({"dataset_id": 0, "chunk_index": [number, 0], "element_count": cells, "null_count": 0})
    };
    let zones: Vec<_> = (0..hours.div_ceil(chunk)).map(zone).collect();
    let zones = Some(json!({"version": 1, "chunks": zones}));
    TempTet::new(&tet_bytes(
        &[value, time],
        &Layout { history_version: Some(2), zones, ..Layout::default() },
    ))
}

async fn table(file: &TempTet) -> SessionContext {
    let ctx = session(2, 8192);
    ctx.register_tet("t", file.location(), TetReadOptions::default()).await.unwrap();
    ctx
}

/// The same rows in memory of their own: no column shares a buffer with another batch.
async fn exploded(ctx: &SessionContext) -> SessionContext {
    let plan = ctx.sql("SELECT * FROM t").await.unwrap().create_physical_plan().await.unwrap();
    let mut partitions = Vec::new();
    for partition in 0..plan.output_partitioning().partition_count() {
        let stream = plan.execute(partition, ctx.task_ctx()).unwrap();
        let batches: Vec<RecordBatch> = futures::TryStreamExt::try_collect(stream).await.unwrap();
        let copy = |batch: &RecordBatch| {
            let rows = UInt32Array::from_iter_values(0..batch.num_rows() as u32);
            take_record_batch(batch, &rows).unwrap()
        };
        partitions.push(batches.iter().map(copy).collect());
    }
    let memory = session(2, 8192);
    memory
        .register_table("t", Arc::new(MemTable::try_new(plan.schema(), partitions).unwrap()))
        .unwrap();
    memory
}

fn run(runtime: &Runtime, ctx: &SessionContext, sql: &str) {
    let batches = runtime.block_on(async { ctx.sql(sql).await.unwrap().collect().await.unwrap() });
    black_box(batches);
}

/// Decompresses every chunk with the zstd crate on two threads, as `file` stores them.
fn decompress(frames: &[Vec<u8>], tile_len: usize) {
    std::thread::scope(|scope| {
        for half in frames.chunks(frames.len().div_ceil(2)) {
            scope.spawn(move || {
                for frame in half {
                    black_box(zstd::bulk::decompress(frame, tile_len).unwrap());
                }
            });
        }
    });
}

fn scan(criterion: &mut Criterion) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let data = values();
    let (_, stations, chunk) = size();
    let tile_len = (chunk * stations * 4) as usize;
    let frames: Vec<Vec<u8>> =
        data.chunks(tile_len).map(|tile| zstd::encode_all(tile, 1).unwrap()).collect();
    let (raw_file, zstd_file) = (file(data.clone(), false), file(data, true));
    let raw = runtime.block_on(table(&raw_file));
    let packed = runtime.block_on(table(&zstd_file));
    let memory = runtime.block_on(exploded(&raw));

    let mut group = criterion.benchmark_group("scan");
    group.sample_size(10);
    group.bench_function("rows in memory", |b| b.iter(|| run(&runtime, &memory, CONSUME_ALL)));
    group.bench_function("raw", |b| b.iter(|| run(&runtime, &raw, CONSUME_ALL)));
    group.bench_function("decompress only", |b| b.iter(|| decompress(&frames, tile_len)));
    // Counting needs every value but does next to nothing with it: this is the price of reading.
    group.bench_function("zstd, count", |b| b.iter(|| run(&runtime, &packed, COUNT_VALUES)));
    group.bench_function("zstd, max", |b| b.iter(|| run(&runtime, &packed, MAX_VALUE)));
    group.bench_function("one day of one station", |b| b.iter(|| run(&runtime, &raw, ONE_DAY)));
    group.finish();
}

/// Criterion's mean time of a benchmark in nanoseconds, if it has just been measured.
fn mean(name: &str) -> Option<f64> {
    let target = std::env::var("CARGO_TARGET_DIR").unwrap_or("target".into());
    let path = format!("{target}/criterion/scan/{name}/new/estimates.json");
    let estimates: serde_json::Value = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
    estimates["mean"]["point_estimate"].as_f64()
}

fn ratios() {
    for (name, baseline) in [
        ("raw", "rows in memory"),
        ("zstd, count", "decompress only"),
        ("zstd, max", "decompress only"),
    ] {
        if let (Some(ours), Some(theirs)) = (mean(name), mean(baseline)) {
            println!("{name} / {baseline}: {:.2}", ours / theirs);
        }
    }
}

criterion_group!(benches, scan);

fn main() {
    benches();
    Criterion::default().configure_from_args().final_summary();
    if !std::env::args().any(|argument| argument == "--test") {
        ratios();
    }
}
