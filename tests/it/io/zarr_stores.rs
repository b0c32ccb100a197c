//! Zarr stores that are half of one, that change while they are read, or whose metadata is too large.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use datafusion::error::Result;
use datafusion::prelude::SessionContext;
use futures::StreamExt;
use gridfusion::io::RemoteLimits;
use gridfusion::source::Detail;
use gridfusion::verify::Depth;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt, IoMode};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::remote::Link;
use crate::codec::sent::{bytes, plan, received};
use crate::support::object_server::{Fault, ObjectServer, On};
use crate::support::open::{open, verify};
use crate::support::waiting::within_hang;
use crate::support::{cell, query, reducing, rows_from, rows_of, session, shipped};

/// Objects by their paths in a store.
pub(super) type Store = BTreeMap<String, Vec<u8>>;

/// A store of version 3 with `v(t)`: 8 chunks of 2 cells, without chunk 5. A cell is `first` and its index.
fn store(first: u8, fill: u8) -> Store {
    let array = |shape: u64, chunk: u64, data_type: &str, dims: &[&str]| {
        json!({
            "zarr_format": 3, "node_type": "array", "shape": [shape], "data_type": data_type,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [chunk]}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": fill, "codecs": ["bytes"], "attributes": {}, "dimension_names": dims,
        })
    };
    let group = json!({"zarr_format": 3, "node_type": "group", "attributes": {}});
    let mut store = Store::from([
        ("zarr.json".to_owned(), group.to_string().into_bytes()),
        ("v/zarr.json".to_owned(), array(16, 2, "uint8", &["t"]).to_string().into_bytes()),
        ("t/zarr.json".to_owned(), array(16, 16, "uint8", &["t"]).to_string().into_bytes()),
        ("t/c/0".to_owned(), (first..first + 16).collect()),
    ]);
    for chunk in (0..8).filter(|chunk| *chunk != 5) {
        store.insert(format!("v/c/{chunk}"), vec![first + 2 * chunk, first + 2 * chunk + 1]);
    }
    store
}

/// Writes a store, long ago, so that each change gives an object another time.
pub(super) fn write(folder: &Path, store: &Store) {
    for (path, bytes) in store {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        set_time(&path);
    }
}

fn set_time(path: &Path) {
    let opened = fs::OpenOptions::new().write(true).open(path).unwrap();
    opened.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000)).unwrap();
}

/// A session that opens quoted paths.
fn quoting(partitions: usize) -> SessionContext {
    let ctx = reducing(partitions, 8192);
    ctx.enable_gridfusion_urls();
    ctx
}

/// A store in a folder of its own.
pub(super) struct Local {
    dir: TempDir,
}

impl Local {
    pub(super) fn new(store: &Store) -> Self {
        let this = Self { dir: tempfile::tempdir().unwrap() };
        write(&this.path("x.zarr"), store);
        this
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(super) fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }
}

/// A change of a store between two reads of a query.
type Change = (&'static str, fn(&Local));

/// Reads all rows. After the first batch, the store changes.
async fn rows(store: &Local, io: IoMode, change: fn(&Local)) -> Result<Vec<Vec<String>>> {
    let ctx = reducing(1, 2);
    let options = ArrayOptions::default().with_dataset("v").with_io(io);
    ctx.register_array("x", store.text("x.zarr").as_str(), options).await?;
    let mut stream = ctx.sql("SELECT t, value FROM x").await?.execute_stream().await?;
    let mut rows = rows_of(&[stream.next().await.unwrap()?]);
    change(store);
    while let Some(batch) = stream.next().await {
        rows.extend(rows_of(&[batch?]));
    }
    Ok(rows)
}

const CHANGES: [Change; 9] = [
    ("x.zarr: the folder has changed", |store| {
        write(&store.path("new"), &self::store(100, 0));
        fs::rename(store.path("x.zarr"), store.path("old")).unwrap();
        fs::rename(store.path("new"), store.path("x.zarr")).unwrap();
    }),
    ("x.zarr: the folder has changed", |store| {
        fs::remove_dir_all(store.path("x.zarr")).unwrap();
    }),
    ("x.zarr/", |store| {
        write(&store.path("x.zarr"), &self::store(100, 0));
    }),
    // The chunk that was read is written again, with the same length and time.
    ("v/c/0: the ", |store| {
        let path = store.path("x.zarr/v/c/0");
        fs::write(&path, [9, 9]).unwrap();
        set_time(&path);
    }),
    // Renaming leaves open files as they are.
    ("v/c/0: the ", |store| {
        let other = store.path("other");
        fs::write(&other, [9, 9]).unwrap();
        set_time(&other);
        fs::rename(other, store.path("x.zarr/v/c/0")).unwrap();
    }),
    ("v/c/0: the ", |store| {
        fs::remove_file(store.path("x.zarr/v/c/0")).unwrap();
    }),
    // The labels and the shape were read when the table was opened.
    ("t/c/0: the ", |store| {
        fs::write(store.path("x.zarr/t/c/0"), [7; 16]).unwrap();
    }),
    ("v/zarr.json: the ", |store| {
        let path = store.path("x.zarr/v/zarr.json");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace("16", "14")).unwrap();
    }),
    ("x.zarr", |store| {
        fs::rename(store.path("x.zarr/v"), store.path("x.zarr/w")).unwrap();
    }),
];

