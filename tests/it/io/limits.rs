//! Large chunk indexes, and memory limits.

use std::sync::Arc;

use datafusion::execution::memory_pool::GreedyMemoryPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use gridfusion::array::ReadOptions;
use gridfusion::io::MemorySource;
use gridfusion::{ArrayOptions, GridTable, GridfusionSessionContextExt, IoMode};
use gridfusion_tet::{TetReader, open_dataset};
use rand::SeedableRng;

use crate::support::{I32, Layout, TempTet, TestDataset, cell, query, session, tet_bytes};

fn many_chunks(chunks: u64, layout: &Layout) -> Vec<u8> {
    let data = (0..chunks as i32).flat_map(i32::to_le_bytes).collect();
    tet_bytes(&[TestDataset::new("value", I32, &[chunks], &[1], data)], layout)
}

/// Chunks are found in an index in the writer's order, and in a shuffled index.
#[tokio::test]
async fn any_index_order_finds_its_chunks() {
    let shuffle = Some(rand::rngs::StdRng::seed_from_u64(8));
    for layout in [Layout::default(), Layout { shuffle, ..Layout::default() }] {
        let file = Arc::new(MemorySource::new("many.tet", many_chunks(20_000, &layout)));
        let opened = TetReader::open(file).await.unwrap();
        let array = open_dataset(&opened, "value", &ReadOptions::default()).await.unwrap();
        let ctx = session(2, 8192);
        ctx.register_table("t", Arc::new(GridTable::new(Arc::new(array)))).unwrap();
        assert_eq!(cell(&ctx, "SELECT value FROM t WHERE dim_0 = 12345").await, "12345");
        assert_eq!(cell(&ctx, "SELECT sum(value) FROM t").await, "199990000");
        assert_eq!(cell(&ctx, "SELECT count(*) FROM t WHERE dim_0 % 2 = 1").await, "10000");
    }
}

/// The first of two index rows for one chunk counts. The error about a missing row names the chunk.
#[tokio::test]
async fn duplicates_and_holes() {
    let mut file = many_chunks(4, &Layout::default());
    let row = |number: usize| 80 + 32 + 104 * number;
    file[row(3) + 8] = 1; // the row of chunk 3 is now another one for chunk 1
    let opened = TetReader::open(Arc::new(MemorySource::new("dup.tet", file))).await.unwrap();
    let array = open_dataset(&opened, "value", &ReadOptions::default()).await.unwrap();
    let ctx = session(1, 8192);
    ctx.register_table("t", Arc::new(GridTable::new(Arc::new(array)))).unwrap();
    for _ in 0..2 {
        assert_eq!(cell(&ctx, "SELECT sum(value) FROM t WHERE dim_0 < 3").await, "3");
        let error =
            query(&ctx, "SELECT value FROM t WHERE dim_0 = 3").await.unwrap_err().to_string();
        assert!(error.contains("no row for chunk [3] of dataset \"value\""), "{error}");
    }
}

/// Chunks count towards the memory pool: a query fails if the pool cannot hold one chunk.
#[tokio::test]
async fn memory_is_accounted() {
    let data = vec![0_u8; 4 * 1_000_000];
    let dataset = TestDataset::new("value", I32, &[1_000_000], &[100_000], data).with_zstd(true);
    let temp = TempTet::new(&tet_bytes(&[dataset], &Layout::default()));
    for (limit, io, fits) in [
        (300_000, IoMode::Mmap, false),
        (300_000, IoMode::Pread, false),
        (600_000, IoMode::Mmap, true),
        (600_000, IoMode::Pread, true),
    ] {
        let runtime = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::new(GreedyMemoryPool::new(limit)))
            .build_arc()
            .unwrap();
        let config = SessionConfig::new().with_target_partitions(1);
        let ctx = SessionContext::new_with_config_rt(config, runtime);
        ctx.register_array("t", temp.location(), ArrayOptions::default().with_io(io))
            .await
            .unwrap();
        let result = query(&ctx, "SELECT max(value) FROM t").await;
        match result {
            Ok(_) => assert!(fits, "{limit} {io}"),
            Err(error) => assert!(
                !fits && error.to_string().contains("GridScanExec"),
                "{limit} {io}: {error}"
            ),
        }
        assert_eq!(ctx.runtime_env().memory_pool.reserved(), 0);
    }
}
