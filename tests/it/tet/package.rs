//! `.tet.d` packages: the generation that a table reads, and its `ZONE.json`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::SessionContext;
use gridfusion::exec::GridScanExec;
use gridfusion::{ArrayOptions, ErrorKind, GridfusionSessionContextExt, IoMode};
use object_store::memory::InMemory;
use object_store::{ObjectStore, ObjectStoreExt};
use serde_json::{Value, json};

use crate::support::open::open_tet;
use crate::support::{
    I32, Layout, TempTet, TestDataset, cell, query, reducing, rows_of, session, tet_bytes,
};

/// Every generation has this many chunks of `CELLS` cells. Its values count up from a million times the
/// number of the generation.
const CHUNKS: u64 = 8;
const CELLS: u64 = 8192;
const CHUNK_BYTES: u64 = CELLS * 4;

fn first_value(generation: u64) -> i32 {
    generation as i32 * 1_000_000
}

/// The file of a generation, with a footer of this version, if any, and with zone maps, if any.
fn packed(generation: u64, history_version: Option<u32>, zones: Option<Value>) -> Vec<u8> {
    let values = first_value(generation)..first_value(generation) + (CHUNKS * CELLS) as i32;
    let data = values.flat_map(i32::to_le_bytes).collect();
    let dataset = TestDataset::new("value", I32, &[CHUNKS * CELLS], &[CELLS], data);
    tet_bytes(&[dataset], &Layout { history_version, zones, ..Layout::default() })
}

/// The zone maps of a generation.
fn zones(generation: u64) -> Value {
    let hex = |value: i32| -> String {
        value.to_le_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
    };
    let zone = |chunk: u64| {
        let least = first_value(generation) + (chunk * CELLS) as i32;
        json!({"dataset_id": 0, "chunk_index": [chunk], "element_count": CELLS, "null_count": 0,
            "min_le": hex(least), "max_le": hex(least + CELLS as i32 - 1)})
    };
    json!({"version": 1, "generation": generation, "packed_sha256": "0".repeat(64),
        "chunks": (0..CHUNKS).map(zone).collect::<Vec<Value>>()})
}

/// Wrong zone maps: the bounds of every chunk are the generation's first value.
fn lies(generation: u64) -> Value {
    let mut zones = zones(generation);
    let first = zones["chunks"][0]["min_le"].clone();
    for zone in zones["chunks"].as_array_mut().unwrap() {
        zone["min_le"] = first.clone();
        zone["max_le"] = first.clone();
    }
    zones
}

/// The files of a package by their paths.
#[derive(Clone)]
struct Package(BTreeMap<String, Vec<u8>>);

