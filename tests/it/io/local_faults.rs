//! Faults of disks: each read of each operation on a `.tet` file fails, and so the operation fails.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use gridfusion::array::ReadOptions;
use gridfusion::io::{ByteSource, MemorySource};
use gridfusion::verify::{Depth, Progress};
use gridfusion::{Error, GridTable};
use gridfusion_tet::{IndexScan, TetReader, dataset_info, open_dataset, verify as verify_tet};
use serde_json::json;

use crate::support::{
    F32, Layout, TestDataset, nothing_reserved, query, reducing, rows_of, tet_bytes,
};

/// The name of the source in errors.
const NAME: &str = "disk/faulty.tet";
/// The error number of a failed disk: `EIO`.
const EIO: i32 = 5;

/// A source in memory of which reads fail, as if the disk did.
#[derive(Debug)]
struct FaultySource {
    bytes: MemorySource,
    /// Whether it claims that reads never wait, as a mapping does.
    is_resident: bool,
    reads: AtomicUsize,
    /// The numbers of the reads that fail; the first read has number 1.
    failing: Range<usize>,
}

impl FaultySource {
    fn new(bytes: &[u8], is_resident: bool, failing: Range<usize>) -> Arc<Self> {
        let bytes = MemorySource::new(NAME, bytes.to_vec());
        Arc::new(Self { bytes, is_resident, reads: AtomicUsize::new(0), failing })
    }
}

#[async_trait]
impl ByteSource for FaultySource {
    fn name(&self) -> &str {
        NAME
    }

    fn size(&self) -> u64 {
        self.bytes.size()
    }

    fn is_resident(&self) -> bool {
        self.is_resident
    }

    async fn read(&self, ranges: &[Range<u64>]) -> gridfusion::Result<Vec<Bytes>> {
        if self.failing.contains(&(self.reads.fetch_add(1, Ordering::SeqCst) + 1)) {
            let cause = std::io::Error::from_raw_os_error(EIO);
            return Err(Error::io("cannot read the bytes", cause).in_file(NAME));
        }
        self.bytes.read(ranges).await
    }
}

/// An operation on a `.tet` file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Open,
    Describe,
    Query(&'static str),
    Verify,
}

const OPERATIONS: [Operation; 5] = [
    Operation::Open,
    Operation::Describe,
    Operation::Query("SELECT * FROM t"),
    Operation::Query("SELECT station, sum(value) FROM t GROUP BY station ORDER BY 1"),
    Operation::Verify,
];

impl Operation {
    /// Runs the operation on a file. Returns its result as text, or its error.
    async fn run(self, source: Arc<FaultySource>) -> Result<String, String> {
        let file = TetReader::open(source).await.map_err(|error| text(&error))?;
        match self {
            Self::Open => Ok(format!("{:?}", file.dataset_names())),
            Self::Describe => describe(&file).await.map_err(|error| text(&error)),
            Self::Query(sql) => {
                let array = open_dataset(&file, "value", &ReadOptions::default()).await;
                let array = array.map_err(|error| text(&error))?;
                let ctx = reducing(2, 16);
                ctx.register_table("t", Arc::new(GridTable::new(Arc::new(array)))).unwrap();
                let rows = query(&ctx, sql).await;
                nothing_reserved(&ctx).await;
                rows.map(|rows| format!("{:?}", rows_of(&rows))).map_err(|error| error.to_string())
            }
            Self::Verify => {
                let report = verify_tet(&file, Depth::Cells, &Arc::<Progress>::default()).await;
                let text = format!("{report:?}");
                if report.is_ok() { Ok(text) } else { Err(text) }
            }
        }
    }
}

/// Returns facts about the datasets, and the whole index.
async fn describe(file: &TetReader) -> gridfusion::Result<String> {
    let mut facts = format!("{:?}", dataset_info(file, None).await?);
    let mut index = IndexScan::new(file, None);
    while let Some(rows) = index.next().await? {
        facts += &format!("{rows:?}");
    }
    Ok(facts)
}

fn text(error: &Error) -> String {
    assert_eq!(error.file(), Some(NAME), "{error}");
    error.to_string()
}

/// Returns 30 x 50 values as a file of 40 chunks, with labels, and index rows in a random order.
pub(super) fn file(zstd: bool) -> Vec<u8> {
    use rand::SeedableRng;
    let data = (0..1500).flat_map(|i| (i as f32 / 4.0).to_le_bytes()).collect();
    let labels: Vec<String> = (0..50).map(|i| format!("S{i:02}")).collect();
    let metadata =
        json!({"dim_names": ["day", "station"], "coords": {"station": {"labels": labels}}});
    let dataset = TestDataset::new("value", F32, &[30, 50], &[3, 13], data)
        .with_zstd(zstd)
        .with_metadata(metadata);
    let shuffle = Some(rand::rngs::StdRng::seed_from_u64(7));
    tet_bytes(&[dataset], &Layout { shuffle, history_version: Some(2), ..Layout::default() })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_read_may_fail() {
    let bytes = file(true);
    for is_resident in [false, true] {
        for operation in OPERATIONS {
            let plain = FaultySource::new(&bytes, is_resident, 0..0);
            let expected = operation.run(Arc::clone(&plain)).await.unwrap();
            let reads = plain.reads.load(Ordering::SeqCst);
            assert!(reads > 0, "{operation:?}");
            for number in 1..=reads {
                for failing in [number..number + 1, number..usize::MAX] {
                    let how = format!("{operation:?}, reads {failing:?} of {reads}");
                    let is_once = failing.len() == 1;
                    let source = FaultySource::new(&bytes, is_resident, failing);
                    match operation.run(source).await {
                        // Verification reads the chunks of a failed read again, each alone.
                        Ok(found) => {
                            assert!(is_once && operation == Operation::Verify, "{how}");
                            assert_eq!(found, expected, "{how}");
                        }
                        Err(error) => {
                            assert!(error.contains("os error 5"), "{how}: {error}");
                            // A report leaves out the name of the file that it is about.
                            let is_named = error.contains(NAME) || operation == Operation::Verify;
                            assert!(is_named, "{how}: {error}");
                        }
                    }
                }
            }
        }
    }
}
