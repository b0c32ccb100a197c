//! Measures the time to open a file whose index has a million rows, and the memory of a scan. Also measures what the rules of
//! gridfusion add to the planning of queries without arrays.
//!
//! Memory is anonymous memory, without the page cache of a mapping. Without `/proc`, the bench gives only
//! times.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use datafusion::execution::SessionStateBuilder;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};
use gridfusion::gridfusion_rules;
use tokio::runtime::Runtime;

use crate::common::figures::Figures;
use crate::common::support::{F32, I32, Layout, TempTet, TestDataset, query, session, tet_bytes};
use crate::common::{is_small, run, runtime, table};

/// An array of one axis, in chunks of one cell.
fn many_chunks() -> TempTet {
    let chunks: u64 = if is_small() { 1_000 } else { 1_000_000 };
    let data = (0..chunks as i32).flat_map(i32::to_le_bytes).collect();
    let dataset = TestDataset::new("value", I32, &[chunks], &[1], data);
    TempTet::new(&tet_bytes(&[dataset], &Layout::default()))
}

/// 256 MiB in chunks of 4 MiB, compressed, so that every byte must be decoded into memory.
fn large() -> TempTet {
    let (rows, chunk) = if is_small() { (4_096, 512) } else { (262_144, 4_096) };
    let data = (0..rows * 256).flat_map(|i| ((i % 9_973) as f32).to_le_bytes()).collect();
    let dataset = TestDataset::new("value", F32, &[rows, 256], &[chunk, 256], data).with_zstd(true);
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

/// A query over tables: a join, a filter, groups, a window and a TopK.
const WITHOUT_ARRAYS: &str = "
    SELECT region, total, rank() OVER (ORDER BY total DESC) AS place
    FROM (SELECT b.region, sum(a.x) AS total FROM a JOIN b ON a.k = b.k WHERE a.x > 1 GROUP BY b.region)
    ORDER BY place LIMIT 10";

/// Returns the microseconds that DataFusion's rules for physical plans take for a query without arrays, and those that the rules
/// of gridfusion add.
fn rules(runtime: &Runtime) -> (f64, f64) {
    let ctx = session(2, 8192);
    for sql in [
        "CREATE TABLE a AS SELECT value AS k, value * 0.5 AS x FROM range(1000)",
        "CREATE TABLE b AS SELECT value AS k, value % 7 AS region FROM range(1000)",
    ] {
        runtime.block_on(query(&ctx, sql)).unwrap();
    }
    let state = |rules| {
        SessionStateBuilder::new_from_existing(ctx.state())
            .with_physical_optimizer_rules(rules)
            .build()
    };
    let own = PhysicalOptimizer::new().rules;
    let states = [state(own.clone()), state(gridfusion_rules(own))];
    let planner = DefaultPhysicalPlanner::default();
    let plan = runtime.block_on(async {
        let plan = ctx.state().create_logical_plan(WITHOUT_ARRAYS).await.unwrap();
        let plan = ctx.state().optimize(&plan).unwrap();
        planner.create_physical_plan(&plan, &state(vec![])).await.unwrap()
    });
    let time = |state| {
        let start = Instant::now();
        black_box(planner.optimize_physical_plan(Arc::clone(&plan), state, |_, _| {}).unwrap());
        start.elapsed().as_secs_f64() * 1e6
    };
    let turns = if is_small() { 11 } else { 2001 };
    let (mut own, mut added): (Vec<f64>, Vec<f64>) = (0..turns)
        .map(|_| {
            let [own, both] = [0, 1].map(|at| time(&states[at]));
            (own, both - own)
        })
        .unzip();
    own.sort_by(f64::total_cmp);
    added.sort_by(f64::total_cmp);
    (own[turns / 2], added[turns / 2])
}

pub(crate) fn main() {
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
    let (own, added) = rules(&runtime);
    figures.remark(&format!(
        "For a join, groups, a window and a TopK without arrays, the rules of gridfusion add {added:.0} µs to {own:.0} µs of \
         DataFusion's rules for physical plans."
    ));
    figures.finish();
}