impl Package {
    /// Generations 1 and 2 with a zone file each; the second is current.
    fn new() -> Self {
        let mut package = Self(BTreeMap::new());
        package.put("PROTOCOL", r#"{"protocol_version": 2, "created_unix": 1700000000}"#);
        package.put("CURRENT", "2\n");
        package.put("staging/part-x.tet", "half of it");
        for generation in [1, 2] {
            package
                .put(&format!("{}/packed.tet", folder(generation)), packed(generation, None, None));
            package.put(&format!("{}/MANIFEST.json", folder(generation)), "{}");
            package.put(&zone_file(generation), zones(generation).to_string());
        }
        package
    }

    fn put(&mut self, path: &str, bytes: impl Into<Vec<u8>>) {
        self.0.insert(path.to_owned(), bytes.into());
    }

    fn with(mut self, path: &str, bytes: impl Into<Vec<u8>>) -> Self {
        self.put(path, bytes);
        self
    }

    fn without(mut self, path: &str) -> Self {
        self.0.retain(|file, _| !file.starts_with(path));
        self
    }

    fn on_disk(&self) -> OnDisk {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("test.tet.d");
        std::fs::create_dir(&root).unwrap();
        for (path, bytes) in &self.0 {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
        OnDisk { _dir: dir, root }
    }

    async fn in_memory(&self) -> Arc<InMemory> {
        let store = Arc::new(InMemory::new());
        for (path, bytes) in &self.0 {
            let path = format!("some/test.tet.d/{path}");
            store.put(&path.into(), bytes.clone().into()).await.unwrap();
        }
        store
    }
}

fn folder(generation: u64) -> String {
    format!("generations/{generation:08}")
}

fn zone_file(generation: u64) -> String {
    format!("{}/ZONE.json", folder(generation))
}

/// A package in a directory that lives as long as the test.
struct OnDisk {
    _dir: tempfile::TempDir,
    root: PathBuf,
}

impl OnDisk {
    fn location(&self) -> &str {
        self.root.to_str().unwrap()
    }
}

async fn open(location: &str, options: ArrayOptions) -> SessionContext {
    let ctx = session(2, 8192);
    ctx.register_array("t", location, options).await.unwrap();
    ctx
}

/// The generation that a table shows, whose rows must be complete.
async fn generation_of(ctx: &SessionContext, table: &str) -> u64 {
    let sql = format!("SELECT sum(value::bigint), min(value), count(value) FROM {table}");
    let [row] = &rows_of(&query(ctx, &sql).await.unwrap())[..] else { panic!("{sql}: rows") };
    let least: u64 = row[1].parse().unwrap();
    let cells = CHUNKS * CELLS;
    assert_eq!(row[0], (least * cells + cells * (cells - 1) / 2).to_string());
    assert_eq!((row[2].clone(), least % 1_000_000), (cells.to_string(), 0));
    least / 1_000_000
}

/// Runs a query over `t`; returns its rows, and the chunks and bytes that its scan read.
async fn read(ctx: &SessionContext, sql: &str) -> (Vec<Vec<String>>, [u64; 2]) {
    fn scan(plan: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
        if plan.downcast_ref::<GridScanExec>().is_some() {
            return Some(Arc::clone(plan));
        }
        plan.children().into_iter().find_map(scan)
    }
    let plan = ctx.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    let batches = collect(Arc::clone(&plan), ctx.task_ctx()).await.unwrap();
    let metrics = scan(&plan).unwrap_or_else(|| panic!("{sql}: no scan")).metrics().unwrap();
    let sum = |name| metrics.sum_by_name(name).map_or(0, |sum| sum.as_usize() as u64);
    (rows_of(&batches), ["chunks_read", "bytes_read"].map(sum))
}

const ALL: [u64; 2] = [CHUNKS, CHUNKS * CHUNK_BYTES];

/// Two cells of the fifth chunk of generation 2.
const TWO_CELLS: &str = "SELECT value FROM t WHERE value IN (2040000, 2040001)";

async fn reads_two_cells(ctx: &SessionContext, expected: [u64; 2], how: &str) {
    let (rows, read) = read(ctx, TWO_CELLS).await;
    assert_eq!(rows, [["2040000"], ["2040001"]], "{how}");
    assert_eq!(read, expected, "{how}");
}

#[tokio::test]
async fn a_package_is_opened_wherever_a_file_is() {
    let package = Package::new().on_disk();
    let location = package.location();
    let pinned = ArrayOptions::default().with_option("generation", 1);
    for (options, generation) in [(ArrayOptions::default(), 2), (pinned, 1)] {
        let ctx = reducing(2, 8192);
        ctx.register_array("t", location, options.clone()).await.unwrap();
        assert_eq!(generation_of(&ctx, "t").await, generation);
        ctx.register_array_schema("s", location, options.clone()).await.unwrap();
        assert_eq!(generation_of(&ctx, "s.value").await, generation);
        let frame = ctx.read_array(location, options.clone()).await.unwrap();
        assert_eq!(frame.count().await.unwrap() as u64, CHUNKS * CELLS);
        let file = open_tet(location, &options, &ctx).await.unwrap();
        assert_eq!(file.generation(), Some(generation));
        let name = format!("{location}/generations/0000000{generation}/packed.tet");
        assert_eq!(file.name(), name);

        let pin = if generation == 1 { "OPTIONS ('generation' '1')" } else { "" };
        let sql = format!("CREATE EXTERNAL TABLE x STORED AS TET LOCATION '{location}' {pin}");
        query(&ctx, &sql).await.unwrap();
        assert_eq!(generation_of(&ctx, "x").await, generation);
    }
    let url = url::Url::from_directory_path(&package.root).unwrap();
    assert_eq!(generation_of(&open(url.as_str(), ArrayOptions::default()).await, "t").await, 2);
}

#[tokio::test]
async fn current_may_be_json() {
    for current in
        ["{\"generation\":1}", "{ \"generation\": 1, \"more\": [] }\n", "1", "00000001\n"]
    {
        let package = Package::new().with("CURRENT", current).on_disk();
        let ctx = open(package.location(), ArrayOptions::default()).await;
        assert_eq!(generation_of(&ctx, "t").await, 1, "{current}");
    }
}

/// A table keeps reading the generation that was current when it was opened, even after its deletion.
#[tokio::test]
async fn later_generations_are_for_later_tables() {
    for io in [IoMode::Mmap, IoMode::Pread] {
        let package = Package::new().with("CURRENT", "1\n").on_disk();
        let options = ArrayOptions::default().with_io(io);
        let old = open(package.location(), options.clone()).await;
        assert_eq!(generation_of(&old, "t").await, 1);
        std::fs::write(package.root.join("CURRENT"), "2\n").unwrap();
        assert_eq!(generation_of(&old, "t").await, 1);
        assert_eq!(generation_of(&open(package.location(), options).await, "t").await, 2);
        std::fs::remove_dir_all(package.root.join(folder(1))).unwrap();
        assert_eq!(generation_of(&old, "t").await, 1, "{io}");
    }
}

#[tokio::test]
async fn packages_lie_in_object_stores() {
    let store = Package::new().with("CURRENT", "1\n").in_memory().await;
    let session = || {
        let ctx = session(2, 8192);
        let store = Arc::<InMemory>::clone(&store) as Arc<dyn ObjectStore>;
        ctx.register_object_store(&url::Url::parse("mem://bucket").unwrap(), store);
        ctx
    };
    let location = "mem://bucket/some/test.tet.d";
    let old = session();
    old.register_array("t", location, ArrayOptions::default()).await.unwrap();
    store.put(&"some/test.tet.d/CURRENT".into(), "{\"generation\":2}".into()).await.unwrap();
    let new = session();
    new.register_array("t", "mem://bucket/some/test.tet.d/", ArrayOptions::default())
        .await
        .unwrap();
    let pinned = ArrayOptions::default().with_option("generation", 1);
    new.register_array("first", location, pinned).await.unwrap();
    assert_eq!(generation_of(&old, "t").await, 1);
    assert_eq!(generation_of(&new, "t").await, 2);
    assert_eq!(generation_of(&new, "first").await, 1);
    reads_two_cells(&new, [1, CHUNK_BYTES], "zone file in a store").await;

    for (location, expected) in [
        (
            "mem://bucket/other.tet.d",
            "mem://bucket/other.tet.d: this folder is not a .tet.d package",
        ),
        ("mem://bucket/some", "it holds test.tet.d"),
    ] {
        let error = new.register_array("x", location, ArrayOptions::default()).await.unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
    let wanted = ArrayOptions::default().with_option("generation", 3);
    let error = new.register_array("x", location, wanted).await.unwrap_err().to_string();
    assert!(error.contains("test.tet.d: no generation 3; the package has 1, 2"), "{error}");
}

#[tokio::test]
async fn zone_files_prune_chunks() {
    let packed_file = format!("{}/packed.tet", folder(2));
    let one = [1, CHUNK_BYTES];
    let embedded = |zones| packed(2, Some(2), Some(zones));
    for (how, package, expected) in [
        ("no footer", Package::new(), one),
        ("footer 1", Package::new().with(&packed_file, packed(2, Some(1), None)), one),
        ("footer 2", Package::new().with(&packed_file, packed(2, Some(2), None)), one),
        // A footer of version 1 has no zone maps, whatever is embedded.
        ("unknown", Package::new().with(&packed_file, packed(2, Some(1), Some(json!(1)))), one),
        ("neither", Package::new().without(&zone_file(2)), ALL),
        (
            "embedded",
            Package::new().without(&zone_file(2)).with(&packed_file, embedded(zones(2))),
            one,
        ),
        // Zone maps in the file win over `ZONE.json`.
        (
            "both",
            Package::new()
                .with(&zone_file(2), lies(2).to_string())
                .with(&packed_file, embedded(zones(2))),
            one,
        ),
    ] {
        let package = package.on_disk();
        for io in [IoMode::Mmap, IoMode::Pread] {
            let options = ArrayOptions::default().with_io(io);
            reads_two_cells(&open(package.location(), options).await, expected, how).await;
        }
        let distrust = ArrayOptions::default().with_trust_zone_maps(false);
        reads_two_cells(&open(package.location(), distrust).await, ALL, how).await;
    }
}

/// Trusting wrong zone maps gives wrong answers, which proves that `ZONE.json` is used.
#[tokio::test]
async fn wrong_maps_matter_only_to_those_who_trust() {
    let package = Package::new().with(&zone_file(2), lies(2).to_string()).on_disk();
    for (trust, expected) in [(true, [0, 0]), (false, ALL)] {
        let options = ArrayOptions::default().with_trust_zone_maps(trust);
        let ctx = open(package.location(), options).await;
        let (rows, read) = read(&ctx, TWO_CELLS).await;
        assert_eq!((rows.len(), read), (if trust { 0 } else { 2 }, expected), "{trust}");
    }
}

#[tokio::test]
async fn zone_files_that_do_not_fit_are_ignored() {
    let edited = |edit: fn(&mut Value)| {
        let mut lies = lies(2);
        edit(&mut lies);
        lies.to_string()
    };
    for (how, content) in [
        ("another generation", lies(1).to_string()),
        ("no generation", edited(|lies| _ = lies.as_object_mut().unwrap().remove("generation"))),
        ("another version", edited(|lies| lies["version"] = json!(2))),
        ("another dataset's chunk", edited(|lies| lies["chunks"][7]["chunk_index"] = json!([8]))),
        ("other cells", edited(|lies| lies["chunks"][0]["element_count"] = json!(CELLS - 1))),
        ("a short bound", edited(|lies| lies["chunks"][3]["max_le"] = json!("00"))),
        ("cut short", lies(2).to_string()[..500].to_owned()),
        ("garbage", "\0\u{1}\u{2}".to_owned()),
        ("nothing", String::new()),
    ] {
        let package = Package::new().with(&zone_file(2), content).on_disk();
        let ctx = open(package.location(), ArrayOptions::default()).await;
        // An ignored zone file prunes no chunks.
        reads_two_cells(&ctx, ALL, how).await;
        assert_eq!(generation_of(&ctx, "t").await, 2, "{how}");
    }
    let as_folder = Package::new().without(&zone_file(2)).with(&format!("{}/x", zone_file(2)), "");
    let package = as_folder.on_disk();
    reads_two_cells(&open(package.location(), ArrayOptions::default()).await, ALL, "folder").await;

    let package = Package::new().on_disk();
    let ctx = open(package.location(), ArrayOptions::default()).await;
    std::fs::remove_file(package.root.join(zone_file(2))).unwrap();
    reads_two_cells(&ctx, ALL, "gone before it was read").await;
}

/// A zone file may have 1024 bytes per chunk and 1024 more; a longer one is ignored.
#[tokio::test]
async fn zone_files_are_no_longer_than_the_chunks_warrant() {
    let data = (0..100_000_i32).flat_map(i32::to_le_bytes).collect();
    let dataset = TestDataset::new("value", I32, &[100_000], &[100_000], data);
    let file = tet_bytes(&[dataset], &Layout::default());
    let lie = json!({"version": 1, "generation": 2, "chunks": [{"dataset_id": 0, "chunk_index": [0],
        "element_count": 100_000, "null_count": 0, "min_le": "00000000", "max_le": "00000000"}]});
    for (spaces, rows) in [(0, 0), (1500, 0), (3000, 1)] {
        let zones = lie.to_string() + &" ".repeat(spaces);
        let package = Package::new().with(&zone_file(2), zones);
        let package = package.with(&format!("{}/packed.tet", folder(2)), file.clone()).on_disk();
        let ctx = open(package.location(), ArrayOptions::default()).await;
        let found = rows_of(&query(&ctx, "SELECT value FROM t WHERE value = 77").await.unwrap());
        assert_eq!(found.len(), rows, "{spaces}");
    }
}

/// A zone file that is longer than the chunks to be read is not read, so wrong zone maps in it do no harm. A
/// small zone file is always read.
#[tokio::test]
async fn zone_files_are_read_only_where_they_pay() {
    let data = (0..8192_i32).flat_map(i32::to_le_bytes).collect();
    let file =
        tet_bytes(&[TestDataset::new("value", I32, &[8192], &[64], data)], &Layout::default());
    let lie = |chunk: u64| {
        json!({"dataset_id": 0, "chunk_index": [chunk], "element_count": 64, "null_count": 0,
            "min_le": "00000000", "max_le": "00000000"})
    };
    let lies: Vec<Value> = (0..128).map(lie).collect();
    let lies = json!({"version": 1, "generation": 2, "chunks": lies}).to_string();
    for (spaces, rows) in [(0, 0), (1 << 16, 1)] {
        let package = Package::new().with(&zone_file(2), lies.clone() + &" ".repeat(spaces));
        let package = package.with(&format!("{}/packed.tet", folder(2)), file.clone()).on_disk();
        let ctx = open(package.location(), ArrayOptions::default()).await;
        let found = rows_of(&query(&ctx, "SELECT value FROM t WHERE value = 77").await.unwrap());
        assert_eq!(found.len(), rows, "{spaces}");
    }
}

#[tokio::test]
async fn mistakes_about_packages_are_named() {
    let whole = Package::new;
    let current = |text: &str| whole().with("CURRENT", text);
    for (package, generation, kind, expected) in [
        (
            whole().without("PROTOCOL"),
            None,
            ErrorKind::Usage,
            "test.tet.d: this folder is not a .tet.d package: it has no PROTOCOL",
        ),
        (
            whole().without("CURRENT"),
            None,
            ErrorKind::Usage,
            "test.tet.d: no generation of this package has been published: it has no CURRENT",
        ),
        (whole(), Some(7), ErrorKind::Usage, "test.tet.d: no generation 7; the package has 1, 2"),
        (
            whole().without("generations"),
            Some(7),
            ErrorKind::Usage,
            "test.tet.d: no generation 7; the package has none",
        ),
        (
            current("7\n"),
            None,
            ErrorKind::Corrupt,
            "test.tet.d/CURRENT: corrupt current generation: generation 7, but the package has 1, 2",
        ),
        (
            current("latest\n"),
            None,
            ErrorKind::Corrupt,
            "test.tet.d/CURRENT: corrupt current generation: found \"latest\\n\", \
             expected a number or {\"generation\":N}",
        ),
        (current(""), None, ErrorKind::Corrupt, "found \"\", expected a number"),
        (
            current(&"1".repeat(70_000)),
            None,
            ErrorKind::Corrupt,
            "test.tet.d/CURRENT: corrupt package: 70000 bytes, expected a short text",
        ),
        (
            whole().without("generations/00000002/packed.tet"),
            None,
            ErrorKind::Corrupt,
            "test.tet.d: corrupt package: generation 2 has no packed.tet",
        ),
        (
            whole().with("generations/00000002/packed.tet", "TETR"),
            None,
            ErrorKind::Corrupt,
            "test.tet.d/generations/00000002/packed.tet: corrupt superblock",
        ),
        (
            whole().with("PROTOCOL", "{\"protocol_version\": 3}"),
            None,
            ErrorKind::Unsupported,
            "test.tet.d/PROTOCOL: package protocol version 3, this reader supports 2",
        ),
        (
            whole().with("PROTOCOL", "2"),
            None,
            ErrorKind::Corrupt,
            "test.tet.d/PROTOCOL: corrupt package protocol: not the JSON expected here",
        ),
    ] {
        let package = package.on_disk();
        let options = match generation {
            Some(generation) => ArrayOptions::default().with_option("generation", generation),
            None => ArrayOptions::default(),
        };
        let error =
            open_tet(package.location(), &options, &SessionContext::new()).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(expected), "{error}\nexpected {expected}");
    }
}

/// With option `generation`, the content of `CURRENT` does not matter.
#[tokio::test]
async fn a_named_generation_needs_no_current_one() {
    let pinned = ArrayOptions::default().with_option("generation", 1);
    for package in [Package::new().without("CURRENT"), Package::new().with("CURRENT", "?")] {
        let package = package.on_disk();
        let ctx = open(package.location(), pinned.clone()).await;
        assert_eq!(generation_of(&ctx, "t").await, 1);
    }
}

#[tokio::test]
async fn a_file_has_no_generations() {
    let file = TempTet::new(&packed(1, None, None));
    let ctx = reducing(1, 8192);
    let create = format!(
        "CREATE EXTERNAL TABLE x STORED AS TET LOCATION '{}' OPTIONS ('generation' '1')",
        file.location()
    );
    let error = query(&ctx, &create).await.unwrap_err().to_string();
    assert!(error.contains("test.tet: a file has no generations"), "{error}");
    ctx.register_array("t", file.location(), ArrayOptions::default()).await.unwrap();
    assert_eq!(cell(&ctx, "SELECT min(value) FROM t").await, "1000000");
}
