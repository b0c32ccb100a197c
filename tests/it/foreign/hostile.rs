//! Damaged Zarr stores: every file cut off, and with bytes changed, is an error or is readable.

use std::path::{Path, PathBuf};

use gridfusion::{ArrayOptions, Error, ErrorKind};

use crate::support::{open, query, reducing, shipped};

/// The places in a file of this length at which it is damaged.
fn places(len: usize) -> impl Iterator<Item = usize> {
    let step = (len / 24).max(1);
    (0..len).step_by(step).chain(len.checked_sub(1))
}

/// Copies a store, and returns the paths of its files in the copy.
fn copied(store: &Path, to: &Path) -> Vec<PathBuf> {
    std::fs::create_dir_all(to).unwrap();
    let mut files = Vec::new();
    for entry in std::fs::read_dir(store).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => files.extend(copied(&entry.path(), &target)),
            false => {
                std::fs::copy(entry.path(), &target).unwrap();
                files.push(target);
            }
        }
    }
    files.sort();
    files
}

/// Reads all arrays of a store that a damaged file may belong to.
async fn read(location: &str, array: Option<&str>) -> Result<(), Error> {
    let ctx = reducing(1, 8192);
    let group = open::open(location, &ArrayOptions::default(), &ctx).await?;
    for name in group.names() {
        if array.is_some_and(|array| array != name) {
            continue;
        }
        let location = location.replace('\'', "''");
        let sql = format!("SELECT * FROM read_zarr('{location}', dataset => '{name}')");
        if let Err(error) = query(&ctx, &sql).await {
            let root = error.find_root().to_string();
            assert!(!root.contains("bug") && !root.contains("internal"), "{sql}: {root}");
        }
    }
    Ok(())
}

async fn survives(store: &str) {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.zarr");
    let files = copied(Path::new(&shipped(&format!("tests/data/foreign/{store}"))), &copy);
    let location = copy.to_str().unwrap();
    read(location, None).await.unwrap();
    let mut errors = 0;
    for file in files {
        let whole = std::fs::read(&file).unwrap();
        // Chunks are read with their own array only.
        let inside = file.strip_prefix(&copy).unwrap().components().next().unwrap();
        let array = inside.as_os_str().to_str().unwrap().to_owned();
        let array = copy.join(&array).is_dir().then_some(array);
        for place in places(whole.len()) {
            let mut flipped = whole.clone();
            flipped[place] ^= 0x21;
            for damaged in [&whole[..place], &flipped] {
                std::fs::write(&file, damaged).unwrap();
                if let Err(error) = read(location, array.as_deref()).await {
                    assert_ne!(error.kind(), ErrorKind::Internal, "{file:?} at {place}: {error}");
                    errors += 1;
                }
            }
        }
        std::fs::write(&file, whole).unwrap();
    }
    assert!(errors > 20, "only {errors} damaged files were errors");
}

#[tokio::test]
async fn damaged_shards_are_survived() {
    survives("sharded_v3.zarr").await;
}

#[tokio::test]
async fn damaged_chunks_of_version_2_are_survived() {
    survives("unconsolidated_v2.zarr").await;
}

#[tokio::test]
async fn damaged_chunks_of_version_3_are_survived() {
    survives("climate_v3.zarr").await;
}
