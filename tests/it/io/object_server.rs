//! Tests of the server that tests and benches use as an object store.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::mpsc;
use std::time::Duration;

use bytes::Bytes;
use futures::TryStreamExt;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::{ClientOptions, ObjectStore, ObjectStoreExt};

use crate::support::object_server::{Behaviour, Fault, Listing, ObjectServer, On, Span};

const DIGITS: &[u8] = b"0123456789";

fn digits() -> ObjectServer {
    ObjectServer::start([("bucket/digits", DIGITS)])
}

/// A reply as it arrived, as far as it did.
struct Reply {
    head: String,
    body: Vec<u8>,
}

impl Reply {
    /// Sends a request, and reads until the server closes the connection or `limit` is over.
    fn of(server: &ObjectServer, request: &str, limit: Duration) -> Self {
        let mut stream = TcpStream::connect(server.url().trim_start_matches("http://")).unwrap();
        stream.set_read_timeout(Some(limit)).unwrap();
        stream.write_all(format!("{request}\r\nConnection: close\r\n\r\n").as_bytes()).unwrap();
        let (mut bytes, mut part) = (vec![], [0; 8192]);
        while let Ok(len @ 1..) = stream.read(&mut part) {
            bytes.extend(&part[..len]);
        }
        let Some(end) = bytes.windows(4).position(|it| it == b"\r\n\r\n") else {
            return Self { head: String::new(), body: bytes };
        };
        Self {
            head: String::from_utf8(bytes[..end].to_vec()).unwrap(),
            body: bytes[end + 4..].into(),
        }
    }

    fn status(&self) -> &str {
        self.head.get(9..12).unwrap_or_default()
    }

    fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(it, _)| *it == name).map(|(_, value)| value)
    }
}

/// Sends a request for the digits.
fn get(server: &ObjectServer, headers: &str) -> Reply {
    let request = format!("GET /bucket/digits HTTP/1.1{headers}");
    Reply::of(server, &request, Duration::from_secs(10))
}

fn s3(server: &ObjectServer) -> AmazonS3 {
    AmazonS3Builder::new()
        .with_endpoint(server.url())
        .with_bucket_name("bucket")
        .with_region("us-east-1")
        .with_allow_http(true)
        .with_virtual_hosted_style_request(false)
        .with_skip_signature(true)
        .with_client_options(ClientOptions::new().with_allow_http(true))
        .build()
        .unwrap()
}

#[test]
fn objects_and_ranges() {
    let server = digits();
    let whole = get(&server, "");
    assert_eq!((whole.status(), &whole.body[..]), ("200", DIGITS));
    assert_eq!(whole.header("ETag"), Some("\"1\""));
    assert_eq!(whole.header("Last-Modified"), Some("Mon, 01 Jan 2024 00:00:01 GMT"));
    for (range, status, body, content_range) in [
        ("bytes=2-4", "206", &b"234"[..], "bytes 2-4/10"),
        ("bytes=8-99", "206", b"89", "bytes 8-9/10"),
        ("bytes=7-", "206", b"789", "bytes 7-9/10"),
        ("bytes=-3", "206", b"789", "bytes 7-9/10"),
        ("bytes=-30", "206", DIGITS, "bytes 0-9/10"),
        ("bytes=10-12", "416", b"", "bytes */10"),
    ] {
        let reply = get(&server, &format!("\r\nRange: {range}"));
        assert_eq!((reply.status(), &reply.body[..]), (status, body), "{range}");
        assert_eq!(reply.header("Content-Range"), Some(content_range));
    }
    let limit = Duration::from_secs(10);
    let head = Reply::of(&server, "HEAD /bucket/digits HTTP/1.1", limit);
    assert_eq!((head.header("Content-Length"), head.body.len()), (Some("10"), 0));
    server.remove("bucket/digits");
    assert_eq!(get(&server, "").status(), "404");
    assert_eq!(Reply::of(&server, "PUT /bucket/digits HTTP/1.1", limit).status(), "405");
}

#[test]
fn conditions_compare_entity_tags() {
    let server = digits();
    let statuses = || {
        ["Match: \"1\"", "Match: \"2\"", "Match: *", "None-Match: \"1\"", "None-Match: \"2\""]
            .map(|condition| get(&server, &format!("\r\nIf-{condition}")).status().to_owned())
    };
    assert_eq!(statuses(), ["200", "412", "200", "304", "200"]);
    server.put("bucket/digits", DIGITS);
    assert_eq!(statuses(), ["412", "200", "200", "200", "304"]);
}

