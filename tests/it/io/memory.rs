//! Queries under a memory limit, and files that change after they were opened.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, Float64Type};
use datafusion::error::Result;
use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryConsumer};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::logical_expr::{Accumulator, Volatility, create_udaf};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::scalar::ScalarValue;
use gridfusion::io::{ByteSource, FileSource, MmapSource};
use gridfusion::{ArrayOptions, GridfusionSessionContextExt, IoMode};

use crate::support::{F64, Layout, TempTet, TestDataset, query, tet_bytes};

const CELLS: usize = 500_000;

/// A file of `CELLS` doubles, in chunks of `chunk` cells.
fn file(chunk: u64, zstd: bool) -> TempTet {
    let data = (0..CELLS).flat_map(|at| (at as f64).to_le_bytes()).collect();
    let dataset = TestDataset::new("value", F64, &[CELLS as u64], &[chunk], data).with_zstd(zstd);
    TempTet::new(&tet_bytes(&[dataset], &Layout::default()))
}

/// Rewrites the index header of a file, so that it suggests a memory budget of 4 GiB.
fn suggest_budget(file: &TempTet) {
    let mut bytes = std::fs::read(&file.path).unwrap();
    let header = bytes.windows(4).position(|tag| tag == b"TIDX").unwrap();
    bytes[header + 20..header + 24].copy_from_slice(&u32::MAX.to_le_bytes());
    std::fs::write(&file.path, bytes).unwrap();
}

async fn limited(limit: usize, file: &TempTet) -> SessionContext {
    let pool = Arc::new(GreedyMemoryPool::new(limit));
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(pool).build_arc().unwrap();
    let config = SessionConfig::new().with_target_partitions(1);
    let ctx = SessionContext::new_with_config_rt(config, runtime);
    ctx.enable_gridfusion();
    ctx.register_array("t", file.location(), ArrayOptions::default()).await.unwrap();
    ctx
}

/// An accumulator that keeps all values, and records the most bytes that it held.
#[derive(Debug)]
struct Hold {
    values: Vec<f64>,
    most: Option<Arc<AtomicUsize>>,
}

impl Accumulator for Hold {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.values.extend(values[0].as_primitive::<Float64Type>().values());
        if let Some(most) = &self.most {
            most.fetch_max(self.size(), Ordering::Relaxed);
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::from(self.values.len() as i64))
    }

    fn size(&self) -> usize {
        self.values.capacity() * size_of::<f64>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::from(self.values.len() as i64)])
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        Ok(())
    }
}

/// The values of a chunk of 4 MB exceed the pool. The query fails before the accumulator holds them, not
/// only after the whole chunk.
#[tokio::test]
async fn accumulators_never_hold_more_than_the_pool_has() {
    const LIMIT: usize = 1_000_000;
    let file = file(CELLS as u64, false);
    let ctx = limited(LIMIT, &file).await;
    let (most, made) = (Arc::new(AtomicUsize::new(0)), AtomicUsize::new(0));
    let recorded = Arc::clone(&most);
    let hold = create_udaf(
        "hold",
        vec![DataType::Float64],
        Arc::new(DataType::Int64),
        Volatility::Immutable,
        Arc::new(move |_| {
            let is_first = made.fetch_add(1, Ordering::Relaxed) == 0;
            let most = is_first.then(|| Arc::clone(&recorded));
            Ok(Box::new(Hold { values: vec![], most }))
        }),
        Arc::new(vec![DataType::Int64]),
    );
    ctx.register_udaf(hold);
    // The fallback to rows needs as much memory, so either may fail.
    let error = query(&ctx, "SELECT hold(value) FROM t").await.unwrap_err().to_string();
    assert!(error.contains("allocate additional"), "{error}");
    let most = most.load(Ordering::Relaxed);
    assert!((LIMIT / 4..=LIMIT).contains(&most), "{most}");
    assert_eq!(ctx.runtime_env().memory_pool.reserved(), 0);
}

/// Operators that keep batches count whole buffers, so under a memory limit buffers hold only the rows
/// of their batch.
#[tokio::test]
async fn batches_hold_their_rows_alone() {
    let file = file(CELLS as u64, true);
    let ctx = limited(100_000_000, &file).await;
    let batches = query(&ctx, "SELECT * FROM t").await.unwrap();
    let rows: usize = batches.iter().map(|batch| batch.num_rows()).sum();
    let held: usize = batches.iter().map(|batch| batch.get_array_memory_size()).sum();
    assert_eq!(rows, CELLS);
    assert!(held < 3 * 16 * CELLS, "{held}");
}

/// A scan of small chunks works even if others use the whole pool. A scan of a large chunk does not, even if
/// the file suggests a large budget.
#[tokio::test]
async fn a_scan_takes_its_share() {
    for (chunk, suggests, fits) in
        [(10_000, false, true), (CELLS as u64, false, false), (CELLS as u64, true, false)]
    {
        let file = file(chunk, true);
        if suggests {
            suggest_budget(&file);
        }
        let ctx = limited(2_000_000, &file).await;
        let others = MemoryConsumer::new("others").register(&ctx.runtime_env().memory_pool);
        others.try_grow(2_000_000).unwrap();
        let read = query(&ctx, "SELECT value FROM t WHERE value % 1000 = 7").await;
        assert_eq!(read.is_ok(), fits, "{chunk}: {read:?}");
        drop(others);
        assert_eq!(ctx.runtime_env().memory_pool.reserved(), 0);
    }
}

/// Reading a file that was written after it was opened is an error, in both I/O modes.
#[tokio::test]
async fn a_file_that_is_written_is_an_error() {
    for io in [IoMode::Mmap, IoMode::Pread] {
        let file = file(1000, false);
        let long_ago = std::time::SystemTime::UNIX_EPOCH;
        let opened = std::fs::OpenOptions::new().write(true).open(&file.path).unwrap();
        opened.set_modified(long_ago).unwrap();
        let ctx = SessionContext::new();
        let options = ArrayOptions::default().with_io(io);
        ctx.register_array("t", file.location(), options).await.unwrap();
        query(&ctx, "SELECT sum(value) FROM t").await.unwrap();
        std::fs::write(&file.path, std::fs::read(&file.path).unwrap()).unwrap();
        let error = query(&ctx, "SELECT sum(value) FROM t").await.unwrap_err().to_string();
        assert!(error.contains("the file has changed"), "{io}: {error}");
    }
}

/// A mapping reads the same bytes again after it released their memory.
#[tokio::test]
async fn what_is_forgotten_can_be_read_again() {
    let file = file(1000, false);
    let mapped = MmapSource::open(&file.path).unwrap();
    let read = FileSource::open(&file.path).unwrap();
    let ranges = [0..mapped.size(), 5000..123_457, 7..7];
    let expected = read.read(&ranges).await.unwrap();
    for _ in 0..2 {
        let bytes = mapped.read(&ranges).await.unwrap();
        assert_eq!(bytes, expected);
        ranges.iter().for_each(|range| mapped.forget(range));
        mapped.forget(&(0..mapped.size() + 1));
        assert_eq!(bytes, expected);
    }
    mapped.unchanged().unwrap();
}
