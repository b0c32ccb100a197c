//! Tables of a server that speaks S3 and that other people wrote, with signed requests and uploads.
//!
//! `GRIDFUSION_S3_ENDPOINT` names the server, such as `http://127.0.0.1:5000`. It must accept any keys. `.ci/run`
//! starts a server for these tests.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use datafusion::prelude::SessionContext;
use futures::{StreamExt, TryStreamExt};
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use object_store::aws::AmazonS3Builder;
use object_store::{ObjectStore, ObjectStoreExt};
use url::Url;

use super::remote::{files, large};
use crate::support::{cell, query, reducing, rows_from, shipped, variable};

/// A new bucket of the server.
struct Bucket {
    name: String,
    store: Arc<dyn ObjectStore>,
}

/// Returns the address of the server.
fn endpoint() -> String {
    variable("GRIDFUSION_S3_ENDPOINT").into_string().unwrap()
}

fn store(endpoint: &str, bucket: &str) -> Arc<dyn ObjectStore> {
    let store = AmazonS3Builder::new()
        .with_endpoint(endpoint)
        .with_bucket_name(bucket)
        .with_region("us-east-1")
        .with_access_key_id("test")
        .with_secret_access_key("test")
        .with_allow_http(true)
        .with_virtual_hosted_style_request(false)
        .build();
    Arc::new(store.unwrap())
}

impl Bucket {
    /// Asserts that no writer has left an object of its own.
    async fn assert_nothing_left(&self) {
        let left = self.store.list(None).map_ok(|it| it.location.to_string());
        let left: Vec<String> = left.try_collect().await.unwrap();
        assert!(!left.iter().any(|it| it.contains(".gridfusion")), "{left:?}");
    }

    fn new(what: &str) -> Self {
        let endpoint = endpoint();
        // A server keeps the buckets of earlier runs.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
        let name = format!("{what}-{now}");
        create(&endpoint, &name);
        Self { store: store(&endpoint, &name), name }
    }

    async fn put(&self, path: &str, bytes: Vec<u8>) {
        self.store.put(&path.into(), bytes.into()).await.unwrap();
    }

    async fn put_owned(&self, path: String, bytes: Vec<u8>) {
        self.put(&path, bytes).await;
    }

    fn location(&self, path: &str) -> String {
        format!("s3://{}/{path}", self.name)
    }

    fn session(&self) -> SessionContext {
        let ctx = reducing(2, 8192);
        let url = Url::parse(&format!("s3://{}", self.name)).unwrap();
        ctx.register_object_store(&url, Arc::clone(&self.store));
        ctx
    }
}

