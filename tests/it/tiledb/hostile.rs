//! Damaged and hostile TileDB arrays: files that are cut off, changed or missing, wrong keys, and
//! impossible numbers.
//!
//! The rule: no panic, no hang, no huge allocation, and every error names its file. TileDB stores
//! checksums only on request, so a changed byte of a value may go unnoticed. The tests therefore do
//! not compare the values of damaged arrays.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::{Arc, Mutex};

use arrow::array::RecordBatch;
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::GreedyMemoryPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::FutureExt;
use gridfusion::io::Folder;
use gridfusion::{ArrayOptions, ArrayTable, Error, ErrorKind, GridfusionSessionContextExt};
use gridfusion_tiledb::TileDbReader;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::memory_folder::{MemoryFolder, NAME, files_below};
use crate::support::open::{open_options, open_tiledb, view};
use crate::support::tiledb_writer::{
    Files, Filters, INT32, TestArray, TestAttribute, TestDimension, TestFragment, TestSchema,
    TestStatistics, UINT32, UTF8, generic_tile, integer, put_in_folder, words,
};
use crate::support::waiting::within_hang;
use crate::support::{cell, query, session, shipped};

const KEY: &str = "0123456789abcdef0123456789ABCDEF";

/// A session with a memory limit, the options of an array, and queries of it.
pub(crate) struct Reader {
    ctx: SessionContext,
    options: ArrayOptions,
    /// Queries of the table `t` that every read runs.
    queries: Vec<String>,
}

/// An array that is the table `t` of a session.
struct Opened {
    folder: Arc<MemoryFolder>,
    /// The names of the attributes, in quotes.
    attributes: Vec<String>,
    /// The number of rows; `None` for a sparse array.
    rows: Option<u64>,
}

/// The memory limit of a session, in bytes.
const POOL: usize = 64 << 20;
/// The most rows of a table that is read in full.
const MAX_ROWS: u64 = 10_000;

impl Reader {
    pub(crate) fn new(options: ArrayOptions) -> Self {
        let pool = Arc::new(GreedyMemoryPool::new(POOL));
        let runtime = RuntimeEnvBuilder::new().with_memory_pool(pool).build_arc().unwrap();
        let config = SessionConfig::new().with_target_partitions(1).with_batch_size(64);
        let ctx = SessionContext::new_with_config_rt(config, runtime);
        ctx.enable_gridfusion();
        Self { ctx, options, queries: vec![] }
    }

    /// Adds queries of the table `t`, which every read runs.
    pub(crate) fn with_queries(self, queries: &[&str]) -> Self {
        Self { queries: queries.iter().map(|sql| (*sql).to_owned()).collect(), ..self }
    }

    /// Opens an array as the table `t`.
    async fn open(&self, files: &Files) -> Result<Opened, String> {
        let folder = Arc::new(MemoryFolder { files: files.clone(), opened: Mutex::default() });
        let as_folder = Arc::clone(&folder) as Arc<dyn Folder>;
        let array = TileDbReader::open(as_folder, open_options(&self.options)).await;
        let array = array.map_err(|error| checked(&error))?;
        array.metadata().await.map_err(|error| checked(&error))?;
        let shown = array.array(&view(&self.options)).map_err(|error| checked(&error))?;
        let rows = shown.as_grid().map(|grid| grid.grid().cells());
        self.ctx.register_table("t", ArrayTable::new(shown).into_provider()).unwrap();
        let names = array.tiledb().schema().attributes.iter().map(|it| it.name.as_str());
        let quoted =
            |name: &str| if name.is_empty() { "value".into() } else { format!("\"{name}\"") };
        Ok(Opened { folder, attributes: names.map(quoted).collect(), rows })
    }

