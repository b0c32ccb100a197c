//! Object stores through HTTP and S3: numbers of requests, servers of several kinds, and limits.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::prelude::{SessionConfig, SessionContext};
use gridfusion::io::RemoteLimits;
use gridfusion::{ArrayOptions, GridfusionConfig, GridfusionSessionContextExt};
use object_store::aws::AmazonS3Builder;
use object_store::http::HttpBuilder;
use object_store::{ClientOptions, ObjectStore, RetryConfig};
use serde_json::json;
use url::Url;

use crate::support::object_server::{Behaviour, ObjectServer, Request, Span};
use crate::support::{I32, Layout, TestDataset, cell, query, rows_from, shipped, tet_bytes};

/// Stores of tests do not try again on their own, as those of the program.
fn once() -> RetryConfig {
    RetryConfig { max_retries: 0, ..RetryConfig::default() }
}

/// A server, as a web server and as the S3 bucket `bucket`. Making a store reads all certificates of the system.
pub(crate) struct Link {
    pub(crate) server: ObjectServer,
    http: Arc<dyn ObjectStore>,
    pub(super) s3: Arc<dyn ObjectStore>,
}

impl Link {
    pub(crate) fn new(server: ObjectServer) -> Self {
        Self::with(server, &ClientOptions::new().with_allow_http(true))
    }

    /// Opens a connection for each request.
    pub(super) fn without_reuse(server: ObjectServer) -> Self {
        let options = ClientOptions::new().with_allow_http(true);
        Self::with(server, &options.with_pool_max_idle_per_host(0))
    }

    /// Waits for replies without end.
    pub(super) fn without_timeout(server: ObjectServer) -> Self {
        Self::with(server, &ClientOptions::new().with_allow_http(true).with_timeout_disabled())
    }

    fn with(server: ObjectServer, options: &ClientOptions) -> Self {
        let http = HttpBuilder::new()
            .with_url(server.url())
            .with_client_options(options.clone())
            .with_retry(once())
            .build();
        let s3 = AmazonS3Builder::new()
            .with_client_options(options.clone())
            .with_endpoint(server.url())
            .with_bucket_name("bucket")
            .with_region("us-east-1")
            .with_allow_http(true)
            .with_skip_signature(true)
            .with_retry(once())
            .build();
        Self { http: Arc::new(http.unwrap()), s3: Arc::new(s3.unwrap()), server }
    }

    /// Returns a session of its own.
    pub(crate) fn session(&self, limits: RemoteLimits) -> SessionContext {
        self.session_in(limits, Arc::new(RuntimeEnv::default()))
    }

    /// Returns a session of its own with this memory and these disks.
    pub(super) fn session_in(
        &self,
        limits: RemoteLimits,
        runtime: Arc<RuntimeEnv>,
    ) -> SessionContext {
        let config = GridfusionConfig::default();
        config.remote.set_limits(limits);
        let session = SessionConfig::new()
            .with_target_partitions(2)
            .with_information_schema(true)
            .with_option_extension(config);
        let ctx = SessionContext::new_with_config_rt(session, runtime);
        ctx.enable_gridfusion();
        let url = |text: &str| Url::parse(text).unwrap();
        ctx.register_object_store(&url(&self.server.url()), Arc::clone(&self.http));
        ctx.register_object_store(&url("s3://bucket"), Arc::clone(&self.s3));
        ctx
    }
}

/// Returns the files of a folder, with their paths below `prefix`.
pub(crate) fn files(folder: &Path, prefix: &str) -> Vec<(String, Vec<u8>)> {
    let mut found = vec![];
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("{prefix}/{}", path.file_name().unwrap().to_str().unwrap());
        match path.is_dir() {
            true => found.extend(files(&path, &name)),
            false => found.push((name, std::fs::read(&path).unwrap())),
        }
    }
    found
}

/// Returns a file of 640 kB in 16 raw chunks. The head of the file has the index.
pub(crate) fn large() -> Vec<u8> {
    let data = (0..160_000).flat_map(|i: i32| i.to_le_bytes()).collect();
    let dataset = TestDataset::new("value", I32, &[400, 400], &[100, 100], data);
    tet_bytes(&[dataset], &Layout { history_version: Some(2), ..Layout::default() })
}

/// Returns a file that is smaller than 128 KiB.
pub(super) fn small() -> Vec<u8> {
    std::fs::read(shipped("examples/data/climate.tet")).unwrap()
}

