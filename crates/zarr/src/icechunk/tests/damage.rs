//! Damaged repositories give errors, and never panic.
//!
//! Metadata has no checksum: a flipped bit of an id, an offset or an inline byte that is not noticed changes cells. A
//! test counts how many flipped bits do. Flipped bits of names and attributes change texts.

use super::*;

/// Returns how many bits or bytes to leave out from one test to the next; none with `GRIDFUSION_EVERY_BIT`.
fn stride(usual: usize) -> usize {
    std::env::var_os("GRIDFUSION_EVERY_BIT").map_or(usual, |_| 1)
}

/// Reads every array. Returns the cells, or the error.
async fn read_all(location: &str) -> Result<Vec<(String, Vec<Value>)>> {
    let dataset = open(location, ArrayOptions::default()).await?;
    let mut all = vec![];
    for name in dataset.names() {
        if name != "changed" {
            all.push((name.clone(), cells(&dataset.array(&name).await?).await?));
        }
    }
    match dataset.left_out().first() {
        Some(error) => Err(error.clone()),
        None => Ok(all),
    }
}

/// Copies a repository. Returns the folder around the copy, the copy, and its cells.
async fn copied(spec: &str) -> (tempfile::TempDir, PathBuf, Vec<(String, Vec<Value>)>) {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("x.icechunk");
    crate::tests::copy(Path::new(&repository(spec)), &copy);
    let cells = read_all(copy.to_str().unwrap()).await.unwrap();
    (folder, copy, cells)
}

/// The files of a folder and the folders in it that the branch `main` needs.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all = vec![];
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        match path.is_dir() {
            true if ["chunks", "transactions"].iter().any(|it| path.ends_with(it)) => {}
            true => all.extend(files(&path)),
            false => all.push(path),
        }
    }
    all.sort();
    all
}

#[tokio::test]
async fn damaged_metadata_is_an_error_or_changes_nothing() {
    for spec in ["spec1", "spec2"] {
        let (_folder, copy, right) = copied(spec).await;
        let location = copy.to_str().unwrap();
        for path in files(&copy) {
            let bytes = std::fs::read(&path).unwrap();
            for len in (0..bytes.len()).step_by(stride(29)) {
                std::fs::write(&path, &bytes[..len]).unwrap();
                if let Ok(read) = read_all(location).await {
                    // Objects of other versions are not needed.
                    assert_eq!(read, right, "{path:?} of {len} bytes");
                }
            }
            std::fs::write(&path, &bytes).unwrap();
        }
    }
}

/// Flips bits of content that is not compressed. A parser must survive all of them.
#[test]
fn flipped_bits_never_panic() {
    use crate::bytes::icechunk::{OpenIcechunk, OpenedIcechunk, VersionChoice};
    use bytes::Bytes;
    use gridfusion_core::format::{Machine, Replies, Step};

    let unpacked = |bytes: &[u8]| -> Option<Bytes> {
        let header = bytes.get(..39)?;
        let content = zstd::decode_all(&bytes[39..]).ok()?;
        Some([&header[..38], &[0], &content].concat().into())
    };
    for spec in ["spec1", "spec2"] {
        let base = PathBuf::from(repository(spec));
        // Content is stored without compression, so that each bit counts.
        let plain: BTreeMap<String, Bytes> = files(&base)
            .into_iter()
            .map(|path| {
                let name = path.strip_prefix(&base).unwrap().to_str().unwrap().replace('\\', "/");
                let bytes = std::fs::read(&path).unwrap();
                (name, unpacked(&bytes).unwrap_or(bytes.into()))
            })
            .collect();
        let run = |objects: &BTreeMap<String, Bytes>| {
            let mut machine = OpenIcechunk::new(VersionChoice::default(), 1 << 20);
            let mut replies = Replies::Start;
            loop {
                replies = match machine.step(replies)? {
                    Step::ReadIfPresent(at) => Replies::IfPresent(
                        at.iter().map(|it| objects.get(&*it.object).cloned()).collect(),
                    ),
                    Step::Done(opened) => return Ok::<_, gridfusion_core::Error>(opened),
                    other => panic!("{other:?}"),
                };
            }
        };
        let locate_all = |opened: OpenedIcechunk, objects: &BTreeMap<String, Bytes>| {
            let OpenedIcechunk::Store(store) = opened else { return };
            for variable in 0..store.store().arrays().len() {
                let rank = store.store().hierarchy().variables[variable].axes.len();
                let mut locate =
                    store.locate(variable, vec![vec![0; rank], vec![1; rank]]).unwrap();
                let mut replies = Replies::Start;
                while let Ok(Step::Read(at)) = locate.step(replies) {
                    let read = at.iter().map(|it| objects.get(&*it.object).cloned());
                    let Some(read) = read.collect::<Option<Vec<Bytes>>>() else { break };
                    replies = Replies::Bytes(read);
                }
                for manifest in store.manifests(variable).unwrap_or_default() {
                    if let Some(bytes) = objects.get(&manifest.object) {
                        let _ = store.listed(variable, &manifest, bytes);
                    }
                }
            }
            let _ = store.history();
        };
        locate_all(run(&plain).unwrap(), &plain);
        let mut broken = plain.clone();
        for (name, bytes) in &plain {
            for bit in (0..bytes.len() * 8).step_by(stride(67)) {
                let mut flipped = bytes.to_vec();
                flipped[bit / 8] ^= 1 << (bit % 8);
                broken.insert(name.clone(), flipped.into());
                if let Ok(opened) = run(&broken) {
                    locate_all(opened, &broken);
                }
            }
            broken.insert(name.clone(), bytes.clone());
        }
    }
}

/// How often a flipped bit of stored metadata goes unnoticed and changes cells.
#[tokio::test]
async fn flipped_bits_of_stored_objects_rarely_change_cells() {
    for spec in ["spec1", "spec2"] {
        let (_folder, copy, right) = copied(spec).await;
        let location = copy.to_str().unwrap();
        let (mut flipped, mut wrong) = (0, 0);
        for path in files(&copy) {
            let bytes = std::fs::read(&path).unwrap();
            for at in (0..bytes.len()).step_by(stride(43)) {
                let mut broken = bytes.clone();
                broken[at] ^= 1 << (at % 8);
                std::fs::write(&path, &broken).unwrap();
                flipped += 1;
                wrong += i32::from(read_all(location).await.is_ok_and(|read| read != right));
            }
            std::fs::write(&path, &bytes).unwrap();
        }
        println!("{spec}: {wrong} of {flipped} flipped bits changed cells");
        assert!(wrong * 4 < flipped, "{spec}: {wrong} of {flipped}");
    }
}