#[tokio::test]
async fn a_store_that_changes_during_a_query_is_an_error() {
    for io in [IoMode::Mmap, IoMode::Pread] {
        for (number, (expected, change)) in CHANGES.into_iter().enumerate() {
            let found = rows(&Local::new(&store(0, 0)), io, change).await;
            let error = found.expect_err(&format!("change {number}")).to_string();
            assert!(error.contains(expected), "change {number}: {error}");
        }
        let unchanged = rows(&Local::new(&store(0, 0)), io, |_| {}).await.unwrap();
        assert_eq!(unchanged.len(), 16);
    }
}

/// A chunk that is absent when it is needed, and written before the query ends.
#[tokio::test]
async fn a_chunk_that_appears_during_a_query_is_an_error() {
    let local = Local::new(&store(0, 0));
    let ctx = reducing(1, 2);
    let options = ArrayOptions::default().with_dataset("v");
    ctx.register_array("x", local.text("x.zarr").as_str(), options).await.unwrap();
    let mut stream =
        ctx.sql("SELECT t, value FROM x").await.unwrap().execute_stream().await.unwrap();
    // Six chunks, of which the last is absent.
    for _ in 0..6 {
        stream.next().await.unwrap().unwrap();
    }
    fs::write(local.path("x.zarr/v/c/5"), [1, 1]).unwrap();
    let mut failed = None;
    while let Some(batch) = stream.next().await {
        failed = failed.or(batch.err());
    }
    let error = failed.expect("the chunk was absent").to_string();
    assert!(error.contains("v/c/5: the object has changed: it was absent"), "{error}");
    // The table is another one now.
    let opened = session(2, 8192);
    let options = ArrayOptions::default().with_dataset("v");
    opened.register_array("x", local.text("x.zarr").as_str(), options).await.unwrap();
    assert_eq!(cell(&opened, "SELECT sum(value) FROM x WHERE t IN (10, 11)").await, "2");
}

/// Where no chunk is stored, the absence of their folder stands for that of all. It must not appear before a query ends.
#[tokio::test]
async fn a_folder_of_chunks_that_appears_during_a_query_is_an_error() {
    let mut none = store(0, 0);
    none.retain(|path, _| !path.starts_with("v/c/"));
    for io in [IoMode::Mmap, IoMode::Pread] {
        let local = Local::new(&none);
        let ctx = reducing(2, 2);
        let options = ArrayOptions::default().with_dataset("v").with_io(io);
        ctx.register_array("x", local.text("x.zarr").as_str(), options).await.unwrap();
        for _ in 0..2 {
            assert_eq!(cell(&ctx, "SELECT count(value) FROM x WHERE value = 0").await, "16");
            assert_eq!(rows_from(&ctx, "SELECT value FROM x").await, vec![["0"]; 16]);
        }
        let error = rows(&local, io, |local| {
            fs::create_dir(local.path("x.zarr/v/c")).unwrap();
            fs::write(local.path("x.zarr/v/c/7"), [1, 1]).unwrap();
        });
        let error = error.await.expect_err("the folder was absent").to_string();
        assert!(error.contains("v/c: the object has changed: it was absent"), "{error}");
        // The table that was opened before is another one now.
        let error = query(&ctx, "SELECT sum(value) FROM x").await.unwrap_err().to_string();
        assert!(error.contains("v/c: the object has changed: it was absent"), "{error}");
    }
}