fn link() -> Link {
    let mut objects = files(Path::new(&shipped("examples/data/ships")), "bucket/ships");
    objects.push(("bucket/large.tet".into(), large()));
    objects.push(("bucket/small.tet".into(), small()));
    Link::new(ObjectServer::start(objects))
}

/// Returns what the server was asked since the last call: `GET` for objects, `LIST` for folders.
fn asked(server: &ObjectServer) -> Vec<String> {
    let requests = server.take_requests();
    let text = |request: &crate::support::object_server::Request| match &request.listing {
        Some(_) => "LIST".to_owned(),
        None => request.method.clone(),
    };
    requests.iter().map(text).collect()
}

#[tokio::test]
async fn a_cell_takes_three_requests_and_then_one() {
    let link = link();
    let server = &link.server;
    for base in [server.url() + "/bucket", "s3://bucket".to_owned()] {
        let ctx = link.session(RemoteLimits::default());
        let one = |row| {
            format!(
                "SELECT value FROM read_tet('{base}/large.tet') WHERE dim_0 = {row} AND dim_1 = 7"
            )
        };
        assert_eq!(cell(&ctx, &one(220)).await, "88007");
        assert_eq!(asked(server), ["GET"; 3], "the head, the tail, the payload of {base}");
        assert_eq!(cell(&ctx, &one(120)).await, "48007");
        assert_eq!(asked(server), ["GET"], "the payload of {base}");
    }
}

/// The labels of `time` lie in the middle of the file, and come together with its tail.
#[tokio::test]
async fn labels_need_no_round_trip_of_their_own() {
    let cells = || (0..160_000).flat_map(|i: i32| i.to_le_bytes()).collect();
    let names = json!({"dim_names": ["time", "station"]});
    let values = ["a", "z"].map(|name| {
        TestDataset::new(name, I32, &[400, 400], &[100, 100], cells()).with_metadata(names.clone())
    });
    let hours = (0..400).flat_map(|hour: i32| hour.to_le_bytes()).collect();
    let attributes = json!({"units": "hours since 2020-01-01"});
    let time = TestDataset::new("time", I32, &[400], &[150], hours)
        .with_metadata(json!({"dim_names": ["time"], "attrs": attributes}));
    let [first, last] = values;
    let layout = Layout { history_version: Some(2), ..Layout::default() };
    let bytes = tet_bytes(&[first, time, last], &layout);
    let link = Link::new(ObjectServer::start(vec![("bucket/t.tet".to_owned(), bytes)]));
    link.server.set_latency(Duration::from_millis(50));
    // Ranges with anything between them are requests of their own.
    let ctx = link.session(RemoteLimits::default().with_gap(0));
    let options = ArrayOptions::default().with_dataset("a");
    ctx.register_array("t", "s3://bucket/t.tet", options).await.unwrap();
    assert_eq!(asked(&link.server), ["GET"; 3], "the head, the labels, the tail");
    assert_eq!(link.server.most_in_flight(), 2, "the labels and the tail");
    let sql = "SELECT value FROM t WHERE time = '2020-01-10' AND station = 7";
    assert_eq!(cell(&ctx, sql).await, "86407");
    assert_eq!(asked(&link.server), ["GET"], "the payload");
}

#[tokio::test]
async fn a_small_file_is_one_request() {
    let link = link();
    let server = &link.server;
    for base in [server.url() + "/bucket", "s3://bucket".to_owned()] {
        let ctx = link.session(RemoteLimits::default());
        ctx.register_array(
            "t",
            format!("{base}/small.tet"),
            ArrayOptions::default().with_dataset("t2m"),
        )
        .await
        .unwrap();
        rows_from(&ctx, "SELECT count(*), avg(value) FROM t").await;
        assert_eq!(asked(server), ["GET"], "{base}");
    }
}

#[tokio::test]
async fn an_array_is_listed_twice_and_then_known() {
    let link = link();
    let server = &link.server;
    let ctx = link.session(RemoteLimits::default().with_check(Duration::from_secs(60)));
    ctx.register_array("ships", "s3://bucket/ships", ArrayOptions::default()).await.unwrap();
    let opening = asked(server);
    assert_eq!(opening.iter().filter(|it| *it == "LIST").count(), 2, "{opening:?}");
    rows_from(&ctx, "SELECT * FROM ships").await;
    asked(server);
    ctx.register_array("again", "s3://bucket/ships", ArrayOptions::default()).await.unwrap();
    assert_eq!(asked(server), Vec::<String>::new());
}

