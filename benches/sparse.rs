//! Compares queries of sparse TileDB arrays with TileDB-Py over the same files, and with only decompressing
//! their tiles.
//!
//! The arrays have 10 million cells of two dimensions and two attributes, compressed with zstd, in tiles of
//! 10000 cells. `sparse_peer.py` lists them, writes them with TileDB-Py, and measures TileDB-Py. Both use two
//! threads. All queries are measured from opening the array and SQL text to the result. The bench fails if a
//! result differs from that of TileDB-Py.
//!
//! Without TileDB-Py, the bench prints a message and measures nothing. `GRIDFUSION_BENCH_SMALL=1` shrinks the
//! arrays for a smoke run.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::scalar::ScalarValue;
use futures::StreamExt;
use gridfusion::exec::SparseScanExec;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::common::figures::{Baseline, Figures, Query};
use crate::common::peak_pool::PeakPool;
use crate::common::sparse_cases::{Case, Reads, cases};
use crate::common::support::reducing;
use crate::common::tiledb_files::{Frames, data_file, peer};
use crate::common::{is_small, runtime};

/// The bytes of the memory pool that queries over overlapping fragments must do with.
const POOL: usize = 200_000_000;

/// Registers an array as the table `t` of a session.
async fn opened(ctx: SessionContext, array: &Path) -> SessionContext {
    let location = array.to_str().unwrap();
    ctx.register_array("t", location, ArrayOptions::default()).await.unwrap();
    ctx
}

/// Runs a query, batch by batch. Returns its plan, and its only row as a number, or else the number of rows.
async fn answer(ctx: &SessionContext, sql: &str) -> (Arc<dyn ExecutionPlan>, f64) {
    let plan = ctx.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    let mut batches = execute_stream(Arc::clone(&plan), ctx.task_ctx()).unwrap();
    let (mut rows, mut last) = (0, None);
    while let Some(batch) = batches.next().await {
        let batch = black_box(batch.unwrap());
        rows += batch.num_rows();
        last = Some(batch).filter(|batch| batch.num_rows() > 0).or(last);
    }
    let number = match last {
        Some(batch) if rows == 1 => first_cell(&batch),
        _ => rows as f64,
    };
    (plan, number)
}

/// Returns the first cell of an aggregation.
fn first_cell(batch: &RecordBatch) -> f64 {
    match ScalarValue::try_from_array(batch.column(0), 0).unwrap() {
        ScalarValue::Float64(Some(value)) => value,
        ScalarValue::Int64(Some(value)) => value as f64,
        other => panic!("{other} is not a number"),
    }
}

/// Opens an array, and runs a query.
async fn query(array: &Path, sql: &str) -> (Arc<dyn ExecutionPlan>, f64) {
    let ctx = opened(reducing(2, 8192), array).await;
    answer(&ctx, sql).await
}

/// Returns a metric of a plan that has run, summed over its operators.
fn metric(plan: &Arc<dyn ExecutionPlan>, name: &str) -> u64 {
    let own = plan.metrics().and_then(|metrics| metrics.sum_by_name(name));
    let below: u64 = plan.children().into_iter().map(|child| metric(child, name)).sum();
    own.map_or(0, |own| own.as_usize() as u64) + below
}

/// Returns the number of tiles of the array that a plan scans; `None` if it does without a scan.
fn tiles(plan: &Arc<dyn ExecutionPlan>) -> Option<u64> {
    let own = plan.downcast_ref::<SparseScanExec>().map(|scan| scan.plan().counts().tiles);
    own.or_else(|| plan.children().into_iter().find_map(tiles))
}

impl Case {
    /// Fails if the query read a tile although it needs none, or skipped one although it needs all.
    fn check(&self, plan: &Arc<dyn ExecutionPlan>) {
        let (read, all) = (metric(plan, "tiles_read"), tiles(plan).unwrap_or(0));
        match self.reads {
            Reads::Nothing => assert_eq!(metric(plan, "bytes_read"), 0, "{}", self.name),
            Reads::Tiles => {}
            Reads::All(_) => assert!(read >= all, "{}: {read} of {all} tiles", self.name),
        }
    }
}

/// The state that all parts of the bench share.
struct Bench<'a> {
    runtime: &'a Runtime,
    directory: &'a Path,
    /// The output of `sparse_peer.py`.
    measured: Value,
    figures: Figures,
}

