//! Every kind of byte source gives the same answers for the same file.

use std::sync::Arc;

use datafusion::prelude::SessionContext;
use gridfusion::array::ReadOptions;
use gridfusion::io::{ByteSource, FileSource, MemorySource, MmapSource, ObjectSource};
use gridfusion::{ArrayOptions, GridTable, GridfusionSessionContextExt, IoMode};
use gridfusion_tet::{TetReader, open_dataset};
use object_store::memory::InMemory;
use object_store::{ObjectStore, ObjectStoreExt};
use serde_json::json;

use crate::io::http::HttpServer;
use crate::support::{
    F32, Layout, TempTet, TestDataset, cell, reducing, rows_from, session, tet_bytes,
};

/// An array of 6 x 50 cells in chunks of 2 x 7, with zstd, labels and shuffled index rows.
fn file() -> Vec<u8> {
    use rand::SeedableRng;
    let data = (0..300).flat_map(|i| (i as f32 / 4.0).to_le_bytes()).collect();
    let labels: Vec<String> = (0..50).map(|i| format!("S{i:02}")).collect();
    let metadata =
        json!({"dim_names": ["day", "station"], "coords": {"station": {"labels": labels}}});
    let dataset = TestDataset::new("value", F32, &[6, 50], &[2, 7], data)
        .with_zstd(true)
        .with_metadata(metadata);
    let shuffle = Some(rand::rngs::StdRng::seed_from_u64(7));
    tet_bytes(&[dataset], &Layout { shuffle, history_version: Some(2), ..Layout::default() })
}

async fn check(ctx: &SessionContext, table: &str, how: &str) {
    let all =
        format!("SELECT count(*), count(value), sum(value), min(value), max(value) FROM {table}");
    assert_eq!(rows_from(ctx, &all).await, [["300", "300", "11212.5", "0.0", "74.75"]], "{how}");
    let some = format!(
        "SELECT day, value FROM {table} WHERE station IN ('S03', 'S48') AND day > 3 ORDER BY 1, 2"
    );
    let expected = [["4", "50.75"], ["4", "62.0"], ["5", "63.25"], ["5", "74.5"]];
    assert_eq!(rows_from(ctx, &some).await, expected, "{how}");
    let none = format!("SELECT count(value) FROM {table} WHERE station = 'none'");
    assert_eq!(cell(ctx, &none).await, "0", "{how}");
}

#[tokio::test]
async fn byte_sources_agree() {
    let bytes = file();
    let temp = TempTet::new(&bytes);
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let key = object_store::path::Path::from("dir/v.tet");
    store.put(&key, bytes.clone().into()).await.unwrap();
    let object = ObjectSource::open("memory:///dir/v.tet".into(), store, key).await.unwrap();
    let sources: [Arc<dyn ByteSource>; 4] = [
        Arc::new(MmapSource::open(&temp.path).unwrap()),
        Arc::new(FileSource::open(&temp.path).unwrap()),
        Arc::new(MemorySource::new("bytes", bytes)),
        Arc::new(object),
    ];
    for source in sources {
        let how = format!("{source:?}").split_whitespace().next().unwrap_or_default().to_owned();
        let opened = TetReader::open(source).await.unwrap();
        let array = open_dataset(&opened, "value", &ReadOptions::default()).await.unwrap();
        for (partitions, batch_size) in [(1, 8192), (3, 16)] {
            let ctx = session(partitions, batch_size);
            let table = open_dataset(&opened, "value", &ReadOptions::default()).await.unwrap();
            ctx.register_table("t", Arc::new(GridTable::new(Arc::new(table)))).unwrap();
            check(&ctx, "t", &how).await;
        }
        assert_eq!(array.name(), "value");
    }
}

#[tokio::test]
async fn locations_reach_every_store() {
    let bytes = file();
    let temp = TempTet::new(&bytes);
    let server = HttpServer::start(bytes.clone()).await;
    let http_url = url::Url::parse(&server.url).unwrap();
    let http = object_store::http::HttpBuilder::new()
        .with_url(server.url.clone())
        .with_client_options(object_store::ClientOptions::new().with_allow_http(true))
        .build()
        .unwrap();
    let memory = InMemory::new();
    memory.put(&"dir/v.tet".into(), bytes.into()).await.unwrap();

    let ctx = session(2, 8192);
    ctx.register_object_store(&http_url, Arc::new(http));
    ctx.register_object_store(&url::Url::parse("mem://bucket").unwrap(), Arc::new(memory));
    let file_url = url::Url::from_file_path(&temp.path).unwrap().to_string();
    let locations = [
        temp.location().to_owned(),
        file_url,
        format!("{}/some/v.tet", server.url),
        "mem://bucket/dir/v.tet".to_owned(),
    ];
    for location in &locations {
        for io in [IoMode::Mmap, IoMode::Pread] {
            ctx.deregister_table("t").unwrap();
            let options = ArrayOptions::default().with_io(io);
            ctx.register_array("t", location, options).await.unwrap();
            check(&ctx, "t", location).await;
        }
    }
    let error =
        ctx.register_array("u", "s3://nowhere/x.tet", ArrayOptions::default()).await.unwrap_err();
    assert!(
        error.to_string().contains("no object store is registered for 's3://nowhere"),
        "{error}"
    );
}