#[test]
fn behaviours_differ_from_s3() {
    let server = digits();
    let head = || Reply::of(&server, "HEAD /bucket/digits HTTP/1.1", Duration::from_secs(10));
    server.behave(Behaviour::HeadNotAllowed, true);
    assert_eq!((head().status(), get(&server, "").status()), ("405", "200"));
    server.behave(Behaviour::HeadNotAllowed, false);
    assert_eq!(head().status(), "200");
    server.behave(Behaviour::IgnoresRanges, true);
    assert_eq!(get(&server, "\r\nRange: bytes=1-2").body, DIGITS);
    server.behave(Behaviour::IgnoresIfMatch, true);
    assert_eq!(get(&server, "\r\nIf-Match: \"9\"").status(), "200");
    server.behave(Behaviour::WeakETags, true);
    assert_eq!(get(&server, "").header("ETag"), Some("W/\"1\""));
    server.behave(Behaviour::IgnoresIfMatch, false);
    assert_eq!(get(&server, "\r\nIf-Match: W/\"1\"").status(), "412");
    server.behave(Behaviour::NoETag, true);
    assert_eq!(get(&server, "").header("ETag"), None);
    let redirect =
        || Reply::of(&server, "GET /redirect/bucket/digits HTTP/1.1", Duration::from_secs(10));
    assert_eq!(redirect().status(), "404");
    server.behave(Behaviour::Redirects, true);
    assert_eq!(
        (redirect().status(), redirect().header("Location")),
        ("302", Some("/bucket/digits"))
    );
}

#[tokio::test]
async fn s3_clients_read_and_list() {
    let many = (0..2_345).map(|number| (format!("bucket/a&b/{number:04}/x"), DIGITS));
    let single =
        ["bucket/a&b/single", "bucket/other", "bucket2/none"].map(|path| (path.into(), DIGITS));
    let server = ObjectServer::start(many.chain(single));
    let store = s3(&server);
    let path = object_store::path::Path::from("a&b/0007/x");
    assert_eq!(store.get_range(&path, 3..5).await.unwrap(), "34");
    let requests = server.take_requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].path, "bucket/a&b/0007/x");
    assert_eq!((requests[0].range, requests[0].sent), (Some(Span::Between(3, 4)), 2));

    let all: Vec<_> = store.list(None).try_collect().await.unwrap();
    assert_eq!(all.len(), 2_347);
    let listed = all.iter().find(|object| object.location == path).unwrap();
    let opened = store.head(&path).await.unwrap();
    assert_eq!((listed.size, &listed.e_tag), (10, &opened.e_tag));
    assert_eq!(listed.last_modified, opened.last_modified);

    server.take_requests();
    let folder = store.list_with_delimiter(Some(&"a&b".into())).await.unwrap();
    let names: BTreeSet<_> = folder.common_prefixes.iter().map(ToString::to_string).collect();
    assert_eq!((folder.common_prefixes.len(), names.len()), (2_345, 2_345));
    assert_eq!(folder.objects.len(), 1);
    let listings: Vec<Listing> =
        server.requests().into_iter().filter_map(|request| request.listing).collect();
    assert_eq!(listings.len(), 3, "pages of 1000");
    assert_eq!((&*listings[2].prefix, &*listings[2].delimiter), ("a&b/", "/"));
    assert_eq!(listings[2].token.as_deref(), Some("prefix:a&b/1999/"));
    let root = store.list_with_delimiter(None).await.unwrap();
    assert_eq!((root.common_prefixes.len(), root.objects.len()), (1, 1));
    assert!(store.list(Some(&"none".into())).try_next().await.unwrap().is_none());
}

/// A client that waits no longer than this has nothing of a reply that takes an hour.
const IMPATIENT: Duration = Duration::from_millis(50);
const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn links_are_slow() {
    let server = ObjectServer::start([("a", vec![7; 100_000])]);
    let got = |limit| Reply::of(&server, "GET /a HTTP/1.1", limit);
    server.set_latency(HOUR);
    assert_eq!(got(IMPATIENT).head, "");
    server.set_latency(Duration::from_millis(1));
    server.set_bandwidth(Some(1));
    let reply = got(IMPATIENT);
    assert_eq!((reply.status(), reply.body.len()), ("200", 0));
    server.set_bandwidth(Some(10_000_000));
    assert_eq!(got(Duration::from_secs(60)).body, vec![7; 100_000]);
}

#[test]
fn requests_in_flight_are_counted() {
    let server = digits();
    server.fault(On::all(), Fault::Hold);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| get(&server, ""));
        }
        server.wait_for_requests(3);
        server.release();
    });
    assert_eq!(server.most_in_flight(), 3);
    server.reset_most_in_flight();
    for _ in 0..20 {
        get(&server, "");
    }
    assert_eq!(server.most_in_flight(), 1);
    assert_eq!((server.bytes_sent(), server.take_requests().len()), (230, 23));
    assert_eq!((server.bytes_sent(), server.requests().len()), (0, 0));
}