    /// Removes the table `t`, and checks the error of its queries. If the array is sparse, an error of its
    /// files must name the file.
    fn close<T>(&self, opened: &Opened, answer: datafusion::error::Result<T>) -> Result<T, String> {
        self.ctx.deregister_table("t").unwrap();
        assert_eq!(self.ctx.runtime_env().memory_pool.reserved(), 0);
        answer.map_err(|error| {
            match error.find_root() {
                DataFusionError::External(source) if opened.rows.is_none() => {
                    if let Some(error) = source.downcast_ref::<Error>() {
                        checked(error);
                    }
                }
                DataFusionError::NotImplemented(text) if opened.rows.is_none() => {
                    assert!(text.contains(NAME), "{text}");
                }
                _ => {}
            }
            checked_text(&error.to_string())
        })
    }

    /// Opens an array, and queries all its values and their counts. Returns the opened files, or the
    /// first error.
    pub(crate) async fn read(&self, files: &Files) -> Result<BTreeSet<String>, String> {
        let opened = self.open(files).await?;
        let counts = opened.attributes.iter().map(|name| format!("count({name})"));
        let counts: Vec<String> = counts.collect();
        let read = async {
            if let Some(rows) = opened.rows.filter(|rows| *rows > MAX_ROWS) {
                // A plan lists chunks, so it may refuse all of them, and never a few rows.
                match query(&self.ctx, "SELECT count(*) FROM t").await {
                    Ok(_) => {
                        let all = cell(&self.ctx, "SELECT count(*) FROM t").await;
                        assert_eq!(all, rows.to_string());
                    }
                    Err(error) => assert!(error.to_string().contains("at most"), "{error}"),
                }
                return query(&self.ctx, "SELECT * FROM t LIMIT 2").await;
            }
            let batches = query(&self.ctx, "SELECT * FROM t").await?;
            let found = batches.iter().map(|it| it.num_rows() as u64).sum::<u64>();
            match opened.rows {
                Some(rows) => assert_eq!(found, rows),
                None => {
                    let all = cell(&self.ctx, "SELECT count(*) FROM t").await;
                    assert_eq!(all, found.to_string());
                }
            }
            for sql in &self.queries {
                query(&self.ctx, sql).await?;
            }
            query(&self.ctx, &format!("SELECT {} FROM t", counts.join(", "))).await
        };
        let read = read.await;
        self.close(&opened, read)?;
        let files = opened.folder.opened.lock().unwrap().clone();
        Ok(files)
    }

    /// Reads as `read` does; fails the test after a panic or 20 seconds.
    pub(crate) async fn survive(
        &self,
        files: &Files,
        what: &str,
    ) -> Result<BTreeSet<String>, String> {
        guarded(self.read(files), what).await
    }

    /// Opens an array, and runs one query of the table `t`. Fails the test after a panic or a hang.
    pub(crate) async fn survive_query(
        &self,
        files: &Files,
        sql: &str,
    ) -> Result<Vec<RecordBatch>, String> {
        let answer = async {
            let opened = self.open(files).await?;
            let answer = query(&self.ctx, sql).await;
            self.close(&opened, answer)
        };
        guarded(answer, sql).await
    }
}

/// Waits for an outcome; fails the test after a panic or a hang.
async fn guarded<T>(outcome: impl Future<Output = T>, what: &str) -> T {
    let outcome = within_hang(what, AssertUnwindSafe(outcome).catch_unwind()).await;
    outcome.unwrap_or_else(|_| panic!("{what}: a panic"))
}

/// The text of an error, which must name its file and must not be `Internal`.
fn checked(error: &Error) -> String {
    assert!(error.file().is_some_and(|file| file.starts_with(NAME)), "{error}");
    assert_ne!(error.kind(), ErrorKind::Internal, "{error}");
    checked_text(&error.to_string())
}

fn checked_text(error: &str) -> String {
    for bad in ["bug in", "panic", KEY] {
        assert!(!error.contains(bad), "{error}");
    }
    error.to_owned()
}

/// Small arrays of every kind, each with the reader that opens it.
fn small_arrays() -> Vec<(&'static str, Files, Reader)> {
    let names = [
        "overlap",
        "varlen",
        "filters",
        "enums",
        "commits",
        "encrypted",
        "nullable",
        "evolved",
        "consolidated",
        "multivalue",
        "metadata",
    ];
    let array = |name| {
        let files = files_below(Path::new(&shipped(&format!("tests/data/tiledb/{name}"))));
        let mut options = ArrayOptions::default();
        if name == "encrypted" {
            options = options.with_option("encryption_key", KEY);
        }
        (name, files, Reader::new(options))
    };
    names.into_iter().map(array).collect()
}