/// Opening takes two requests, `count(*)` none, and a cell one: the head of the file has the index.
#[tokio::test]
async fn few_requests_are_made() {
    let data = (0..160_000).flat_map(|i: i32| i.to_le_bytes()).collect();
    let dataset = TestDataset::new("value", crate::support::I32, &[400, 400], &[100, 100], data);
    let bytes = tet_bytes(&[dataset], &Layout { history_version: Some(2), ..Layout::default() });
    let server = HttpServer::start(bytes).await;
    let http = object_store::http::HttpBuilder::new()
        .with_url(server.url.clone())
        .with_client_options(object_store::ClientOptions::new().with_allow_http(true))
        .build()
        .unwrap();
    let ctx = session(1, 8192);
    ctx.register_object_store(&url::Url::parse(&server.url).unwrap(), Arc::new(http));
    ctx.register_array("t", format!("{}/v.tet", server.url), ArrayOptions::default())
        .await
        .unwrap();
    assert_eq!(server.gets(), 2, "the head and the tail");
    assert_eq!(cell(&ctx, "SELECT count(*) FROM t").await, "160000");
    assert_eq!(server.gets(), 2, "count(*) reads nothing");
    let one = "SELECT value FROM t WHERE dim_0 = 220 AND dim_1 = 107";
    assert_eq!(cell(&ctx, one).await, "88107");
    assert_eq!(server.gets(), 3, "one payload");
}

/// Whole raw chunks of a mapped file are not copied: the batches of two scans share their memory.
#[tokio::test]
async fn raw_chunks_are_not_copied() {
    let data = (0..4096_i32).flat_map(i32::to_le_bytes).collect();
    let dataset = TestDataset::new("value", crate::support::I32, &[64, 64], &[16, 64], data);
    let temp = TempTet::new(&tet_bytes(&[dataset], &Layout::default()));
    for (io, shared) in [(IoMode::Mmap, true), (IoMode::Pread, false)] {
        let ctx = session(1, 1024);
        ctx.register_array("t", temp.location(), ArrayOptions::default().with_io(io))
            .await
            .unwrap();
        let mut places = Vec::new();
        let mut held = Vec::new();
        for _ in 0..2 {
            let sql = "SELECT value FROM t WHERE dim_0 >= 16";
            let batches = crate::support::query(&ctx, sql).await.unwrap();
            places.push(
                batches
                    .iter()
                    .map(|b| b.column(0).to_data().buffers()[0].as_ptr())
                    .collect::<Vec<_>>(),
            );
            held.push(batches);
        }
        assert_eq!(places[0].len(), 3);
        assert_eq!(places[0] == places[1], shared, "{io}");
    }
}

/// Reading an object that was replaced after it was opened is an error, not a mixture of both.
#[tokio::test]
async fn a_replaced_object_is_an_error() {
    let memory = Arc::new(InMemory::new());
    memory.put(&"v.tet".into(), file().into()).await.unwrap();
    let ctx = reducing(1, 8192);
    let store: Arc<dyn ObjectStore> = Arc::<InMemory>::clone(&memory);
    ctx.register_object_store(&url::Url::parse("mem://bucket").unwrap(), store);
    ctx.register_array("t", "mem://bucket/v.tet", ArrayOptions::default()).await.unwrap();
    check(&ctx, "t", "before").await;
    ctx.sql("SET gridfusion.remote_check = 0").await.unwrap();
    memory.put(&"v.tet".into(), file().into()).await.unwrap();
    let error =
        crate::support::query(&ctx, "SELECT sum(value) FROM t").await.unwrap_err().to_string();
    assert!(error.contains("mem://bucket/v.tet: "), "{error}");
    assert!(error.contains("the object was replaced after it was opened"), "{error}");
}

/// Reading a file that was cut off after it was opened is an error, in both I/O modes.
#[tokio::test]
async fn a_file_that_shrinks_is_an_error() {
    for io in [IoMode::Mmap, IoMode::Pread] {
        let temp = TempTet::new(&file());
        let ctx = session(1, 8192);
        ctx.register_array("t", temp.location(), ArrayOptions::default().with_io(io))
            .await
            .unwrap();
        std::fs::OpenOptions::new().write(true).open(&temp.path).unwrap().set_len(400).unwrap();
        let error =
            crate::support::query(&ctx, "SELECT sum(value) FROM t").await.unwrap_err().to_string();
        assert!(error.contains("has shrunk") && error.contains("test.tet"), "{io}: {error}");
    }
}

/// Dropping a stream stops its fetches and releases its memory.
#[tokio::test]
async fn dropping_a_stream_stops_it() {
    use futures::StreamExt;
    let temp = TempTet::new(&file());
    let ctx = session(2, 8);
    ctx.register_array("t", temp.location(), ArrayOptions::default().with_io(IoMode::Pread))
        .await
        .unwrap();
    let mut stream = ctx.sql("SELECT * FROM t").await.unwrap().execute_stream().await.unwrap();
    assert!(stream.next().await.is_some_and(|batch| batch.is_ok()));
    assert!(ctx.runtime_env().memory_pool.reserved() > 0);
    drop(stream);
    crate::support::nothing_reserved(&ctx).await;
}