/// A folder of chunks that is deleted during a query is an error, because some chunks were there.
#[tokio::test]
async fn a_folder_of_chunks_that_disappears_during_a_query_is_an_error() {
    let change: fn(&Local) = |local| fs::remove_dir_all(local.path("x.zarr/v/c")).unwrap();
    for io in [IoMode::Mmap, IoMode::Pread] {
        let error = rows(&Local::new(&store(0, 0)), io, change).await.unwrap_err().to_string();
        assert!(error.contains("x.zarr/v/c/"), "{error}");
    }
}

/// A folder of chunks that is deleted between two queries is an error, also if its files are no longer open.
#[tokio::test]
async fn a_folder_of_chunks_that_was_read_and_disappears_is_an_error() {
    let mut many = store(0, 0);
    many.retain(|path, _| !path.starts_with("v/c/") && !path.starts_with("t/"));
    let replace = |path: &str, from: &str, to: &str, many: &mut Store| {
        let text = String::from_utf8(many[path].clone()).unwrap();
        assert!(text.contains(from), "{text}");
        many.insert(path.to_owned(), text.replace(from, to).into_bytes());
    };
    replace("v/zarr.json", "[2]", "[1]", &mut many);
    replace("v/zarr.json", "[16]", "[600]", &mut many);
    many.extend((0..600).map(|chunk| (format!("v/c/{chunk}"), vec![1])));
    let local = Local::new(&many);
    let ctx = reducing(1, 8192);
    let options = ArrayOptions::default().with_dataset("v");
    ctx.register_array("x", local.text("x.zarr").as_str(), options).await.unwrap();
    assert_eq!(cell(&ctx, "SELECT sum(value) FROM x").await, "600");
    fs::remove_dir_all(local.path("x.zarr/v/c")).unwrap();
    let error = query(&ctx, "SELECT sum(value) FROM x").await.unwrap_err().to_string();
    assert!(error.contains("v/c/") && error.contains("deleted"), "{error}");
}

/// Aggregates of labels read no chunk, and notice that the labels were written again.
#[tokio::test]
async fn aggregates_of_labels_check_the_labels() {
    let local = Local::new(&store(0, 0));
    let ctx = reducing(2, 8192);
    let options = ArrayOptions::default().with_dataset("v");
    ctx.register_array("x", local.text("x.zarr").as_str(), options).await.unwrap();
    for sql in
        ["SELECT max(t), count(DISTINCT t) FROM x", "SELECT t % 3, sum(t) FROM x GROUP BY t % 3"]
    {
        query(&ctx, sql).await.unwrap();
    }
    fs::write(local.path("x.zarr/t/c/0"), [7; 16]).unwrap();
    for sql in
        ["SELECT max(t), count(DISTINCT t) FROM x", "SELECT t % 3, sum(t) FROM x GROUP BY t % 3"]
    {
        let error = query(&ctx, sql).await.expect_err(sql).to_string();
        assert!(error.contains("t/c/0: the "), "{error}");
    }
}

/// Reductions of several partitions, and queries that end at a limit, check what they read too.
#[tokio::test]
async fn a_table_is_one_version_of_its_store() {
    let local = Local::new(&store(0, 0));
    for sql in ["SELECT sum(value) FROM x", "SELECT * FROM x LIMIT 3", "SELECT * FROM x ORDER BY t"]
    {
        let ctx = session(4, 8192);
        let options = ArrayOptions::default().with_dataset("v");
        ctx.register_array("x", local.text("x.zarr").as_str(), options).await.unwrap();
        query(&ctx, sql).await.unwrap();
        fs::write(local.path("x.zarr/v/c/0"), [0, 1]).unwrap();
        let error = query(&ctx, sql).await.expect_err(sql).to_string();
        assert!(error.contains("v/c/0"), "{sql}: {error}");
    }
}