/// Whether a file lists fragments. A list that is cut off is valid, but shorter.
pub(crate) fn is_list(path: &str) -> bool {
    [".con", ".vac", ".ign"].iter().any(|end| path.ends_with(end))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tiledb_files_that_are_cut_off_are_errors() {
    let mut rng = StdRng::seed_from_u64(1);
    let mut cuts = 0;
    for (name, files, reader) in small_arrays() {
        let read = reader.read(&files).await.unwrap();
        let several = files.keys().filter(|path| path.ends_with("a0.tdb")).count() > 1;
        for (path, bytes) in &files {
            let most = bytes.len().min(20);
            let mut lens: BTreeSet<usize> =
                (0..most.min(8)).chain(bytes.len().checked_sub(1)).collect();
            while lens.len() < most {
                lens.insert(rng.random_range(0..bytes.len()));
            }
            for len in lens {
                let mut files = files.clone();
                files.insert(path.clone(), bytes[..len].to_vec());
                let what = format!("{name}/{path} cut at byte {len} of {}", bytes.len());
                let outcome = reader.survive(&files, &what).await;
                // Newer fragments may hide the missing tiles.
                let hidden = several && len > 0 && !path.contains("__fragment_metadata");
                if read.contains(path) && !is_list(path) && !(hidden && path.contains("/a")) {
                    assert!(outcome.is_err(), "{what} still reads");
                }
                cuts += 1;
            }
        }
    }
    assert!(cuts > 1_000, "{cuts}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changed_bytes_of_tiledb_files_are_survived() {
    let before = peak_memory();
    let mut rng = StdRng::seed_from_u64(2);
    let (mut refused, mut total) = (0, 0);
    for (name, files, reader) in small_arrays() {
        for (path, bytes) in files.iter().filter(|(_, bytes)| !bytes.is_empty()) {
            for _ in 0..(bytes.len() / 8).clamp(15, 50) {
                let mut files = files.clone();
                let at = rng.random_range(0..bytes.len());
                let flip = [0x01, 0x80, 0xff, rng.random_range(1..=255)][rng.random_range(0..4)];
                files.get_mut(path).unwrap()[at] ^= flip;
                let what = format!("{name}/{path} byte {at} ^ {flip:#x}");
                refused += usize::from(reader.survive(&files, &what).await.is_err());
                total += 1;
            }
        }
    }
    assert!(refused > total / 3, "only {refused} of {total} changes were noticed");
    assert_grew_little(before);
}

/// The peak memory of the process so far, in bytes; 0 where it is unknown.
pub(crate) fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = peak.and_then(|peak| peak.trim().split(' ').next()?.parse::<u64>().ok());
    number.unwrap_or(0) * 1024
}

pub(crate) fn assert_grew_little(before: u64) {
    let grown = peak_memory() - before;
    assert!(grown < 500 << 20, "memory grew by {} MiB", grown >> 20);
}

/// The error about a missing file names the file, or the folder `__schema` if no schema is left.
#[tokio::test]
async fn missing_tiledb_files_are_named() {
    for (name, files, reader) in small_arrays() {
        let read = reader.read(&files).await.unwrap();
        for path in read.iter().filter(|path| !is_list(path) && !path.starts_with("__meta")) {
            let mut files = files.clone();
            files.remove(path);
            let error = reader.survive(&files, path).await.unwrap_err();
            let file = path.rsplit('/').next().unwrap();
            let schemas = files.keys().any(|path| path.starts_with("__schema/__"));
            let named = error.contains(file) || (!schemas && error.contains("__schema"));
            assert!(named && error.contains(NAME), "{name} without {path}: {error}");
        }
    }
}

/// A plain array of 5 x 7 cells in tiles of 2 x 3, with one fragment that covers all of it.
fn plain() -> TestArray {
    let dimension = |name: &str, high, extent| TestDimension {
        name: name.into(),
        code: INT32,
        domain: (1, high),
        extent,
    };
    let attribute = |name: &str, code, values, nullable, fill: &[u8]| TestAttribute {
        name: name.into(),
        code,
        values,
        nullable,
        fill: fill.into(),
        fill_valid: false,
        filters: Filters::None,
    };
    let schema = TestSchema {
        time: 1,
        dimensions: vec![dimension("y", 5, 2), dimension("x", 7, 3)],
        attributes: vec![
            attribute("v", INT32, Some(1), false, &[9, 0, 0, 0]),
            attribute("s", UTF8, None, true, b"-"),
        ],
        column_major: [false, false],
        current_domain: None,
        offsets: Filters::None,
        validity: Filters::None,
    };
    let cells = vec![
        (0..35).map(|number| Some(integer(INT32, number))).collect(),
        (0..35).map(|number| (number % 5 != 0).then(|| format!("s{number}").into())).collect(),
    ];
    let ranges = vec![(1, 5), (1, 7)];
    let fragment =
        TestFragment { times: (2, 2), schema: 0, ranges, cells, statistics: TestStatistics::Right };
    TestArray {
        schemas: vec![schema],
        fragments: vec![fragment],
        vacuums: vec![],
        commit_list: false,
    }
}

fn files_of(array: &TestArray) -> Files {
    array.files(&mut StdRng::seed_from_u64(0))
}

fn metadata_path(array: &TestArray) -> String {
    format!("__fragments/{}/__fragment_metadata.tdb", array.fragment_name(0))
}

/// Writes impossible numbers at every byte of the footer and the schema of a plain array, and at a
/// third of the other bytes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn impossible_numbers_anywhere_in_a_tiledb_array() {
    let before = peak_memory();
    let files = files_of(&plain());
    let readers = [false, true]
        .map(|full| Reader::new(ArrayOptions::default().with_option("full_domain", full)));
    let (mut refused, mut total) = (0, 0);
    for (path, bytes) in &files {
        let footer = bytes.last_chunk().map_or(0, |len| u64::from_le_bytes(*len) as usize + 8);
        for at in 0..bytes.len() {
            let lies = [u64::MAX, u64::MAX >> 1, 1 << 63, 1 << 40];
            let thorough = match path.ends_with("metadata.tdb") {
                true => at + footer > bytes.len(),
                false => path.starts_with("__schema"),
            };
            let chosen = if thorough { 0..4 } else { at % 12..at % 12 + 1 };
            for lie in lies.get(chosen.start..chosen.end.min(4)).unwrap_or_default() {
                let mut files = files.clone();
                let room = &mut files.get_mut(path).unwrap()[at..];
                let len = room.len().min(8);
                room[..len].copy_from_slice(&lie.to_le_bytes()[..len]);
                let what = format!("{path}: {lie:#x} at byte {at}");
                let outcome = readers[total % 2].survive(&files, &what).await;
                refused += usize::from(outcome.is_err());
                total += 1;
            }
        }
    }
    assert!(refused > total / 3, "only {refused} of {total} impossible numbers were noticed");
    assert_grew_little(before);
}

