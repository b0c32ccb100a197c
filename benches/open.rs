//! Measures the time to open a file whose index has a million rows, and the memory of a scan.
//!
//! Memory is anonymous memory, without the page cache of a mapping. Without `/proc`, the bench gives only
//! times.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a benchmark stops where it fails"
)]

#[allow(dead_code, reason = "shared with the other benches, which use more of it")]
mod common;

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use common::figures::Figures;
use common::support::{F32, I32, Layout, TempTet, TestDataset, session, tet_bytes};
use common::{is_small, run, runtime, table};

/// An array of one axis, in chunks of one cell.
fn many_chunks() -> TempTet {
    let chunks: u64 = if is_small() { 1_000 } else { 1_000_000 };
    let data = (0..chunks as i32).flat_map(i32::to_le_bytes).collect();
    let dataset = TestDataset::new("t", I32, &[chunks], &[1], data);
    TempTet::new(&tet_bytes(&[dataset], &Layout::default()))
}

/// 256 MiB in chunks of 4 MiB, compressed, so that every byte must be decoded into memory.
fn large() -> TempTet {
    let (rows, chunk) = if is_small() { (4_096, 512) } else { (262_144, 4_096) };
    let data = (0..rows * 256).flat_map(|i| ((i % 9_973) as f32).to_le_bytes()).collect();
    let dataset = TestDataset::new("t", F32, &[rows, 256], &[chunk, 256], data).with_zstd(true);
    TempTet::new(&tet_bytes(&[dataset], &Layout::default()))
}

/// Anonymous resident memory of this process in kB.
fn anonymous_kb() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("RssAnon:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Runs `work`; returns the megabytes by which anonymous memory rose at its peak. `None` without `/proc`.
fn peak(work: impl FnOnce()) -> Option<f64> {
    let Some(before) = anonymous_kb() else {
        work();
        return None;
    };
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
    Some(peak.load(Ordering::Relaxed).saturating_sub(before) as f64 / 1000.0)
}

fn main() {
    let runtime = runtime();
    let (many, large) = (many_chunks(), large());
    let open = |file| runtime.block_on(table(file, session(2, 8192)));
    let one_cell = "SELECT value FROM t WHERE dim_0 = 777";
    let ctx = open(&many);
    run(&runtime, &ctx, one_cell); // starts threads, fills caches

    let mut figures = Figures::new("open");
    let opening = || {
        black_box(open(&many));
    };
    figures.compare("opening a file of 1,000,000 chunks", opening, vec![]);
    let reading = || run(&runtime, &ctx, one_cell);
    figures.compare("one cell of 1,000,000 chunks", reading, vec![]);
    let opened = peak(|| run(&runtime, &open(&many), one_cell));
    let ctx = open(&large);
    let scanned = peak(|| run(&runtime, &ctx, "SELECT max(value) FROM t"));
    if let (Some(opened), Some(scanned)) = (opened, scanned) {
        figures.remark(&format!(
            "Memory rises by at most {scanned:.0} MB while a query scans 256 MiB of zstd chunks. It rises by {opened:.1} MB while \
             gridfusion opens 1,000,000 chunks and reads one cell."
        ));
    }
    figures.finish();
}