/// Another process with another chunk, although the metadata is the same.
#[tokio::test]
async fn a_worker_with_another_chunk_refuses_the_plan() {
    for many in [false, true] {
        let local = Local::new(&store(0, 0));
        write(&local.path("y.zarr"), &store(16, 0));
        let (ctx, worker) = (session(2, 8192), session(2, 8192));
        worker.enable_gridfusion();
        let location = if many { local.text("*.zarr") } else { local.text("x.zarr") };
        let options = ArrayOptions::default().with_dataset("v");
        ctx.register_array("x", location.as_str(), options).await.unwrap();
        let sent = plan(&ctx, "SELECT sum(value) FROM x").await.unwrap();
        let sent = bytes(&sent).unwrap();
        let run = async |sent: &[u8]| {
            let plan = received(sent, &worker)?;
            datafusion::physical_plan::collect(plan, worker.task_ctx()).await
        };
        run(&sent).await.unwrap();
        // The worker keeps the table open: the chunk that it has read changes.
        fs::write(local.path("x.zarr/v/c/3"), [70, 70]).unwrap();
        let error = run(&sent).await.expect_err("the chunk is another one").to_string();
        assert!(error.contains("x.zarr"), "{error}");
        // A worker that opens it now compares the chunks with those of the plan.
        let late = session(2, 8192);
        late.enable_gridfusion();
        let plan = received(&sent, &late).unwrap();
        let found = datafusion::physical_plan::collect(plan, late.task_ctx()).await;
        let error = found.expect_err("the plan was made for another chunk").to_string();
        assert!(error.contains("another version"), "{error}");
    }
}

/// A folder of references in Parquet, as kerchunk and VirtualiZarr write it.
fn parquet_references() -> Store {
    let array = json!({
        "zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "<f4", "fill_value": "NaN", "order": "C",
        "filters": null, "compressor": null,
    });
    let metadata = json!({
        "metadata": {
            ".zgroup": {"zarr_format": 2}, "g/.zgroup": {"zarr_format": 2},
            "a/.zarray": array, "a/.zattrs": {"_ARRAY_DIMENSIONS": ["x"]},
            "g/b/.zarray": array, "g/b/.zattrs": {"_ARRAY_DIMENSIONS": ["x"]},
        },
        "record_size": 10_000,
    });
    Store::from([
        (".zmetadata".to_owned(), metadata.to_string().into_bytes()),
        ("a/refs.0.parq".to_owned(), b"PAR1".to_vec()),
        ("g/b/refs.0.parq".to_owned(), b"PAR1".to_vec()),
    ])
}

#[tokio::test]
async fn damaged_references_in_parquet_and_parts_of_them_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    for name in ["refs.parq", "plain", "x.zarr"] {
        write(&dir.path().join(name), &parquet_references());
        let path = at(name);
        let ctx = quoting(1);
        for sql in [
            format!("SELECT * FROM '{path}'"),
            format!("SELECT * FROM '{path}#a'"),
            format!("SELECT * FROM '{path}#g/b'"),
            format!("SELECT * FROM '{path}/a'"),
            format!("SELECT * FROM '{path}/g/b'"),
            format!("SELECT * FROM read_zarr('{path}')"),
            format!("SELECT * FROM read_array('{path}', 'a')"),
            format!("SELECT * FROM read_zarr('{path}', group => 'g')"),
            format!("SELECT * FROM read_zarr('{path}/a')"),
        ] {
            let error = query(&ctx, &sql).await.expect_err(&sql).to_string();
            let is_named = error.contains("refs.0.parq") || error.contains("references in Parquet");
            assert!(is_named, "{sql}: {error}");
        }
    }
    // Without `record_size`, only the folders of the variables show what it is.
    let mut old = parquet_references();
    let text = String::from_utf8(old[".zmetadata"].clone()).unwrap();
    assert!(text.contains("\"record_size\""));
    old.insert(".zmetadata".to_owned(), text.replace("record_size", "record").into_bytes());
    write(&dir.path().join("old"), &old);
    let array = json!({
        "zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "<f4", "fill_value": "NaN", "order": "C",
        "filters": null, "compressor": null,
    });
    let one = Store::from([
        (".zarray".to_owned(), array.to_string().into_bytes()),
        ("refs.0.parq".to_owned(), b"PAR1".to_vec()),
    ]);
    write(&dir.path().join("one"), &one);
    for (name, words) in
        [("refs.parq", "refs.0.parq"), ("old", "in Parquet"), ("one", "in Parquet")]
    {
        let options = ArrayOptions::default();
        let report = verify(&at(name), &options, Depth::Structure, &quoting(1)).await;
        let text = format!("{report:?}");
        assert!(!report.is_ok() && text.contains(words), "{name}: {text}");
    }
    let objects = parquet_references();
    let objects =
        objects.iter().map(|(path, bytes)| (format!("bucket/refs.parq/{path}"), bytes.clone()));
    let link = Link::new(ObjectServer::start(objects));
    let ctx = link.session(RemoteLimits::default());
    for location in ["s3://bucket/refs.parq", "s3://bucket/refs.parq/a"] {
        let sql = format!("SELECT * FROM read_zarr('{location}')");
        let error = query(&ctx, &sql).await.expect_err(&sql).to_string();
        let is_named = error.contains("refs.0.parq") || error.contains("references in Parquet");
        assert!(is_named, "{sql}: {error}");
    }
}