/// Creates a bucket. `object_store` has no request for that.
fn create(endpoint: &str, bucket: &str) {
    let host = endpoint.trim_start_matches("http://").trim_end_matches('/');
    let mut stream = TcpStream::connect(host).unwrap();
    let request = format!(
        "PUT /{bucket} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut reply = vec![];
    stream.read_to_end(&mut reply).unwrap();
    assert_eq!(String::from_utf8_lossy(&reply).get(9..12), Some("200"), "{bucket}");
}

async fn table(ctx: &SessionContext, name: &str, location: &str) {
    ctx.register_array(name, location, ArrayOptions::default()).await.unwrap();
}

/// Each table has the rows that it has from a local disk.
#[tokio::test]
#[ignore = "needs GRIDFUSION_S3_ENDPOINT: a server that speaks S3"]
async fn uploaded_arrays_have_the_same_rows() {
    let bucket = Bucket::new("rows");
    let ctx = bucket.session();
    for (name, from) in [
        ("years.tet", "examples/data/years/2023.tet"),
        ("overlap", "tests/data/tiledb/overlap"),
        ("ships", "examples/data/ships"),
    ] {
        let local = shipped(from);
        match Path::new(&local).is_dir() {
            false => bucket.put(name, std::fs::read(&local).unwrap()).await,
            true => {
                for (path, bytes) in files(Path::new(&local), name) {
                    bucket.put(&path, bytes).await;
                }
            }
        }
        let as_table = name.trim_end_matches(".tet");
        table(&ctx, as_table, &bucket.location(name)).await;
        table(&ctx, &format!("local_{as_table}"), &local).await;
        let rows =
            async |table| rows_from(&ctx, &format!("SELECT * FROM {table} ORDER BY 1, 2")).await;
        let found = rows(as_table.to_owned()).await;
        assert_eq!(found, rows(format!("local_{as_table}")).await, "{name}");
        assert!(found.len() > 3, "{name}");
    }
}

/// A folder of more objects than S3 lists at once has all its files in the table.
#[tokio::test]
#[ignore = "needs GRIDFUSION_S3_ENDPOINT: a server that speaks S3"]
async fn listings_of_several_pages_are_complete() {
    let bucket = Bucket::new("pages");
    let paths = (0..1010).map(|number| format!("many/{number:04}.txt"));
    let puts = futures::stream::iter(paths).map(|path| bucket.put_owned(path, vec![7]));
    puts.buffer_unordered(16).collect::<()>().await;
    // One is on the first page, and one on the last.
    let years = [("many/0.tet", "2022"), ("many/z.tet", "2024")];
    let years =
        years.map(|(path, year)| (path, shipped(&format!("examples/data/years/{year}.tet"))));
    for (path, local) in &years {
        bucket.put(path, std::fs::read(local).unwrap()).await;
    }
    let listed: Vec<_> = bucket.store.list(None).try_collect().await.unwrap();
    assert_eq!(listed.len(), 1012);
    let ctx = bucket.session();
    let rows = async |location: String| {
        let sql = format!("SELECT count(*), sum(t2m), min(time) FROM read_tet({location})");
        rows_from(&ctx, &sql).await
    };
    let found = rows(format!("'{}'", bucket.location("many/*.tet"))).await;
    assert_eq!(found, rows(format!("['{}', '{}']", years[0].1, years[1].1)).await);
}

/// The server gives a replaced object another tag, also if its bytes are as many as before.
#[tokio::test]
#[ignore = "needs GRIDFUSION_S3_ENDPOINT: a server that speaks S3"]
async fn a_replaced_object_is_noticed() {
    let bucket = Bucket::new("replaced");
    let ctx = bucket.session();
    ctx.sql("SET gridfusion.remote_check = 0").await.unwrap();
    bucket.put("large.tet", large()).await;
    table(&ctx, "t", &bucket.location("large.tet")).await;
    let sum = "SELECT sum(value) FROM t";
    assert_eq!(cell(&ctx, sum).await, (0..160_000_i64).sum::<i64>().to_string());
    let mut other = large();
    let last = other.len() - 300_000;
    other[last] ^= 1;
    bucket.put("large.tet", other).await;
    let error = query(&ctx, sum).await.unwrap_err().to_string();
    assert!(error.contains("the object was replaced after it was opened"), "{error}");
    assert!(error.contains(&bucket.location("large.tet")), "{error}");
    // A table that is made anew has the new object.
    table(&ctx, "again", &bucket.location("large.tet")).await;
    query(&ctx, "SELECT sum(value) FROM again").await.unwrap();
}

#[tokio::test]
#[ignore = "needs GRIDFUSION_S3_ENDPOINT: a server that speaks S3"]
async fn missing_objects_and_buckets_are_named() {
    let bucket = Bucket::new("missing");
    let ctx = bucket.session();
    let missing = bucket.location("none.tet");
    let nowhere = "s3://no-such-bucket/none.tet".to_owned();
    let url = Url::parse("s3://no-such-bucket").unwrap();
    ctx.register_object_store(&url, store(&endpoint(), "no-such-bucket"));
    for location in [missing, bucket.location("no/folder"), nowhere] {
        let opened = ctx.register_array("t", &location, ArrayOptions::default()).await;
        let error = opened.unwrap_err().to_string();
        assert!(error.contains(&location), "{location}: {error}");
    }
}

/// Appends publish by a conditional put, and lock by one that creates.
#[tokio::test]
#[ignore = "needs GRIDFUSION_S3_ENDPOINT: a server that speaks S3"]
async fn stores_become_longer() {
    let bucket = Bucket::new("append");
    let place = bucket.location("a/x.zarr");
    let copy = |from: i64, to: i64, options: &str| {
        format!(
            "COPY (SELECT value AS x, CAST(value AS DOUBLE) AS v FROM range({from}, {to})) TO '{place}' STORED AS ZARR OPTIONS ({options})"
        )
    };
    query(&bucket.session(), &copy(0, 5, "'dimensions' 'x', 'chunks' 'x=3'")).await.unwrap();
    for (session, end) in [(bucket.session(), 9), (bucket.session(), 10)] {
        let from = if end == 9 { 5 } else { 9 };
        query(&session, &copy(from, end, "'mode' 'append'")).await.unwrap();
        let error = query(&session, &copy(from, end, "'mode' 'append'")).await.unwrap_err();
        assert!(error.to_string().contains("nothing is appended"), "{error}");
        let sum = format!("SELECT sum(v) FROM read_array('{place}')");
        assert_eq!(cell(&session, &sum).await, format!("{:?}", (0..end).sum::<i64>() as f64));
    }
    bucket.put("a/x.zarr/.gridfusion-lock", b"process 7 appends".to_vec()).await;
    let append = copy(10, 12, "'mode' 'append'");
    let error = query(&bucket.session(), &append).await.unwrap_err().to_string();
    assert!(error.contains("process 7 appends"), "{error}");
    let unlocked = append.replace("'append')", "'append', 'unlock' 'true')");
    query(&bucket.session(), &unlocked).await.unwrap();
    bucket.assert_nothing_left().await;
}

/// Cells change, and other arrays take the place of a store, in S3 as on a disk.
#[tokio::test]
#[ignore = "needs GRIDFUSION_S3_ENDPOINT: a server that speaks S3"]
async fn stores_change() {
    let bucket = Bucket::new("change");
    for (place, format) in [("a/x.zarr", "ZARR"), ("a/x.tdb", "TILEDB")] {
        let place = bucket.location(place);
        let copy = |rows: &str, options: &str| {
            format!("COPY ({rows}) TO '{place}' STORED AS {format} OPTIONS ({options})")
        };
        let rows = |until: i64| {
            format!("SELECT value AS x, CAST(value AS DOUBLE) AS v FROM range({until})")
        };
        let sum = format!("SELECT sum(v) FROM read_array('{place}')");
        query(&bucket.session(), &copy(&rows(9), "'dimensions' 'x', 'chunks' 'x=2'"))
            .await
            .unwrap();
        let session = bucket.session();
        assert_eq!(cell(&session, &sum).await, "36.0");
        if format == "ZARR" {
            let more =
                "SELECT value AS x, CAST(1000 * (value % 2) AS DOUBLE) AS v FROM range(4, 11)";
            let merge = copy(more, "'mode' 'append', 'existing' 'overwrite'");
            query(&session, &merge).await.unwrap();
            assert_eq!(cell(&session, &sum).await, "3006.0");
            bucket.assert_nothing_left().await;
        }
        let overwrite = "'mode' 'overwrite', 'dimensions' 'x', 'chunks' 'x=3'";
        query(&session, &copy(&rows(5), overwrite)).await.unwrap();
        assert_eq!(cell(&session, &sum).await, "10.0");
        assert_eq!(cell(&bucket.session(), &sum).await, "10.0");
        bucket.assert_nothing_left().await;
    }
}