/// Metadata and labels of Zarr stores are kept, and the payloads of chunks are not.
#[tokio::test]
async fn a_zarr_store_is_known_after_it_was_opened() {
    let store = shipped("tests/data/foreign/climate_v3.zarr");
    let link = Link::new(ObjectServer::start(files(Path::new(&store), "bucket/climate.zarr")));
    let server = &link.server;
    let patient = link.session(RemoteLimits::default().with_check(Duration::from_secs(60)));
    let open = async |ctx: &SessionContext, name: &str| {
        let options = ArrayOptions::default().with_dataset("t2m");
        ctx.register_array(name, "s3://bucket/climate.zarr", options).await.unwrap();
    };
    open(&patient, "t").await;
    assert!(!asked(server).is_empty());
    open(&patient, "again").await;
    let again = server.take_requests();
    assert!(again.is_empty(), "{again:#?}");
    for _ in 0..2 {
        rows_from(&patient, "SELECT avg(value) FROM t").await;
        assert!(!asked(server).is_empty(), "payloads are read again");
    }

    let careful = link.session(RemoteLimits::default().with_check(Duration::ZERO));
    open(&careful, "t").await;
    let first: Vec<_> = server.take_requests();
    open(&careful, "again").await;
    let again = server.take_requests();
    let is_object = |it: &&Request| it.listing.is_none() && it.status < 400;
    assert!(first.iter().filter(is_object).count() > 3, "metadata and labels");
    let listings = first.iter().filter(|it| it.listing.is_some()).count();
    let objects: Vec<&str> = first
        .iter()
        .filter(is_object)
        .map(|it| it.path.rsplit_once("climate.zarr/").unwrap().1)
        .collect();
    assert_eq!(listings, 2, "{first:#?}");
    assert_eq!(objects.iter().collect::<BTreeSet<_>>().len(), objects.len(), "{objects:?}");
    assert_eq!(
        objects.len(),
        4,
        "the metadata, and a chunk of labels of each dimension: {objects:?}"
    );
    for request in again.iter().filter(is_object) {
        assert_eq!(request.range, Some(Span::Between(0, 0)), "only a check: {request:?}");
    }
    server.put("bucket/climate.zarr/zarr.json", b"{}".to_vec());
    let opened = careful
        .register_array("changed", "s3://bucket/climate.zarr", ArrayOptions::default())
        .await;
    opened.expect_err("the metadata was replaced");
}

/// A query of a known file costs one request that checks the file. A file that was replaced is read anew.
#[tokio::test]
async fn known_files_are_checked() {
    let link = link();
    let server = &link.server;
    let ctx = link.session(RemoteLimits::default().with_check(Duration::ZERO));
    let sum = format!("SELECT sum(value) FROM read_tet('{}/bucket/large.tet')", server.url());
    let first = cell(&ctx, &sum).await;
    assert_eq!(first, (0..160_000_i64).sum::<i64>().to_string());
    asked(server);
    assert_eq!(cell(&ctx, &sum).await, first);
    let again = server.take_requests();
    assert!(again.iter().all(|it| it.method == "GET"));
    assert!(again.iter().filter(|it| it.range.is_some()).count() >= 2, "a check, and payloads");
    let data = (0..160_000).flat_map(|i: i32| (i + 1).to_le_bytes()).collect();
    let dataset = TestDataset::new("value", I32, &[400, 400], &[100, 100], data);
    let layout = Layout { history_version: Some(2), ..Layout::default() };
    server.put("bucket/large.tet", tet_bytes(&[dataset], &layout));
    assert_eq!(cell(&ctx, &sum).await, (1..=160_000_i64).sum::<i64>().to_string());
}

