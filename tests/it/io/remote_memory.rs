//! Queries of a remote file that is much larger than the memory pool.

use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::Int32Type;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{FairSpillPool, GreedyMemoryPool, MemoryPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::SessionContext;
use futures::StreamExt;
use gridfusion::io::RemoteLimits;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::peak_pool::PeakPool;
use super::remote::Link;
use crate::support::object_server::ObjectServer;
use crate::support::{I32, Layout, TestDataset, nothing_reserved, rows_from, tet_bytes};

/// The bytes of a chunk.
const CHUNK: usize = 1 << 20;

/// Returns a file of so many chunks of random numbers from 0 to 65535. Zstd takes more than half of their bytes.
fn file(chunks: usize) -> Vec<u8> {
    let mut rng = StdRng::seed_from_u64(5);
    let chunk: Vec<u8> =
        (0..CHUNK / 4).flat_map(|_| i32::from(rng.random::<u16>()).to_le_bytes()).collect();
    let cells = (chunks * CHUNK / 4) as u64;
    let dataset =
        TestDataset::new("value", I32, &[cells], &[CHUNK as u64 / 4], chunk.repeat(chunks));
    let layout = Layout { history_version: Some(2), ..Layout::default() };
    tet_bytes(&[dataset.with_zstd(true)], &layout)
}

/// A session with a limited pool, in which the file is the table `t`.
struct Limited {
    ctx: SessionContext,
    pool: Arc<PeakPool>,
}

impl Limited {
    async fn new(link: &Link, pool: Arc<dyn MemoryPool>, limit: usize) -> Self {
        let pool = Arc::new(PeakPool::with_inner(pool));
        let as_pool = Arc::clone(&pool) as Arc<dyn MemoryPool>;
        let runtime = RuntimeEnvBuilder::new().with_memory_pool(as_pool).build_arc().unwrap();
        let ctx = link.session_in(RemoteLimits::default(), runtime);
        // As the program sets them for a pool of this size.
        for (name, value) in [
            ("datafusion.execution.sort_spill_reservation_bytes", limit / 8),
            ("datafusion.execution.sort_in_place_threshold_bytes", limit),
        ] {
            ctx.sql(&format!("SET {name} = {value}")).await.unwrap();
        }
        ctx.register_array("t", "s3://bucket/v.tet", ArrayOptions::default()).await.unwrap();
        Self { ctx, pool }
    }

    /// Sorts all values. Returns their number.
    async fn sort(&self) -> Result<usize> {
        let sorted = self.ctx.sql("SELECT value FROM t ORDER BY value").await?;
        let (mut stream, mut rows, mut last) = (sorted.execute_stream().await?, 0, i32::MIN);
        while let Some(batch) = stream.next().await {
            let batch = batch?;
            let values = batch.column(0).as_primitive::<Int32Type>().values();
            assert!(last <= values[0] && values.is_sorted());
            (rows, last) = (rows + values.len(), values[values.len() - 1]);
        }
        Ok(rows)
    }
}

/// The queries of all chunks, with the number of cells of the file.
async fn all_queries(limited: &Limited, cells: usize) {
    let count = format!("{cells}");
    let scan = "SELECT count(*), count(DISTINCT dim_0 % 7) FROM t WHERE value >= 0";
    assert_eq!(rows_from(&limited.ctx, scan).await, [[count.as_str(), "7"]]);
    let reduce = "SELECT count(value), min(value) >= 0, max(value) < 65536 FROM t";
    assert_eq!(rows_from(&limited.ctx, reduce).await, [[count.as_str(), "true", "true"]]);
    let groups =
        "SELECT sum(n), count(*) FROM (SELECT value % 100, count(*) AS n FROM t GROUP BY 1)";
    assert_eq!(rows_from(&limited.ctx, groups).await, [[count.as_str(), "100"]]);
    // Sorts of both partitions may take all of a greedy pool, so that neither can go on.
    match limited.sort().await {
        Ok(sorted) => assert_eq!(sorted, cells),
        Err(error) => {
            let root = error.find_root();
            assert!(matches!(root, DataFusionError::ResourcesExhausted(_)), "{error}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_larger_than_the_pool_is_scanned_reduced_and_sorted() {
    const POOL: usize = 24 << 20;
    const CHUNKS: usize = 72;
    let link = Link::new(ObjectServer::start([("bucket/v.tet", file(CHUNKS))]));
    let pools: [Arc<dyn MemoryPool>; 2] =
        [Arc::new(FairSpillPool::new(POOL)), Arc::new(GreedyMemoryPool::new(POOL))];
    for pool in pools {
        let limited = Limited::new(&link, pool, POOL).await;
        all_queries(&limited, CHUNKS * CHUNK / 4).await;
        // A scan takes one chunk of its share, a quarter of the pool, even if sorts have taken all of it.
        let peak = limited.pool.peak();
        assert!(POOL / 8 < peak && peak <= POOL + POOL / 4, "{peak}");
        nothing_reserved(&limited.ctx).await;
    }
}

/// Prints how much more memory the process takes during queries of a file of a gibibyte than before. Other tests in
/// the same process would count too, so run it alone:
/// `cargo test --release --test it -- --ignored --nocapture resident_memory_of_a_remote_gibibyte`.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes and several gigabytes"]
async fn resident_memory_of_a_remote_gibibyte() {
    measure_all(&Link::new(ObjectServer::start([("bucket/v.tet", gibibyte())])), None).await;
}

/// The same of a local file, to compare with.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes and several gigabytes"]
async fn resident_memory_of_a_local_gibibyte() {
    let local = crate::support::TempTet::new(&gibibyte());
    // The table is made of this file at first, and of the local one then.
    let link = Link::new(ObjectServer::start([("bucket/v.tet", file(1))]));
    measure_all(&link, Some(local.location())).await;
}

#[cfg(target_os = "linux")]
fn gibibyte() -> Vec<u8> {
    let bytes = file(1 << 11);
    println!("a file of {} MiB", bytes.len() >> 20);
    bytes
}

/// Runs queries of the remote file, or of a local one.
#[cfg(target_os = "linux")]
async fn measure_all(link: &Link, local: Option<&str>) {
    const POOL: usize = 64 << 20;
    for sql in [
        "SELECT count(*) FROM t WHERE value >= 0",
        "SELECT sum(value) FROM t",
        "SELECT value % 100, count(*) FROM t GROUP BY 1",
        "SELECT value FROM t ORDER BY value",
    ] {
        let limited = Limited::new(link, Arc::new(FairSpillPool::new(POOL)), POOL).await;
        if let Some(location) = local {
            let options = ArrayOptions::default().with_io(gridfusion::IoMode::Pread);
            limited.ctx.deregister_table("t").unwrap();
            limited.ctx.register_array("t", location, options).await.unwrap();
        }
        measure(&limited, sql).await;
    }
}

/// Runs a query, and prints the growth of resident memory.
#[cfg(target_os = "linux")]
async fn measure(limited: &Limited, sql: &str) {
    let status = |field: &str| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() >> 10
    };
    let before = status("VmRSS:");
    // Begins to measure the peak anew.
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let began = std::time::Instant::now();
    let mut stream = limited.ctx.sql(sql).await.unwrap().execute_stream().await.unwrap();
    let mut rows = 0;
    while let Some(batch) = stream.next().await {
        rows += batch.unwrap().num_rows();
    }
    let grown = status("VmHWM:") - before;
    let (pool, seconds) = (limited.pool.peak() >> 20, began.elapsed().as_secs_f32());
    println!("{sql}: {rows} rows, {seconds:.1} s, {grown} MiB more; the pool knew {pool} MiB");
}