/// The error of reading a plain array whose files were changed.
async fn error_of(change: impl FnOnce(&TestArray, &mut Files)) -> String {
    let array = plain();
    let mut files = files_of(&array);
    change(&array, &mut files);
    let reader = Reader::new(ArrayOptions::default());
    reader.survive(&files, "a changed array").await.unwrap_err()
}

#[tokio::test]
async fn tiledb_footers_that_contradict_their_array_are_refused() {
    let name_len = plain().schemas[0].name().len();
    let ranges = 12 + name_len + 2;
    let low_high = |low: i32, high: i32| [low.to_le_bytes(), high.to_le_bytes()].concat();
    for (at, bytes, expected) in [
        (0, 24_u32.to_le_bytes().to_vec(), "TileDB format version 24"),
        (0, 4_u32.to_le_bytes().to_vec(), "TileDB format version 4"),
        (14, b"9".to_vec(), "which the array does not have"),
        (12 + name_len, vec![0], "a sparse fragment in a dense array"),
        (12 + name_len, vec![2], "corrupt fragment footer"),
        (13 + name_len, vec![1], "a fragment without a domain"),
        (ranges, low_high(0, 5), "cells from 0 to 5 in a domain of 1 to 5"),
        (ranges, low_high(1, 7), "cells from 1 to 7 in a domain of 1 to 5"),
        (ranges, low_high(i32::MIN, i32::MAX), "in a domain of 1 to 5"),
        (ranges, low_high(4, 3), "dimension \"y\" from 4 down to 3"),
        (ranges, low_high(1, 2), "9 tiles, but the fragment covers 3"),
    ] {
        let error = error_of(|array, files| {
            let file = files.get_mut(&metadata_path(array)).unwrap();
            let footer = file.last_chunk().map_or(0, |len| u64::from_le_bytes(*len) as usize + 8);
            let start = file.len() - footer + at;
            file[start..start + bytes.len()].copy_from_slice(&bytes);
        });
        let error = error.await;
        assert!(error.contains(expected), "expected {expected:?}: {error}");
        assert!(error.contains(NAME) && error.contains("__fragments/__2_2_"), "{error}");
    }
}

