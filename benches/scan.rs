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

use common::support::session;
use common::{decompress, exploded, file, mean, run, runtime, size, table, values};
use criterion::{Criterion, criterion_group};

const CONSUME_ALL: &str = "SELECT max(time), max(station), max(value) FROM t";
const COUNT_VALUES: &str = "SELECT count(value) FROM t";
const MAX_VALUE: &str = "SELECT max(value) FROM t";
const ONE_DAY: &str = "SELECT time, value FROM t WHERE station = 'ST00007'
    AND time BETWEEN '1990-02-01T00:00:00' AND '1990-02-01T23:00:00'";

fn scan(criterion: &mut Criterion) {
    let runtime = runtime();
    let data = values();
    let (_, stations, chunk) = size();
    let tile_len = (chunk * stations * 4) as usize;
    let frames: Vec<Vec<u8>> =
        data.chunks(tile_len).map(|tile| zstd::encode_all(tile, 1).unwrap()).collect();
    let (raw_file, zstd_file) = (file(data.clone(), false), file(data, true));
    let raw = runtime.block_on(table(&raw_file, session(2, 8192)));
    let packed = runtime.block_on(table(&zstd_file, session(2, 8192)));
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
        if let (Some(ours), Some(theirs)) = (mean("scan", name), mean("scan", baseline)) {
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