#[test]
fn faults_change_replies() {
    let server = digits();
    let body = |fault: Fault| {
        server.fault(1, fault);
        let reply = get(&server, "\r\nRange: bytes=2-8");
        (reply.status().to_owned(), String::from_utf8_lossy(&reply.body).into_owned())
    };
    let of = |status: &str, body: &str| (status.to_owned(), body.to_owned());
    assert_eq!(body(Fault::Status(503, "slow down".into())), of("503", "slow down"));
    assert_eq!(body(Fault::CloseBeforeReply), of("", ""));
    assert_eq!(body(Fault::CloseAfter(3)), of("206", "234"));
    assert_eq!(body(Fault::ShortBody(4)), of("206", "2345"));
    let put = Fault::ReplaceObjectBefore("bucket/digits".into(), Bytes::from_static(b"abcdefghij"));
    assert_eq!(body(put), of("206", "cdefghi"));
    server.put("bucket/digits", DIGITS);
    assert_eq!(body(Fault::Delay(Duration::from_millis(5))), of("206", "2345678"));
    server.fault(1, Fault::Delay(HOUR));
    assert_eq!(Reply::of(&server, "GET /bucket/digits HTTP/1.1", IMPATIENT).head, "");
    server.fault(1, Fault::WrongBytes);
    assert_eq!(get(&server, "").body, DIGITS.iter().map(|byte| !byte).collect::<Vec<_>>());
    server.fault(1, Fault::ShortBody(4));
    let short = get(&server, "\r\nRange: bytes=2-8");
    assert_eq!(short.header("Content-Range"), Some("bytes 2-5/10"));
    assert_eq!(short.header("Content-Length"), Some("4"));
}

#[test]
fn stalled_replies_end_with_the_server() {
    let server = digits();
    server.fault(1, Fault::Stall(6));
    server.fault(On::nth(1).of(|request| request.range.is_some()), Fault::NeverAnswer);
    let limit = Duration::from_millis(100);
    let stalled = Reply::of(&server, "GET /bucket/digits HTTP/1.1", limit);
    assert_eq!((stalled.status(), &stalled.body[..]), ("200", &b"012345"[..]));
    assert_eq!(stalled.header("Content-Length"), Some("10"));
    let never = Reply::of(&server, "GET /bucket/digits HTTP/1.1\r\nRange: bytes=1-2", limit);
    assert_eq!((never.status(), never.body.len()), ("", 0));

    server.fault(1, Fault::Stall(1));
    let mut stream = TcpStream::connect(server.url().trim_start_matches("http://")).unwrap();
    stream.write_all(b"GET /bucket/digits HTTP/1.1\r\n\r\n").unwrap();
    let (ended, end) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = vec![];
        drop(stream.read_to_end(&mut bytes));
        ended.send(bytes).unwrap();
    });
    while server.requests().last().is_none_or(|request| request.sent == 0) {
        std::thread::yield_now();
    }
    drop(server);
    let bytes = end.recv_timeout(Duration::from_secs(10)).unwrap();
    assert!(bytes.ends_with(b"\r\n\r\n0"));
}

#[test]
fn faults_count_requests() {
    let server = digits();
    let statuses = |requests: usize| -> Vec<String> {
        (0..requests).map(|_| get(&server, "").status().to_owned()).collect()
    };
    get(&server, "");
    server.fault(2, Fault::Status(500, String::new()));
    server.fault(On::from(4), Fault::Status(503, String::new()));
    assert_eq!(statuses(5), ["200", "500", "200", "503", "503"]);
    server.clear_faults();
    assert_eq!(statuses(1), ["200"]);
    server.fault(On::all().of(|request| request.range.is_some()), Fault::CloseBeforeReply);
    assert_eq!(statuses(1), ["200"]);
    assert_eq!(get(&server, "\r\nRange: bytes=1-2").status(), "");
    let ranges = server.requests().iter().filter(|request| request.range.is_some()).count();
    assert_eq!(ranges, 1);
}

fn asked(server: &ObjectServer, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1");
    String::from_utf8(Reply::of(server, &request, Duration::from_secs(10)).body).unwrap()
}

#[test]
fn other_processes_control_the_server() {
    let slow = digits();
    let late = || Reply::of(&slow, "GET /bucket/digits HTTP/1.1", IMPATIENT).head;
    for slowness in ["latency_ms=3600000", "latency_ms=0&bandwidth=1"] {
        asked(&slow, &format!("/__control?{slowness}"));
        assert_eq!(late(), "", "{slowness}");
    }
    let server = digits();
    let ask = |path: &str| asked(&server, path);
    get(&server, "\r\nRange: bytes=0-8");
    ask("/bucket?list-type=2&prefix=d%2Fe&delimiter=%2F&max-keys=1");
    let log = ask("/__log?take=1");
    let lines: Vec<&str> = log.lines().collect();
    assert!(lines[0].starts_with("requests=2 sent="), "{log}");
    assert!(lines[0].ends_with(" most_in_flight=1"), "{log}");
    assert_eq!(lines[1], "GET 206 9 /bucket/digits bytes=0-8");
    assert!(lines[2].ends_with("/bucket list prefix=d/e delimiter=/"), "{log}");
    assert!(ask("/__log").starts_with("requests=0 sent=0"));
}