/// A store in which all chunks are absent is correct. The session warns, and so do `info` and `verify`.
#[tokio::test]
async fn a_store_without_chunks_is_told() {
    let mut objects = store(0, 7);
    objects.retain(|path, _| !path.starts_with("v/c/"));
    let local = Local::new(&objects);
    let ctx = quoting(2);
    let sql = format!("SELECT sum(value) FROM '{}#v'", local.text("x.zarr"));
    assert_eq!(cell(&ctx, &sql).await, (16 * 7).to_string());
    let options = ArrayOptions::default();
    let report = verify(&local.text("x.zarr"), &options, Depth::Cells, &ctx).await;
    let report = format!("{report:?}");
    assert!(report.contains("is stored, so all of its cells"), "{report}");
    let group = open(&local.text("x.zarr"), &options, &ctx).await.unwrap();
    let described = format!("{:?}", group.describe(&Detail::default()).await.unwrap());
    assert!(described.contains("is stored, so all of its cells"), "{described}");
}

/// Consolidated metadata that was not written again after an array grew hides the new cells.
#[tokio::test]
async fn stale_consolidated_metadata_is_told() {
    let mut objects = store(0, 0);
    let own: Value = serde_json::from_slice(&objects["v/zarr.json"]).unwrap();
    let text = String::from_utf8(objects["v/zarr.json"].clone()).unwrap();
    let labels: Value = serde_json::from_slice(&objects["t/zarr.json"]).unwrap();
    let root = json!({
        "zarr_format": 3, "node_type": "group", "attributes": {},
        "consolidated_metadata": {"kind": "inline", "metadata": {"v": own, "t": labels}},
    });
    objects.insert("zarr.json".into(), root.to_string().into_bytes());
    for is_stale in [false, true] {
        if is_stale {
            let grown = text.replace("\"shape\":[16]", "\"shape\":[18]");
            assert_ne!(grown, text);
            objects.insert("v/zarr.json".into(), grown.into_bytes());
        }
        let local = Local::new(&objects);
        let (ctx, options) = (session(1, 8192), ArrayOptions::default());
        let group = open(&local.text("x.zarr"), &options, &ctx).await.unwrap();
        let described = format!("{:?}", group.describe(&Detail::default()).await.unwrap());
        assert_eq!(
            described.contains("has the shape [16], and its own [18]"),
            is_stale,
            "{described}"
        );
        let report = verify(&local.text("x.zarr"), &options, Depth::Structure, &ctx).await;
        let report = format!("{report:?}");
        assert_eq!(report.contains("has the shape [16], and its own [18]"), is_stale, "{report}");
    }
}

/// By the metadata, a chunk is called `c/0`. It is called `0`.
#[tokio::test]
async fn chunks_of_other_names_are_an_error() {
    type Rename = fn(&str) -> String;
    let renames: [Rename; 2] =
        [|name| name.replace("v/c/", "v/"), |name| name.replace("v/c/", "v/c.")];
    for rename in renames {
        let objects = store(0, 7).into_iter();
        let objects: Store = objects.map(|(path, bytes)| (rename(&path), bytes)).collect();
        let local = Local::new(&objects);
        let ctx = quoting(2);
        for sql in ["SELECT sum(value) FROM 'PATH#v'", "SELECT * FROM 'PATH#v' LIMIT 1"] {
            let sql = sql.replace("PATH", &local.text("x.zarr"));
            let error = query(&ctx, &sql).await.expect_err(&sql).to_string();
            assert!(error.contains("none has; there is"), "{error}");
        }
    }
}