impl Bench<'_> {
    /// Adds the rows of a case.
    fn measure(&mut self, case: &Case) {
        let (runtime, array) = (self.runtime, self.directory.join(case.array));
        let (plan, result) = runtime.block_on(query(&array, case.sql));
        case.check(&plan);
        let chunks = tiles(&plan).map_or_else(
            || "0".to_owned(),
            |all| format!("{} of {all}", metric(&plan, "tiles_read")),
        );
        let row = || Query { name: case.name, chunks: chunks.clone() };
        let run = |array: &Path| {
            black_box(runtime.block_on(query(array, case.sql)));
        };
        let peers = case.peers.iter().map(|(name, peer)| (*name, self.peer(case, peer, result)));
        let peers: Vec<(&str, f64)> = peers.collect();
        if !peers.is_empty() {
            self.figures.beside_peers(row(), || run(&array), peers);
        }
        let (frames, other) = (frames(case, &array), self.other(case));
        let mut baselines: Vec<Baseline<'_>> = vec![];
        if let Some(frames) = &frames {
            baselines.push(("decompression alone", Box::new(|| frames.decode(|_, _| {}))));
        }
        if let Some((name, other)) = &other {
            baselines.push((*name, Box::new(|| run(other))));
        }
        if !baselines.is_empty() {
            self.figures.compare(row(), || run(&array), baselines);
        }
    }

    /// Returns the milliseconds that TileDB-Py takes for a query. Fails if its result is another one.
    fn peer(&self, case: &Case, name: &str, result: f64) -> f64 {
        let measured = &self.measured[case.array][name];
        let theirs = measured["result"].as_f64().unwrap();
        let is_same = (result - theirs).abs() <= 1e-9 * theirs.abs();
        assert!(is_same, "{}: {result}, but TileDB-Py returns {theirs}", case.name);
        measured["seconds"].as_f64().unwrap() * 1e3
    }

    /// Returns the array with which the same query is compared, and its name in `FIGURES.md`.
    fn other(&self, case: &Case) -> Option<(&'static str, PathBuf)> {
        case.other.map(|(name, array)| (name, self.directory.join(array)))
    }

    /// Measures opening an array of many fragments.
    fn open(&mut self) {
        let (name, runtime, directory) =
            ("opening an array of 1000 fragments", self.runtime, self.directory);
        let open = |array: &str| {
            let array = directory.join(array);
            move || {
                black_box(runtime.block_on(opened(reducing(2, 8192), &array)));
            }
        };
        let theirs = self.measured["many"]["open"]["seconds"].as_f64().unwrap() * 1e3;
        self.figures.beside_peers(name, open("many"), [("TileDB-Py", theirs)]);
        let dense: Baseline<'_> = ("a dense array of 1000 fragments", Box::new(open("many_dense")));
        self.figures.compare(name, open("many"), vec![dense]);
    }

    /// Returns the most megabytes of the memory pool that a query reserves. Fails if it needs more than [`POOL`].
    fn peak(&self, array: &str, sql: &str) -> f64 {
        let pool = Arc::new(PeakPool::new(POOL));
        let as_pool = Arc::clone(&pool) as Arc<dyn MemoryPool>;
        let environment = RuntimeEnvBuilder::new().with_memory_pool(as_pool).build_arc().unwrap();
        let config = SessionConfig::new().with_target_partitions(2);
        let ctx = SessionContext::new_with_config_rt(config, environment);
        ctx.enable_gridfusion();
        self.runtime.block_on(async {
            let ctx = opened(ctx, &self.directory.join(array)).await;
            black_box(answer(&ctx, sql).await);
        });
        pool.peak() as f64 / 1e6
    }

    /// Adds the memory that merging takes.
    fn memory(&mut self) {
        let points = self.peak("four", "SELECT * FROM t");
        let ships = self.peak("ships_four", "SELECT * FROM t");
        let limit = POOL / 1_000_000;
        self.figures.remark(&format!(
            "`SELECT *` over four overlapping fragments reserves at most {points:.1} MB of DataFusion's memory pool. With names of ships as \
             coordinates, it reserves {ships:.1} MB. The bench limits the pool to {limit} MB."
        ));
    }
}

/// Returns the compressed tiles that a case must decompress; `None` if it may skip some.
fn frames(case: &Case, array: &Path) -> Option<Frames> {
    let Reads::All(files) = case.reads else { return None };
    let files: Vec<PathBuf> = files.iter().map(|file| data_file(array, file)).collect();
    Some(Frames::new(&files))
}

pub(crate) fn main() {
    // Cargo names a directory below the target directory.
    let parent = option_env!("CARGO_TARGET_TMPDIR").map_or_else(std::env::temp_dir, PathBuf::from);
    let directory = tempfile::tempdir_in(parent).unwrap();
    let runs = if is_small() { "1" } else { "3" };
    let Some(measured) = peer("sparse_peer.py", directory.path(), &["--runs", runs]) else {
        println!("TileDB-Py is not installed; nothing is measured");
        return;
    };
    let measured = serde_json::from_str(&measured).unwrap();
    let (runtime, figures) = (runtime(), Figures::with_tiles("sparse"));
    let mut bench = Bench { runtime: &runtime, directory: directory.path(), measured, figures };
    for case in cases() {
        bench.measure(&case);
    }
    bench.open();
    bench.memory();
    bench.figures.finish();
}