/// A table whose file is replaced gives an error, also if the server ignores conditions or has no tags.
#[tokio::test]
async fn a_change_is_noticed_by_every_kind_of_server() {
    for behaviour in
        [None, Some(Behaviour::IgnoresIfMatch), Some(Behaviour::WeakETags), Some(Behaviour::NoETag)]
    {
        let link = link();
        let server = &link.server;
        if let Some(behaviour) = behaviour {
            server.behave(behaviour, true);
        }
        let limits = RemoteLimits::default().with_check(Duration::ZERO);
        let ctx = link.session(limits);
        ctx.register_array(
            "t",
            format!("{}/bucket/large.tet", server.url()),
            ArrayOptions::default(),
        )
        .await
        .unwrap();
        cell(&ctx, "SELECT sum(value) FROM t").await;
        server.put("bucket/large.tet", large());
        let error = query(&ctx, "SELECT sum(value) FROM t").await.unwrap_err().to_string();
        assert!(
            error.contains("the object was replaced after it was opened"),
            "{behaviour:?}: {error}"
        );
    }
}

#[tokio::test]
async fn servers_without_head_ranges_or_with_redirects_are_read() {
    for (behaviour, path) in [
        (Behaviour::HeadNotAllowed, "bucket/large.tet"),
        (Behaviour::IgnoresRanges, "bucket/large.tet"),
        (Behaviour::Redirects, "redirect/bucket/large.tet"),
    ] {
        let link = link();
        let server = &link.server;
        server.behave(behaviour, true);
        let ctx = link.session(RemoteLimits::default());
        let sum = format!("SELECT sum(value) FROM read_tet('{}/{path}')", server.url());
        assert_eq!(
            cell(&ctx, &sum).await,
            (0..160_000_i64).sum::<i64>().to_string(),
            "{behaviour:?}"
        );
    }
    // A file that is too large to be read whole is refused before it is read.
    let link = link();
    let server = &link.server;
    server.behave(Behaviour::IgnoresRanges, true);
    let ctx = link.session(RemoteLimits::default().with_cache(100_000));
    let sum = format!("SELECT sum(value) FROM read_tet('{}/bucket/large.tet')", server.url());
    let error = query(&ctx, &sum).await.unwrap_err().to_string();
    assert!(error.contains("the server sends whole objects only"), "{error}");
}

#[tokio::test]
async fn requests_in_flight_stay_within_the_budget() {
    let link = link();
    let server = &link.server;
    server.set_latency(Duration::from_millis(5));
    let limits = RemoteLimits::default().with_requests(3).with_merge(20_000).with_gap(0);
    let ctx = link.session(limits);
    let url = format!("{}/bucket/large.tet", server.url());
    ctx.register_array("t", &url, ArrayOptions::default()).await.unwrap();
    let one = async |number: i64| {
        let sql = format!("SELECT sum(value) FROM t WHERE dim_0 >= {number}");
        cell(&ctx, &sql).await
    };
    let all = futures::future::join_all((0..64).map(one)).await;
    let expected = |number: i64| (number * 400..160_000).sum::<i64>().to_string();
    assert!(all.iter().enumerate().all(|(number, sum)| *sum == expected(number as i64)));
    assert_eq!(server.most_in_flight(), 3);
}

/// A pattern lists only the folders that match it.
#[tokio::test]
async fn a_pattern_lists_few_folders() {
    let mut objects = vec![];
    for year in 0..20 {
        objects.push((format!("bucket/y/{year:02}/t.tet"), small()));
        objects.extend((0..30).map(|other| (format!("bucket/y/{year:02}/more/{other}"), vec![0])));
    }
    let link = Link::new(ObjectServer::start(objects));
    let ctx = link.session(RemoteLimits::default());
    let sql = "SELECT count(*) FROM read_tet('s3://bucket/y/1[0-1]/t.tet', dataset => 'elevation', concat_dimension => 'file')";
    let listed = query(&ctx, sql).await;
    let lists = link.server.take_requests().into_iter().filter(|it| it.listing.is_some()).count();
    assert_eq!(lists, 3, "the folder of years, and two years; {listed:?}");
}

#[tokio::test]
async fn explain_analyze_shows_requests() {
    let link = link();
    let server = &link.server;
    let ctx = link.session(RemoteLimits::default());
    ctx.register_array("t", format!("{}/bucket/large.tet", server.url()), ArrayOptions::default())
        .await
        .unwrap();
    let plan = rows_from(&ctx, "EXPLAIN ANALYZE SELECT sum(value) FROM t").await.concat().concat();
    for metric in ["requests=", "retries=0", "bytes_fetched=", "bytes_wasted=", "bytes_cached="] {
        assert!(plan.contains(metric), "{metric}: {plan}");
    }
}
