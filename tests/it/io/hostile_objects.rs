//! Damaged `.tet` files and TileDB arrays in object stores: the same rows or refusals as from a local disk.
//!
//! The tests of each format try every byte in memory. A sample of them goes the way of objects here: through listings, the
//! cache of metadata, and requests that share ranges. The rule is the same: no panic, no hang, and every error names its file.

use std::fs;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;

use datafusion::execution::memory_pool::GreedyMemoryPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::FutureExt;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt, IoMode};
use object_store::memory::InMemory;
use object_store::{ObjectStore, ObjectStoreExt};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use url::Url;

use super::local_faults::file;
use super::remote::files;
use crate::support::waiting::within_hang;
use crate::support::{query, rows_of, shipped};

/// Cuts and changed bytes of each file of an array.
const CUTS: usize = 2;
const FLIPS: usize = 3;

/// The memory limit of a session, in bytes.
const POOL: usize = 64 << 20;

type Files = Vec<(String, Vec<u8>)>;
type Rows = Result<Vec<Vec<String>>, String>;

/// Reads the array at a location. A damaged shape may be of any size, so not all rows are read.
async fn read(location: &str, store: Arc<dyn ObjectStore>) -> Rows {
    let pool = Arc::new(GreedyMemoryPool::new(POOL));
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(pool).build_arc().unwrap();
    let config = SessionConfig::new().with_target_partitions(1).with_batch_size(64);
    let ctx = SessionContext::new_with_config_rt(config, runtime);
    ctx.enable_gridfusion();
    ctx.register_object_store(&Url::parse("mem://bucket").unwrap(), store);
    let options = ArrayOptions::default().with_io(IoMode::Pread);
    let read = async {
        ctx.register_array("t", location, options).await?;
        query(&ctx, "SELECT * FROM t LIMIT 5000").await
    };
    let read = AssertUnwindSafe(Box::pin(read)).catch_unwind();
    let rows = within_hang("reading", read).await.expect("a panic");
    assert_eq!(ctx.runtime_env().memory_pool.reserved(), 0);
    rows.map(|rows| rows_of(&rows)).map_err(|error| error.to_string())
}

/// Reads the array `name` among these files, from a store and from a disk. Returns whether it was refused.
async fn is_refused(name: &str, files: &Files, what: &str) -> bool {
    let (store, folder) = (InMemory::new(), tempfile::tempdir().unwrap());
    for (path, bytes) in files {
        store.put(&path.as_str().into(), bytes.clone().into()).await.unwrap();
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    let local = folder.path().join(name);
    let local = read(local.to_str().unwrap(), Arc::new(InMemory::new())).await;
    let remote = read(&format!("mem://bucket/{name}"), Arc::new(store)).await;
    assert_eq!(remote.is_ok(), local.is_ok(), "{what}: {remote:?}, and on a disk: {local:?}");
    match (remote, local) {
        (Ok(remote), Ok(local)) => {
            assert_eq!(remote, local, "{what}");
            false
        }
        (Err(error), _) => {
            assert!(error.contains(name) && !error.contains("bug in"), "{what}: {error}");
            true
        }
        _ => false,
    }
}

/// Damages each file of an array in several ways. Returns how often that was noticed, and how often it was done.
async fn damage(name: &str, files: Files, rng: &mut StdRng) -> (usize, usize) {
    let (mut refused, mut total) = (0, 0);
    assert!(!is_refused(name, &files, "no damage").await, "{name}");
    let sizes: Vec<usize> = files.iter().map(|(_, bytes)| bytes.len()).collect();
    for (at, &size) in sizes.iter().enumerate().filter(|(_, size)| **size > 0) {
        for number in 0..CUTS + FLIPS {
            let (mut damaged, place) = (files.clone(), rng.random_range(0..size));
            let (path, bytes) = &mut damaged[at];
            let what = match number < CUTS {
                true => {
                    bytes.truncate(place);
                    format!("{path} cut at byte {place}")
                }
                false => {
                    bytes[place] ^= 1 << rng.random_range(0..8);
                    format!("{path} with another byte {place}")
                }
            };
            refused += usize::from(is_refused(name, &damaged, &what).await);
            total += 1;
        }
    }
    (refused, total)
}

#[tokio::test]
async fn damaged_tet_objects_are_survived() {
    let mut rng = StdRng::seed_from_u64(6);
    let (mut refused, mut total) = (0, 0);
    for zstd in [true, false] {
        for _ in 0..20 {
            let (some, all) = damage("v.tet", vec![("v.tet".into(), file(zstd))], &mut rng).await;
            (refused, total) = (refused + some, total + all);
        }
    }
    assert!(refused > total / 5, "{refused} of {total}");
}

#[tokio::test]
async fn damaged_arrays_in_stores_are_survived() {
    let mut rng = StdRng::seed_from_u64(7);
    for name in ["varlen", "sparse_1d_string", "sparse_delete_consolidated"] {
        let files = files(Path::new(&shipped(&format!("tests/data/tiledb/{name}"))), name);
        let (refused, total) = damage(name, files, &mut rng).await;
        assert!(refused > total / 5 && total > 20, "{refused} of {total}: {name}");
    }
}
