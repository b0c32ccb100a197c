//! Archives of stores, compared with the same stores in folders.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use futures::TryStreamExt;
use gridfusion_cf::conventions::VariableStore;
use gridfusion_core::format::Entry;
use gridfusion_core::io::{MemorySource, Remote, RemoteStore, counted};
use gridfusion_core::options::{ArrayOptions, IoMode};
use gridfusion_core::read::{Dataset, Opener};
use gridfusion_core::source::{Formats, Place, Stores};
use gridfusion_core::tile::Documents;
use gridfusion_core::verify::{Depth, Progress};
use gridfusion_core::{ErrorKind, Result};
use object_store::memory::InMemory;
use object_store::{ObjectStore, ObjectStoreExt};
use tempfile::TempDir;
use url::Url;

use super::ZippedStore;
use crate::Zarr;
use crate::bytes::ZipWriter;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Returns the files in a folder, by their paths relative to it.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let (mut found, mut folders) = (vec![], vec![PathBuf::new()]);
    while let Some(inner) = folders.pop() {
        for entry in fs::read_dir(folder.join(&inner)).unwrap().map(std::result::Result::unwrap) {
            let path = inner.join(entry.file_name());
            match entry.path().is_dir() {
                true => folders.push(path),
                false => {
                    let name = path.to_str().unwrap().replace('\\', "/");
                    found.push((name, fs::read(entry.path()).unwrap()));
                }
            }
        }
    }
    found.sort();
    found
}

fn write(mut writer: ZipWriter, top: &str, store: &Path) -> Vec<u8> {
    for (name, content) in files(store) {
        writer.add(&format!("{top}{name}"), &content);
    }
    writer.finish()
}

async fn opened(location: &str, io: IoMode) -> Result<Dataset> {
    let options = ArrayOptions::default().with_io(io);
    Opener::new(vec![Arc::new(Zarr)]).with_options(options).open(location).await
}

/// Returns all rows of each array, or the text of its error without the location.
async fn rows(dataset: &Dataset) -> Vec<(String, std::result::Result<RecordBatch, ErrorKind>)> {
    let mut all = vec![];
    for name in dataset.names() {
        let read = async {
            let array = dataset.array(&name).await?;
            let batches: Vec<RecordBatch> = array.batches().try_collect().await?;
            Ok::<_, gridfusion_core::Error>(concat_batches(&array.schema()?, &batches).unwrap())
        };
        let read = read.await.map_err(|error| error.kind());
        all.push((name, read));
    }
    all
}

fn stores() -> Vec<PathBuf> {
    let mut stores = vec![Path::new(ROOT).join("examples/data/sea.zarr")];
    let foreign = fs::read_dir(Path::new(ROOT).join("tests/data/foreign")).unwrap();
    let foreign = foreign.map(|it| it.unwrap().path());
    stores.extend(foreign.filter(|it| it.extension().is_some_and(|it| it == "zarr")));
    assert!(stores.len() > 10);
    stores
}

#[tokio::test]
async fn archives_have_the_rows_of_their_stores() {
    let folder = TempDir::new().unwrap();
    for store in stores() {
        let expected = rows(&opened(store.to_str().unwrap(), IoMode::Mmap).await.unwrap()).await;
        for kind in 0..4_u32 {
            let is = |bit: u32| kind & (1 << bit) != 0;
            let writer = ZipWriter {
                deflates: is(0),
                is_zip64: is(1),
                has_descriptors: is(1),
                extra: if is(1) { vec![] } else { vec![0x55, 0x54, 1, 0, 9] },
                before: if is(1) { vec![1; 100] } else { vec![] },
                ..ZipWriter::default()
            };
            let archive = write(writer, if is(0) { "" } else { "product.zarr/" }, &store);
            let path = folder.path().join(format!("{kind}.zarr.zip"));
            fs::write(&path, &archive).unwrap();
            for io in [IoMode::Mmap, IoMode::Pread] {
                let dataset = opened(path.to_str().unwrap(), io).await.unwrap();
                assert!(rows(&dataset).await == expected, "{kind} {}", store.display());
            }
            let dataset = opened(path.to_str().unwrap(), IoMode::Mmap).await.unwrap();
            let progress = Arc::new(Progress::default());
            for (_, report) in dataset.group().verify(Depth::Cells, &progress).await {
                let text = format!("{report:?}");
                assert!(
                    text.contains("\"chunk_index\"") && text.contains("\"checksums\""),
                    "{text}"
                );
            }
        }
    }
}

/// A store in memory with an archive, and an opener that reads it.
async fn remote(archive: Vec<u8>, name: &str) -> (Opener, String) {
    let store = Arc::new(InMemory::new());
    store.put(&name.into(), archive.into()).await.unwrap();
    let url = Url::parse("s3://bucket").unwrap();
    let opener = Opener::new(vec![Arc::new(Zarr)]).with_store(&url, store as Arc<dyn ObjectStore>);
    (opener, format!("s3://bucket/{name}"))
}