/// Two files with other fill values: a chunk that was never written has that of its own file.
#[tokio::test]
async fn files_keep_their_own_fill_values() {
    let local = Local::new(&store(0, 7));
    write(&local.path("y.zarr"), &store(16, 9));
    let (ctx, worker) = (session(2, 8192), session(2, 8192));
    worker.enable_gridfusion();
    let options = ArrayOptions::default().with_dataset("v");
    ctx.register_array("x", local.text("*.zarr").as_str(), options).await.unwrap();
    let sql = "SELECT t, value FROM x WHERE t IN (9, 10, 11, 25, 26, 27) ORDER BY t";
    let expected = [["9", "9"], ["10", "7"], ["11", "7"], ["25", "25"], ["26", "9"], ["27", "9"]];
    assert_eq!(rows_from(&ctx, sql).await, expected);
    let sum: u32 = (0..32)
        .map(|t| match t {
            10 | 11 => 7,
            26 | 27 => 9,
            other => other,
        })
        .sum();
    assert_eq!(cell(&ctx, "SELECT sum(value) FROM x").await, sum.to_string());
    let sent = crate::codec::sent::query_sent(&ctx, &worker, sql).await.unwrap();
    assert_eq!(rows_of(&sent), expected);
}

/// A document that is too large is refused before it is read: the server only sends its beginning.
#[tokio::test]
async fn large_metadata_is_not_fetched() {
    const LEN: usize = 8 << 20;
    let documents = ["a.zarr/zarr.json", "b.zarr/.zmetadata", "c.zarr/.zarray", "k.json"];
    let object = |document: &str| {
        let mut bytes = b"{\"version\":1,\"refs\":{".to_vec();
        bytes.resize(LEN, b' ');
        (format!("bucket/{document}"), bytes)
    };
    let objects = documents.map(object);
    let link = Link::without_reuse(ObjectServer::start(objects));
    link.server.fault(On::all(), Fault::Stall(LEN / 100));
    let ctx = link.session(RemoteLimits::default());
    for document in documents {
        let store = document.split('/').next().unwrap();
        let sql = format!("SELECT * FROM read_zarr('s3://bucket/{store}', metadata_limit => 1000)");
        let error = query(&ctx, &sql).await.expect_err(document).to_string();
        assert!(error.contains(&LEN.to_string()) && error.contains("allows 1000"), "{error}");
    }
}

