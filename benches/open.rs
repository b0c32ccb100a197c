//! What does opening cost when the index has a million rows, and how much memory does a scan hold?
//!
//! Prints anonymous memory (not the page cache that a mapping shows) beside criterion's times; on
//! systems without `/proc` only the times.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a benchmark stops where it fails"
)]

#[allow(dead_code, reason = "shared with the tests, which use more of it")]
#[path = "../tests/it/support/sql.rs"]
mod sql;
#[allow(dead_code, reason = "shared with the tests, which use more of it")]
#[path = "../tests/it/support/tet_writer.rs"]
mod tet_writer;

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use datafusion::prelude::SessionContext;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use sql::session;
use tet_writer::{F32, I32, Layout, TempTet, TestDataset, tet_bytes};
use tokio::runtime::Runtime;

fn small() -> bool {
    std::env::var_os("GRIDFUSION_BENCH_SMALL").is_some()
}

/// A line of chunks of one cell.
fn many_chunks() -> TempTet {
    let chunks: u64 = if small() { 1_000 } else { 1_000_000 };
    let data = (0..chunks as i32).flat_map(i32::to_le_bytes).collect();
    let dataset = TestDataset::new("t", I32, &[chunks], &[1], data);
    TempTet::new(&tet_bytes(&[dataset], &Layout::default()))
}

/// 256 MiB in chunks of 4 MiB, compressed, so that every byte must be decoded into memory.
fn large() -> TempTet {
    let (rows, chunk) = if small() { (4_096, 512) } else { (262_144, 4_096) };
    let data = (0..rows * 256).flat_map(|i| ((i % 9_973) as f32).to_le_bytes()).collect();
    let dataset = TestDataset::new("t", F32, &[rows, 256], &[chunk, 256], data).with_zstd(true);
    TempTet::new(&tet_bytes(&[dataset], &Layout::default()))
}

async fn open(file: &TempTet) -> SessionContext {
    let ctx = session(2, 8192);
    ctx.register_array("t", file.location(), ArrayOptions::default()).await.unwrap();
    ctx
}

/// Anonymous resident memory of this process in kB.
fn anonymous_kb() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("RssAnon:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Runs `work` and prints by how much anonymous memory rose above what it was, at its peak.
fn peak(what: &str, work: impl FnOnce()) {
    let Some(before) = anonymous_kb() else { return work() };
    let (peak, done) = (Arc::new(AtomicU64::new(before)), Arc::new(AtomicBool::new(false)));
    let (seen, stop) = (Arc::clone(&peak), Arc::clone(&done));
    let watcher = std::thread::spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            seen.fetch_max(anonymous_kb().unwrap_or(0), Ordering::Relaxed);
            std::thread::sleep(Duration::from_micros(200));
        }
    });
    work();
    done.store(true, Ordering::Relaxed);
    watcher.join().unwrap();
    let rise = peak.load(Ordering::Relaxed).saturating_sub(before);
    println!("{what}: at most {:.1} MB over the start", rise as f64 / 1000.0);
}

fn run(runtime: &Runtime, ctx: &SessionContext, sql: &str) {
    let batches = runtime.block_on(async { ctx.sql(sql).await.unwrap().collect().await.unwrap() });
    black_box(batches);
}

fn opening(criterion: &mut Criterion) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (file, large) = (many_chunks(), large());
    let one_cell = "SELECT value FROM t WHERE dim_0 = 777";
    run(&runtime, &runtime.block_on(open(&file)), one_cell); // starts threads, fills caches
    peak("opening 1,000,000 chunks and reading one cell", || {
        run(&runtime, &runtime.block_on(open(&file)), one_cell);
    });
    let ctx = runtime.block_on(open(&large));
    peak("scanning 256 MiB", || run(&runtime, &ctx, "SELECT max(value) FROM t"));

    let mut group = criterion.benchmark_group("open");
    group.bench_function("1,000,000 chunks", |b| {
        b.iter(|| black_box(runtime.block_on(open(&file))));
    });
    let ctx = runtime.block_on(open(&file));
    group.bench_function("one cell of 1,000,000 chunks", |b| {
        b.iter(|| run(&runtime, &ctx, one_cell))
    });
    group.finish();
}

criterion_group!(benches, opening);
criterion_main!(benches);