#[tokio::test]
async fn remote_archives_have_the_rows_of_their_stores() {
    for store in stores() {
        let expected = rows(&opened(store.to_str().unwrap(), IoMode::Mmap).await.unwrap()).await;
        for deflates in [false, true] {
            let writer = ZipWriter { deflates, ..ZipWriter::default() };
            let name = if deflates { "x.zip" } else { "x.zarr.zip" };
            let (opener, url) = remote(write(writer, "top/", &store), name).await;
            let dataset = opener.open(&url).await.unwrap();
            assert!(rows(&dataset).await == expected, "{deflates} {}", store.display());
        }
    }
}

/// A store of version 3 with `count` chunks of `len` cells, in random bytes, and consolidated metadata.
fn random_members(count: u64, len: u64) -> Vec<(String, Vec<u8>)> {
    use rand::{RngCore, SeedableRng};
    let array = serde_json::json!({
        "zarr_format": 3, "node_type": "array", "shape": [count * len], "data_type": "uint8", "fill_value": 0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [len]}},
        "chunk_key_encoding": {"name": "default"}, "codecs": ["bytes"], "dimension_names": ["x"],
    });
    let group = serde_json::json!({
        "zarr_format": 3, "node_type": "group",
        "consolidated_metadata": {"kind": "inline", "metadata": {"a": array}},
    });
    let mut members = vec![("zarr.json".to_owned(), b"{}".to_vec())];
    members.push(("a/zarr.json".to_owned(), array.to_string().into()));
    let mut random = rand::rngs::SmallRng::seed_from_u64(1);
    for chunk in 0..count {
        let mut bytes = vec![0; len as usize];
        random.fill_bytes(&mut bytes);
        members.push((format!("a/c/{chunk}"), bytes));
    }
    // As zarr-python does, at the end, again.
    members.push(("zarr.json".to_owned(), group.to_string().into()));
    members
}

fn archived(members: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut writer = ZipWriter::default();
    members.iter().for_each(|(name, content)| writer.add(name, content));
    writer.finish()
}

#[tokio::test]
async fn few_requests_open_a_remote_archive() {
    let members = random_members(100, 20_000);
    let (opener, url) = remote(archived(&members), "x.zarr.zip").await;
    let (dataset, counts) = counted(opener.open(&url)).await;
    let dataset = dataset.unwrap();
    // The first bytes, and the last ones, which have the directory and the metadata.
    assert_eq!(counts.requests, 2, "{counts:?}");
    let (cells, counts) = counted(async {
        let array = dataset.array("a").await.unwrap().with_range("x", 500_000..520_000).unwrap();
        array.cells::<arrow::datatypes::UInt8Type>("value").await.unwrap()
    })
    .await;
    assert_eq!(cells.values(), members[2 + 25].1);
    assert_eq!(counts.requests, 1, "{counts:?}");
    // Neighbours join.
    let (_, counts) = counted(async {
        let array = dataset.array("a").await.unwrap();
        array.cells::<arrow::datatypes::UInt8Type>("value").await.unwrap()
    })
    .await;
    assert!(counts.requests <= 8, "{counts:?}");
}