#[tokio::test]
async fn tiledb_tiles_that_overlap_are_refused() {
    let error = error_of(|array, files| {
        let file = files.get_mut(&metadata_path(array)).unwrap();
        // The first block with nine numbers: the offsets of the nine tiles of "v".
        let block = file.windows(16).position(|at| at == words([9, 0])).unwrap();
        file[block + 24..block + 32].copy_from_slice(&7_u64.to_le_bytes());
    });
    let error = error.await;
    assert!(error.contains("a0.tdb do not ascend"), "{error}");
}

/// A changed schema, next to a fragment that was written with the earlier schema.
#[tokio::test]
async fn schemas_that_contradict_one_another_are_refused() {
    let after = async |change: fn(&mut TestSchema)| {
        error_of(|array, files| {
            let mut later = TestSchema { time: 9, ..array.schemas[0].clone() };
            change(&mut later);
            files.insert(format!("__schema/{}", later.name()), generic_tile(&later.content()));
        })
        .await
    };
    let error = after(|schema| schema.attributes[0].code = UINT32).await;
    assert!(error.contains("attribute \"v\" is of type INT32 in fragment __2_2_"), "{error}");
    let error = after(|schema| schema.attributes[1].nullable = false).await;
    assert!(error.contains("attribute \"s\" is nullable in fragment __2_2_"), "{error}");
    let error = after(|schema| schema.dimensions[1].extent = 4).await;
    assert!(error.contains("a schema whose dimensions or orders are not the array's"), "{error}");
    let error = after(|schema| schema.current_domain = Some(vec![(1, 5), (1, 8)])).await;
    assert!(error.contains("a current domain that exceeds the domain"), "{error}");
}

/// Domains and tiles larger than any memory are not allocated: queries work, or fail with a clean error.
#[tokio::test]
async fn enormous_tiledb_arrays_cost_nothing() {
    let before = peak_memory();
    for (high, extent) in [(i32::MAX, 1), (i32::MAX, i32::MAX), (5, i32::MAX), (1 << 20, 1 << 20)] {
        for full in [false, true] {
            let mut array = plain();
            array.fragments.clear();
            let axis = &mut array.schemas[0].dimensions[0];
            (axis.domain.1, axis.extent) = (high.into(), extent.into());
            let reader = Reader::new(ArrayOptions::default().with_option("full_domain", full));
            let what = format!("{high} in tiles of {extent}, {full}");
            let outcome = reader.survive(&files_of(&array), &what).await;
            if let Err(error) = outcome {
                let clean = ["tiles", "cells", "Resources exhausted"];
                assert!(clean.iter().any(|part| error.contains(part)), "{what}: {error}");
            }
        }
    }
    assert_grew_little(before);
}

