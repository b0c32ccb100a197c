//! How fast is a scan, against the same rows in memory and against the codec itself?
//!
//! The array of [`common`], warm, two partitions, aggregated over rows. After criterion's own report,
//! the ratios to each baseline are printed.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a benchmark stops where it fails"
)]

#[allow(dead_code, reason = "shared with the other benches, which use more of it")]
mod common;

use std::sync::Arc;

use arrow::array::{RecordBatch, UInt32Array};
use arrow::compute::take_record_batch;
use common::support::session;
use common::{decompress, file, run, runtime, size, table, values};
use criterion::{Criterion, criterion_group};
use datafusion::datasource::MemTable;
use datafusion::physical_plan::ExecutionPlanProperties;
use datafusion::prelude::SessionContext;

const CONSUME_ALL: &str = "SELECT max(time), max(station), max(value) FROM t";
const COUNT_VALUES: &str = "SELECT count(value) FROM t";
const MAX_VALUE: &str = "SELECT max(value) FROM t";
const ONE_DAY: &str = "SELECT time, value FROM t WHERE station = 'ST00007'
    AND time BETWEEN '1990-02-01T00:00:00' AND '1990-02-01T23:00:00'";

/// A session in which a scan reads everything: maxima do not rule out chunks.
fn reading_all() -> SessionContext {
    let ctx = session(2, 8192);
    let state = ctx.state_ref();
    let mut state = state.write();
    state.config_mut().options_mut().optimizer.enable_aggregate_dynamic_filter_pushdown = false;
    drop(state);
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
    let memory = reading_all();
    memory
        .register_table("t", Arc::new(MemTable::try_new(plan.schema(), partitions).unwrap()))
        .unwrap();
    memory
}

/// Criterion's mean time of a benchmark in nanoseconds, if it has just been measured.
fn mean(name: &str) -> Option<f64> {
    let target = std::env::var("CARGO_TARGET_DIR").unwrap_or("target".into());
    let path = format!("{target}/criterion/scan/{name}/new/estimates.json");
    let estimates: serde_json::Value = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
    estimates["mean"]["point_estimate"].as_f64()
}

fn scan(criterion: &mut Criterion) {
    let runtime = runtime();
    let data = values();
    let (_, stations, chunk) = size();
    let tile_len = (chunk * stations * 4) as usize;
    let frames: Vec<Vec<u8>> =
        data.chunks(tile_len).map(|tile| zstd::encode_all(tile, 1).unwrap()).collect();
    let (raw_file, zstd_file) = (file(data.clone(), false), file(data, true));
    let raw = runtime.block_on(table(&raw_file, reading_all()));
    let packed = runtime.block_on(table(&zstd_file, reading_all()));
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