#[tokio::test]
async fn archives_of_other_things_are_explained() {
    let folder = TempDir::new().unwrap();
    let error = async |names: &[&str]| {
        let mut writer = ZipWriter::default();
        names.iter().for_each(|name| writer.add(name, b"{}"));
        let path = folder.path().join("x.zarr.zip");
        fs::write(&path, writer.finish()).unwrap();
        opened(path.to_str().unwrap(), IoMode::Mmap).await.unwrap_err()
    };
    for (names, expected) in [
        (&["readme.txt", "data/x.csv"][..], "no Zarr store: none of zarr.json"),
        (&["readme.txt"], "it holds readme.txt"),
        (&["top/inner/readme.txt"], "in its folder \"top/inner\", it holds readme.txt"),
        (&["a/.zgroup", "b/zarr.json", "c"], "2 Zarr stores (\"a\", \"b\")"),
        (&[], "it is empty"),
    ] {
        let error = error(names).await;
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
    // Any name, by its first bytes.
    let path = folder.path().join("other");
    fs::write(&path, archived(&random_members(3, 5))).unwrap();
    assert_eq!(opened(path.to_str().unwrap(), IoMode::Mmap).await.unwrap().names(), ["a"]);
}

async fn store_of(archive: Vec<u8>) -> Result<ZippedStore> {
    ZippedStore::read(Arc::new(MemorySource::new("x.zip", archive)), &Documents::default()).await
}

#[tokio::test]
async fn absent_chunks_are_explained_once() {
    let mut members = random_members(4, 10);
    members.retain(|(name, _)| !name.starts_with("a/c/"));
    let store = store_of(archived(&members)).await.unwrap();
    let warning = store.explain_absence(0).await.unwrap().unwrap();
    assert!(warning.contains("no chunk of \"a\" is stored"), "{warning}");
    assert_eq!(store.explain_absence(0).await.unwrap(), None);
    let located = store.locate(0, vec![vec![0]]).await.unwrap();
    assert!(located[0].layers.is_empty());
    assert_eq!(store.stored(0).await.unwrap().unwrap().chunks, 0);
    assert_eq!(store.facts().noun, "zipped Zarr store, version 3");
}

/// Flips each byte of an archive. Rows are right, or an error, or show that a chunk's own bytes have changed.
#[tokio::test]
async fn deep_verification_finds_every_flipped_byte_of_a_chunk() {
    let members = random_members(2, 30);
    let archive = archived(&members);
    for at in 0..archive.len() {
        let mut damaged = archive.clone();
        damaged[at] ^= 0x10;
        let Ok(store) = store_of(damaged).await else { continue };
        if store.hierarchy().variables.is_empty() {
            continue;
        }
        let checked = async {
            store.check_index(0).await?;
            store.check_checksums(0).await
        };
        let checked = checked.await;
        let in_chunk = members[2..4].iter().any(|(_, content)| {
            let start = archive.windows(content.len()).position(|it| it == content).unwrap();
            (start..start + content.len()).contains(&at)
        });
        assert!(!in_chunk || checked.is_err(), "{at}");
        assert!(store_of(archive[..at].to_vec()).await.is_err());
    }
}

/// Compares archives with the stores in folders that `tests/data/foreign/zipped.py - FOLDER` wrote beside them.
#[tokio::test]
#[ignore = "needs GRIDFUSION_ZIPPED, a folder that zipped.py wrote"]
async fn archives_that_other_programs_wrote() {
    let folder = PathBuf::from(std::env::var("GRIDFUSION_ZIPPED").unwrap());
    let listed = fs::read(folder.join("archives.json")).unwrap();
    let listed: std::collections::BTreeMap<String, String> =
        serde_json::from_slice(&listed).unwrap();
    let (mut arrays, mut cells) = (0, 0);
    for (archive, store) in &listed {
        let at = |name: &str| folder.join(name).to_str().unwrap().to_owned();
        let expected = rows(&opened(&at(store), IoMode::Mmap).await.unwrap()).await;
        for io in [IoMode::Mmap, IoMode::Pread] {
            let found = rows(&opened(&at(archive), io).await.unwrap()).await;
            let same = found.iter().zip(&expected).find(|(found, expected)| found != expected);
            assert!(found.len() == expected.len() && same.is_none(), "{archive}: {same:?}");
        }
        let (opener, url) = remote(fs::read(at(archive)).unwrap(), archive).await;
        assert!(rows(&opener.open(&url).await.unwrap()).await == expected, "{archive}");
        arrays += expected.iter().filter(|(_, rows)| rows.is_ok()).count();
        cells +=
            expected.iter().flat_map(|(_, rows)| rows).map(RecordBatch::num_rows).sum::<usize>();
    }
    println!("{} archives, {arrays} arrays, {cells} rows", listed.len());
}

/// Metadata behind chunks that are longer than what a recognition looks at.
#[tokio::test]
async fn a_store_behind_many_bytes_is_recognised_by_the_directory() {
    let folder = TempDir::new().unwrap();
    for (name, inside, is_store) in [
        ("root.zip", &["zarr.json"][..], true),
        ("deep.zip", &["a/b/c/d/x.zarr/zarr.json"], true),
        ("two.bin", &["x.zarr/zarr.json", "y.zarr/zarr.json"], true),
        ("none.zip", &["word/document.xml"], false),
    ] {
        let mut writer = ZipWriter::default();
        let folder_of_store = inside[0].rsplit_once('/').map_or("", |(folder, _)| folder);
        writer.add(format!("{folder_of_store}/c").trim_start_matches('/'), &vec![7; 100_000]);
        let group = br#"{"zarr_format": 3, "node_type": "group"}"#;
        inside.iter().for_each(|name| writer.add(name, group));
        let path = folder.path().join(name);
        let mut archive = writer.finish();
        fs::write(&path, &archive).unwrap();
        let text = opened(path.to_str().unwrap(), IoMode::Mmap).await.err();
        let text = text.map(|it| it.to_string()).unwrap_or_default();
        assert_eq!(text.contains("gridfusion does not read"), !is_store, "{name}: {text}");
        assert_eq!(text.contains("2 Zarr stores"), name == "two.bin", "{name}: {text}");
        // An archive that was cut off is none.
        archive.pop();
        fs::write(&path, &archive).unwrap();
        assert!(opened(path.to_str().unwrap(), IoMode::Mmap).await.is_err());
    }
}

/// A member beside the store may have any name.
#[tokio::test]
async fn odd_names_beside_a_store_are_passed_by() {
    let store = Path::new(ROOT).join("examples/data/sea.zarr");
    let folder = TempDir::new().unwrap();
    for (odd, is_open) in [
        (&b"__MACOSX\\x"[..], true),
        (b"notes//a.txt", true),
        (b"\xff\xfe", true),
        (b"../evil", true),
        (b"/etc/passwd", true),
        (b"x.zarr\\sst\\c\\0\\0\\0", false),
        (b"/x.zarr/sst/c/0/0/0", false),
        (b"x.zarr/sst//c", false),
        (b"x.zarr/\xff", false),
    ] {
        let mut writer = ZipWriter::default();
        writer.add_bytes(odd, b"1");
        let path = folder.path().join("x.zarr.zip");
        fs::write(&path, write(writer, "x.zarr/", &store)).unwrap();
        let opened = opened(path.to_str().unwrap(), IoMode::Mmap).await;
        assert_eq!(opened.is_ok(), is_open, "{odd:?}");
        if let Err(error) = opened {
            assert!(error.to_string().contains("pack the folder again"), "{error}");
        }
    }
    let mut writer = ZipWriter::default();
    writer.add("x.zarr\\zarr.json", b"{}");
    let path = folder.path().join("windows.zarr.zip");
    fs::write(&path, writer.finish()).unwrap();
    let error = opened(path.to_str().unwrap(), IoMode::Mmap).await.unwrap_err().to_string();
    assert!(error.contains("holds no Zarr store") && error.contains("slashes"), "{error}");
}

/// A session with one store.
#[derive(Debug)]
struct One(RemoteStore);

impl Stores for One {
    fn store(&self, _: &Url) -> Result<RemoteStore> {
        Ok(self.0.clone())
    }
}

/// A catalog looks into files that may be archives of stores.
#[tokio::test]
async fn catalogs_list_archives_of_stores_by_their_directories() {
    let store =
        write(ZipWriter::default(), "x.zarr/", &Path::new(ROOT).join("examples/data/sea.zarr"));
    let mut other = ZipWriter::default();
    other.add("readme.txt", b"no store");
    let files: [(&str, &[u8]); 7] = [
        ("a.zip", &store),
        ("b.zip", &other.finish()),
        ("c.zip", b"no archive"),
        ("d.zip", b""),
        ("e.zarr.zip", b"named as one"),
        ("f.csv", b"1"),
        ("g.zip", &store[..store.len() - 9]),
    ];
    let folder = TempDir::new().unwrap();
    let memory = InMemory::new();
    for (name, bytes) in files {
        fs::write(folder.path().join(name), bytes).unwrap();
        memory.put(&format!("all/{name}").into(), bytes.to_vec().into()).await.unwrap();
    }
    let formats = Formats::new(vec![Arc::new(Zarr)]);
    for location in [folder.path().to_str().unwrap(), "s3://bucket/all"] {
        let session = One(Remote::default().store(Arc::new(memory.fork()) as Arc<dyn ObjectStore>));
        let place = Place::new(location, Arc::new(session)).unwrap();
        let listed: Vec<Entry> = place.entries().await.unwrap();
        // Planning runs on any thread.
        let (other, of_task, entries) = (place.clone(), formats.clone(), listed.clone());
        let spawned = tokio::spawn(async move {
            let recognised = of_task.recognise(&other).await.is_some();
            (recognised, of_task.places_in(&other, &entries).await.0.len())
        });
        assert_eq!(spawned.await.unwrap(), (false, 2));
        let session = One(Remote::default().store(Arc::new(memory.fork()) as Arc<dyn ObjectStore>));
        let place = Place::new(location, Arc::new(session)).unwrap();
        place.entries().await.unwrap();
        let ((found, failed), counts) = counted(formats.places_in(&place, &listed)).await;
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a.zip", "e.zarr.zip"], "{location} {failed:?}");
        // An archive that is cut off may hold a store.
        let [cut] = &failed[..] else { panic!("{failed:?}") };
        assert_eq!(
            (cut.kind(), cut.file()),
            (ErrorKind::Corrupt, Some(&*format!("{location}/g.zip")))
        );
        // The ends of the four with bytes, and the starts of those that end as no archive does.
        assert!(counts.requests <= 8, "{counts:?}");
        for (name, is_recognised) in [
            ("a.zip", true),
            ("b.zip", false),
            ("c.zip", false),
            ("d.zip", false),
            ("g.zip", true),
            ("none.zip", false),
        ] {
            let found = formats.recognise(&place.child(name).unwrap()).await;
            assert_eq!(found.is_some(), is_recognised, "{location}/{name}");
        }
    }
}