async fn open_error(location: &str, options: &ArrayOptions) -> Error {
    let ctx = session(1, 8192);
    let opened = open_tiledb(location, options, &ctx).await;
    match opened.and_then(|array| array.array(&view(options))) {
        Ok(_) => panic!("{location} was opened"),
        Err(error) => error,
    }
}

/// Only the right key opens the array, and no error shows a key.
#[tokio::test]
async fn keys_of_tiledb_arrays() {
    let wrong = "wrongwrongwrongwrongwrongwrong!!";
    let with = |key: &str| ArrayOptions::default().with_option("encryption_key", key);
    let (encrypted, plain) =
        (shipped("tests/data/tiledb/encrypted"), shipped("tests/data/tiledb/fill"));
    for (location, options, kind, expected) in [
        (&encrypted, with(wrong), ErrorKind::Corrupt, "the encryption key may be wrong"),
        (&encrypted, ArrayOptions::default(), ErrorKind::Usage, "give option 'encryption_key'"),
        (&plain, with(KEY), ErrorKind::Usage, "leave out option 'encryption_key'"),
    ] {
        let error = open_error(location, &options).await;
        let shown = format!("{error} {error:?} {options:?}");
        assert_eq!(error.kind(), kind, "{error}");
        assert!(
            shown.contains(expected) && error.to_string().contains(location.as_str()),
            "{error}"
        );
        assert!(!shown.contains(KEY) && !shown.contains(wrong), "{shown}");
    }
    let ctx = session(1, 8192);
    ctx.enable_gridfusion();
    for (table, key) in [("a", wrong), ("b", KEY), ("c", "tooshort")] {
        let sql = format!(
            "CREATE EXTERNAL TABLE {table} STORED AS TILEDB LOCATION '{encrypted}' \
             OPTIONS ('encryption_key' '{key}')"
        );
        let created = query(&ctx, &sql).await;
        assert_eq!(created.is_ok(), key == KEY);
        if let Err(error) = created {
            let shown = format!("{error} {error:?}");
            assert!(!shown.contains(key) && shown.contains("key"), "{shown}");
        }
    }
    for sql in ["SELECT * FROM b", "EXPLAIN SELECT * FROM b", "SHOW CREATE TABLE b"] {
        let rows = format!("{:?}", query(&ctx, sql).await);
        assert!(!rows.contains(KEY), "{sql}: {rows}");
    }
}

/// Opening something other than a dense array is an error that names the reason.
#[tokio::test]
async fn what_is_no_dense_tiledb_array() {
    let folder = tempfile::tempdir().unwrap();
    let here = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::create_dir(here("empty")).unwrap();
    std::fs::write(here("file"), b"no folder").unwrap();
    std::fs::create_dir_all(here("no_schema/__schema")).unwrap();
    put_in_folder(&files_of(&plain()), Path::new(&here("plain")));
    let array = |name: &str| shipped(&format!("tests/data/tiledb/{name}"));
    for (location, kind, expected) in [
        (array("weather"), ErrorKind::Usage, "a TileDB group, not an array"),
        (here("empty"), ErrorKind::Usage, "not a TileDB array: it has no __schema folder"),
        (here(""), ErrorKind::Usage, "not a TileDB array: it has no __schema folder"),
        (here("plain/__fragments"), ErrorKind::Usage, "not a TileDB array"),
        (here("no_schema"), ErrorKind::Corrupt, "folder __schema has no schema in it"),
        (here("file"), ErrorKind::Io, "cannot open the folder"),
        (shipped("examples/data/stations.tet"), ErrorKind::Io, "cannot open the folder"),
        (here("missing"), ErrorKind::Io, "cannot open the folder"),
    ] {
        let error = open_error(&location, &ArrayOptions::default()).await;
        assert_eq!(error.kind(), kind, "{error}");
        let text = error.to_string();
        assert!(text.contains(expected) && text.contains(location.trim_end_matches('/')), "{text}");
    }
    let ctx = session(1, 8192);
    ctx.register_array("t", here("plain"), ArrayOptions::default()).await.unwrap();
    assert_eq!(cell(&ctx, "SELECT sum(v) FROM t").await, "595");
}