/// A document that is too large is refused, and a large one counts to the memory pool.
#[tokio::test]
async fn metadata_has_a_limit() {
    let local = Local::new(&Store::new());
    for (folder, document) in
        [("a.zarr", "zarr.json"), ("b.zarr", ".zmetadata"), ("c.zarr", ".zarray")]
    {
        fs::create_dir_all(local.path(folder)).unwrap();
        let file = fs::File::create(local.path(folder).join(document)).unwrap();
        file.set_len(1 << 30).unwrap();
        let ctx = quoting(1);
        let sql = format!("SELECT * FROM '{}'", local.text(folder));
        let error = query(&ctx, &sql).await.expect_err(document).to_string();
        assert!(error.contains("1073741824 bytes") && error.contains("metadata_limit"), "{error}");
        assert!(error.contains(document), "{error}");
    }
    // A reference file that is opened by its name has no metadata in its first bytes, and files of rows have no limit.
    let mut file = fs::File::create(local.path("k.json")).unwrap();
    file.write_all(b"{\"version\":1,\"refs\":{").unwrap();
    file.set_len(1 << 30).unwrap();
    let ctx = quoting(1);
    let count = |name: &str| format!("SELECT count(*) FROM '{}'", local.text(name));
    let error = query(&ctx, &count("k.json")).await.unwrap_err().to_string();
    assert!(error.contains("1073741824 bytes") && error.contains("metadata_limit"), "{error}");
    let row = "{\"version\": 1, \"refs\": {\"a\": 7}}\n";
    fs::write(local.path("rows.json"), row.repeat(10_000)).unwrap();
    assert_eq!(cell(&ctx, &count("rows.json")).await, "10000");

    let text = json!({"version": 1, "refs": {".zgroup": {"zarr_format": 2}}}).to_string();
    fs::write(local.path("refs.json"), text + &" ".repeat(2000)).unwrap();
    let ctx = quoting(1);
    let sql =
        format!("SELECT * FROM read_zarr('{}', metadata_limit => 1000)", local.text("refs.json"));
    let error = query(&ctx, &sql).await.unwrap_err().to_string();
    assert!(error.contains("allows 1000"), "{error}");

    let long = store(0, 0).into_iter().map(|(path, mut bytes)| {
        if path == "zarr.json" {
            bytes.extend(vec![b' '; 5000]);
        }
        (format!("bucket/x.zarr/{path}"), bytes)
    });
    let link = Link::new(ObjectServer::start(long));
    let ctx = link.session(RemoteLimits::default());
    let sql = "SELECT * FROM read_zarr('s3://bucket/x.zarr', 'v', metadata_limit => 1000)";
    let error = query(&ctx, sql).await.unwrap_err().to_string();
    assert!(error.contains("allows 1000"), "{error}");
    let sql = "SELECT count(*) FROM read_zarr('s3://bucket/x.zarr', 'v')";
    assert_eq!(cell(&ctx, sql).await, "16");
}

/// Documents of version 2 are asked for only if there is none of version 3, and absent ones once per session.
#[tokio::test]
async fn absent_documents_are_asked_for_once() {
    for (name, absent) in
        [("climate_v3.zarr", &[][..]), ("climate_v2.zarr", &["zarr.json", ".zarray"])]
    {
        let store = shipped(&format!("tests/data/foreign/{name}"));
        let objects = super::remote::files(Path::new(&store), "bucket/x.zarr");
        let link = Link::new(ObjectServer::start(objects));
        // Without listings, nothing else tells that a document is absent.
        let ctx = link.session(RemoteLimits::default());
        let url = format!("{}/bucket/x.zarr", link.server.url());
        for round in 0..3 {
            let sql = format!("SELECT count(*) FROM read_zarr('{url}', 't2m')");
            query(&ctx, &sql).await.unwrap();
            let requests = link.server.take_requests();
            let missing = requests.iter().filter(|it| it.status == 404);
            let mut missing: Vec<&str> =
                missing.map(|it| it.path.rsplit_once("x.zarr/").unwrap().1).collect();
            missing.sort_unstable();
            let mut expected = if round == 0 { absent.to_vec() } else { vec![] };
            expected.sort_unstable();
            assert_eq!(missing, expected, "{name}, round {round}");
        }
    }
}

#[cfg(unix)]
#[tokio::test]
async fn links_that_lead_up_are_not_followed() {
    let local = Local::new(&store(0, 0));
    let group: Value = json!({"zarr_format": 3, "node_type": "group", "attributes": {}});
    write(
        &local.path("x.zarr/g"),
        &Store::from([("zarr.json".into(), group.to_string().into_bytes())]),
    );
    std::os::unix::fs::symlink("..", local.path("x.zarr/g/up")).unwrap();
    std::os::unix::fs::symlink(local.dir.path(), local.path("x.zarr/g/above")).unwrap();
    let ctx = quoting(1);
    let sql = format!("SELECT count(*) FROM '{}#v'", local.text("x.zarr"));
    assert_eq!(cell(&ctx, &sql).await, "16");
}

#[cfg(unix)]
#[tokio::test]
async fn pipes_are_refused() {
    let local = Local::new(&store(0, 0));
    let ctx = quoting(1);
    for name in ["pipe.csv", "pipe.nc", "pipe"] {
        let made = std::process::Command::new("mkfifo").arg(local.path(name)).status().unwrap();
        assert!(made.success());
        let sql = format!("SELECT * FROM '{}'", local.text(name));
        let error = within_hang(name, query(&ctx, &sql)).await.expect_err(name).to_string();
        assert!(error.contains("pipe or a device"), "{name}: {error}");
    }
}
