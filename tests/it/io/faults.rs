//! Faults of servers and networks: each query gives the right answer, or an error that names the file, soon.
//!
//! A query without faults shows how many requests it makes. Each request then fails in each way.

use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::future::join_all;
use gridfusion::io::RemoteLimits;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};

use super::remote::{Link, files, large};
use crate::support::object_server::{Fault, ObjectServer, On};
use crate::support::{query, rows_of, shipped};

/// A stalled request ends after this time.
const TIMEOUT: Duration = Duration::from_millis(300);

type Objects = Vec<(String, Bytes)>;

fn objects() -> Objects {
    let mut objects = files(Path::new(&shipped("examples/data/ships")), "bucket/ships");
    objects.extend(files(Path::new(&shipped("tests/data/tiledb/overlap")), "bucket/overlap"));
    objects.push(("bucket/large.tet".into(), large()));
    objects.into_iter().map(|(path, bytes)| (path, bytes.into())).collect()
}

fn link() -> Link {
    Link::new(ObjectServer::start(objects()))
}

/// The rows of a query, or its error.
type Rows = Result<Vec<Vec<String>>, String>;

/// Opens an array in a new session, and runs a query.
async fn run(link: &Link, location: &str, sql: &str) -> Rows {
    let limits = RemoteLimits { timeout: TIMEOUT, tries: 3, ..RemoteLimits::default() };
    let ctx = link.session(limits);
    let location = location.replace("HTTP", &link.server.url());
    let opened = ctx.register_array("t", &location, ArrayOptions::default()).await;
    opened.map_err(|error| error.to_string())?;
    let rows = query(&ctx, sql).await.map_err(|error| error.to_string())?;
    Ok(rows_of(&rows))
}

const QUERIES: [(&str, &str); 6] = [
    ("HTTP/bucket/large.tet", "SELECT dim_0, sum(value) FROM t GROUP BY dim_0 ORDER BY 1 LIMIT 3"),
    (
        "s3://bucket/large.tet",
        "SELECT * FROM t WHERE value % 31 = 7 AND dim_1 < 150 ORDER BY 3 LIMIT 5",
    ),
    ("s3://bucket/overlap", "SELECT sum(a), count(s), min(r), max(c) FROM t"),
    ("s3://bucket/overlap", "SELECT r, max(a) FROM t GROUP BY r ORDER BY r"),
    ("s3://bucket/ships", "SELECT * FROM t ORDER BY 1, 2"),
    ("s3://bucket/ships", "SELECT count(*) FROM t"),
];

/// Runs each query with each request failing in each way, several at a time. Calls `check` with the right
/// answer, the answer that was found, and a description.
async fn sweep(on: fn(usize) -> On, faults: &[Fault], check: impl Fn(&str, &Rows, &Rows, &str)) {
    let links: Vec<Link> = (0..8).map(|_| link()).collect();
    for (location, sql) in QUERIES {
        links[0].server.take_requests();
        let expected = run(&links[0], location, sql).await;
        let requests = links[0].server.take_requests().len();
        assert!(expected.is_ok() && requests > 0, "{expected:?}");
        let cases: Vec<(usize, &Fault)> =
            (1..=requests).flat_map(|number| faults.iter().map(move |it| (number, it))).collect();
        let (cases, expected, check) = (&cases, &expected, &check);
        let lanes = links.iter().enumerate().map(|(at, link)| async move {
            for (number, fault) in cases.iter().skip(at).step_by(8) {
                link.server.clear_faults();
                link.server.fault(on(*number), (*fault).clone());
                let began = Instant::now();
                let found = run(link, location, sql).await;
                let how = format!("{sql}, request {number}: {fault:?}: {found:?}");
                // The time counts from the last progress, and listings have more of it.
                assert!(began.elapsed() < TIMEOUT * 30, "{:?}: {how}", began.elapsed());
                check(location, expected, &found, &how);
            }
            link.server.clear_faults();
        });
        join_all(lanes).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_fails_once_is_tried_again() {
    let passing = [
        Fault::Status(500, "internal".into()),
        Fault::Status(503, "slow down".into()),
        Fault::CloseBeforeReply,
        Fault::CloseAfter(10),
        Fault::Stall(10),
        Fault::NeverAnswer,
        Fault::Delay(Duration::from_millis(30)),
    ];
    sweep(On::nth, &passing, |_, expected, found, how| assert_eq!(found, expected, "{how}")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_keep_failing_are_errors() {
    let lasting = [
        Fault::Status(500, "internal".into()),
        Fault::Status(403, "forbidden".into()),
        Fault::CloseBeforeReply,
        Fault::CloseAfter(10),
        Fault::Stall(10),
        Fault::NeverAnswer,
        Fault::ShortBody(3),
    ];
    let check = |location: &str, expected: &Rows, found: &Rows, how: &str| match found {
        // The listing of a whole array may be missing. Others make up for it.
        Ok(_) => assert_eq!(found, expected, "{how}"),
        Err(error) => assert!(error.contains(location.rsplit('/').next().unwrap()), "{how}"),
    };
    sweep(On::from, &lasting, check).await;
}

/// The object is replaced by another one before each request: the answer is that of one of both, or an error.
#[tokio::test]
async fn an_object_that_is_replaced_meanwhile_is_an_error() {
    let link = link();
    let (location, sql) = QUERIES[0];
    let expected = run(&link, location, sql).await.unwrap();
    let requests = link.server.take_requests().len();
    let mut other = large();
    let last = other.len() - 300_000;
    other[last] ^= 1;
    for number in 1..=requests {
        link.server.put("bucket/large.tet", large());
        let replace = Fault::ReplaceObjectBefore("bucket/large.tet".into(), other.clone().into());
        link.server.clear_faults();
        link.server.fault(On::nth(number), replace);
        match run(&link, location, sql).await {
            Ok(found) if number > 1 => assert_eq!(found, expected, "request {number}"),
            Ok(_) => {}
            Err(error) => assert!(error.contains("was replaced"), "{error}"),
        }
    }
}

#[tokio::test]
async fn errors_say_what_was_read_and_how_often() {
    let link = link();
    let server = &link.server;
    let limits = RemoteLimits { timeout: TIMEOUT, tries: 3, ..RemoteLimits::default() };
    let ctx = link.session(limits);
    let url = format!("{}/bucket/large.tet", server.url());
    ctx.register_array("t", &url, ArrayOptions::default()).await.unwrap();
    server.fault(On::all(), Fault::Status(500, "broken".into()));
    let sql = "SELECT value FROM t WHERE dim_0 = 220 AND dim_1 = 107";
    let error = query(&ctx, sql).await.unwrap_err().to_string();
    for part in [&url, "payload of chunk [2, 1]", "bytes ", "after 3 tries", "500"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    server.clear_faults();
    server.fault(On::all(), Fault::NeverAnswer);
    let error = query(&ctx, sql).await.unwrap_err().to_string();
    assert!(error.contains("the store sent nothing for 0.3 s"), "{error}");
}
