//! Compares reductions and windows on several threads with the same on one thread, and equal queries with each other.
//!
//! ```text
//!   cargo bench -- threads                     1 and 2 threads
//!   cargo bench -- threads --threads 1,4,16    these numbers of threads
//! ```
//!
//! Each session has as many partitions as its runtime has threads. The loop reads a mapped file of the same cells, on as many
//! threads. The bench prints the table `threads` of `FIGURES.md`. `GRIDFUSION_BENCH_SMALL=1` shrinks the array for a smoke run.

use std::hint::black_box;
use std::thread::scope;
use std::time::Instant;

use datafusion::prelude::SessionContext;
use tokio::runtime::{Builder, Runtime};

use crate::common::figures::{Baseline, Figures};
use crate::common::support::reducing;
use crate::common::{file, is_small, list_of, run, size, table, values};
use crate::reduce::mapped;

/// The names of queries, and their texts.
const QUERIES: [(&str, &str); 4] = [
    ("mean by station", "SELECT station, avg(value) FROM t GROUP BY station"),
    ("mean by time", "SELECT time, avg(value) FROM t GROUP BY time"),
    ("standard deviation by station", "SELECT station, stddev(value) FROM t GROUP BY station"),
    (
        "greatest mean of 24 hours",
        "SELECT max(m) FROM (SELECT avg(value) OVER (PARTITION BY station ORDER BY time ROWS 23 PRECEDING) AS m FROM t)",
    ),
];

/// A runtime, and a session with as many partitions.
struct Threads {
    count: usize,
    runtime: Runtime,
    ctx: SessionContext,
}

pub(crate) fn main() {
    let t = file(values(), false);
    let (_file, data) = mapped(&values());
    let threads = |count: usize| {
        let runtime =
            Builder::new_multi_thread().worker_threads(count).enable_all().build().unwrap();
        let ctx = runtime.block_on(table(&t, reducing(count, 8192)));
        Threads { count, runtime, ctx }
    };
    let counts = list_of("--threads").unwrap_or_else(|| vec![1, 2]);
    let (one, all) = (threads(1), counts.into_iter().map(threads).collect::<Vec<_>>());
    let mut figures = Figures::new("threads");
    for (name, sql) in QUERIES {
        for many in &all {
            let mut others: Vec<Baseline<'_>> = vec![];
            if name == QUERIES[0].0 {
                let stations = size().1 as usize;
                let (data, count) = (&data, many.count);
                others.push(("a loop on as many", Box::new(move || sums(data, stations, count))));
            }
            if many.count > 1 {
                let alone = || run(&one.runtime, &one.ctx, sql);
                others.push(("one thread", Box::new(alone)));
            }
            let plural = if many.count == 1 { "" } else { "s" };
            let name = format!("{name}, {} thread{plural}", many.count);
            figures.compare(name.as_str(), || run(&many.runtime, &many.ctx, sql), others);
        }
    }
    for many in &all {
        figures.remark(&equal_queries(many));
    }
    figures.finish();
}

/// Runs one query many times, and returns how much its times differ.
fn equal_queries(threads: &Threads) -> String {
    let count = if is_small() { 10 } else { 200 };
    let mut times: Vec<f64> = (0..count)
        .map(|_| {
            let start = Instant::now();
            run(&threads.runtime, &threads.ctx, QUERIES[0].1);
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let of_median = |percent: usize| times[(count - 1) * percent / 100] / times[(count - 1) / 2];
    format!(
        "{count} equal queries, {} by {} threads: the 90th percentile is {:.2} of the median, the 99th {:.2}, the slowest {:.2}.",
        QUERIES[0].0,
        threads.count,
        of_median(90),
        of_median(99),
        of_median(100),
    )
}

/// Adds up the values of each station, on so many threads.
fn sums(data: &[u8], stations: usize, threads: usize) {
    let row = 4 * stations;
    let rows = (data.len() / row).div_ceil(threads);
    scope(|scope| {
        for part in data.chunks(rows * row) {
            scope.spawn(move || {
                let mut sums = vec![0.0_f64; stations];
                for line in part.chunks_exact(row) {
                    for (sum, cell) in sums.iter_mut().zip(line.as_chunks::<4>().0) {
                        *sum += f64::from(f32::from_le_bytes(*cell));
                    }
                }
                black_box(sums);
            });
        }
    });
}
