//! Faults of servers and networks: each operation gives the right result, or an error that names the file, soon.
//!
//! ```text
//!   an operation without faults   list ── get schema ── get footer ── get tile ── get tile
//!   cases                         a sample of all requests fail, and the ways to fail take turns;
//!                                 a request of each kind fails in every way
//! ```
//!
//! Each case has copies of the objects below a folder of its own. So all cases of an operation share a server, and wait for
//! their timeouts side by side. Each request has a connection of its own, so that one case cannot break those of others.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream;
use gridfusion::io::RemoteLimits;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};

use super::operations::{Operation, Outcome};
use super::remote::{Link, files, large};
use crate::support::object_server::{Fault, ObjectServer, On, Request, Span};
use crate::support::waiting::HANG;
use crate::support::{query, shipped};

/// A request without progress ends after this time, and a try after half of it. A busy machine must not take as
/// long for an answer.
const TIMEOUT: Duration = Duration::from_secs(3);
/// The same where a request that ends early does no harm.
const SHORT_TIMEOUT: Duration = Duration::from_millis(200);
/// Cases at a time. Most of them wait.
const LANES: usize = 24;
/// The most requests of an operation that fail whatever their kind.
const SAMPLE: usize = 12;

/// An array, the operations on it, and its files.
struct Array {
    /// Its location. `CASE` stands for the folder of a case, and `HTTP` for the server.
    location: &'static str,
    operations: &'static [Operation],
    files: fn() -> Vec<(String, Vec<u8>)>,
}

const ARRAYS: [Array; 3] = [
    Array {
        location: "HTTP/bucket/CASE/large.tet",
        operations: &[
            Operation::Open,
            Operation::Describe,
            Operation::Query("SELECT * FROM t WHERE value % 31 = 7 ORDER BY 3 LIMIT 5"),
            Operation::Query("SELECT dim_0, sum(value) FROM t GROUP BY dim_0 ORDER BY 1 LIMIT 3"),
            Operation::Verify,
        ],
        files: || vec![("large.tet".into(), large())],
    },
    Array {
        location: "s3://bucket/CASE/overlap",
        operations: &[
            Operation::Open,
            Operation::Describe,
            Operation::Query("SELECT sum(a), count(s), min(r), max(c) FROM t WHERE a <> 3"),
            Operation::Query("SELECT r, max(a) FROM t GROUP BY r ORDER BY r"),
            Operation::Verify,
        ],
        files: || files(Path::new(&shipped("tests/data/tiledb/overlap")), "overlap"),
    },
    Array {
        location: "s3://bucket/CASE/ships",
        operations: &[
            Operation::Open,
            Operation::Describe,
            Operation::Query("SELECT * FROM t ORDER BY 1, 2 LIMIT 30"),
            Operation::Query("SELECT ship, count(*) FROM t GROUP BY ship ORDER BY 1"),
            Operation::Verify,
        ],
        files: || files(Path::new(&shipped("examples/data/ships")), "ships"),
    },
];

/// Returns the limits of all sessions here. Small requests make many of them.
fn limits(timeout: Duration) -> RemoteLimits {
    RemoteLimits::default().with_timeout(timeout).with_tries(3).with_merge(100_000).with_gap(0)
}

/// The objects of an array, and a server for all cases of an operation.
struct Bench<'a> {
    array: &'a Array,
    operation: Operation,
    objects: Vec<(String, Bytes)>,
    link: Link,
    timeout: Duration,
}

/// A request that goes wrong: the one with this number among those of its kind; `None` stands for all kinds.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    kind: Option<String>,
    number: usize,
}

/// The outcome of an operation whose requests went wrong.
struct Found<'a> {
    operation: Operation,
    /// The folder of the case, which is in the location of the array.
    case: &'a str,
    /// The outcome without faults.
    expected: &'a Outcome,
    found: &'a Outcome,
    /// A description for failing tests.
    how: &'a str,
}

impl Bench<'_> {
    /// Runs the operation in a new session, on objects below the folder `case`.
    async fn run(&self, case: &str, timeout: Duration) -> Outcome {
        let Self { array, link, objects, .. } = self;
        let path = |name: &str| format!("bucket/{case}/{name}");
        objects.iter().for_each(|(name, bytes)| link.server.put(path(name), bytes.clone()));
        let location = array.location.replace("HTTP", &link.server.url()).replace("CASE", case);
        let ctx = link.session(limits(timeout));
        let run = Box::pin(self.operation.run(&ctx, &location));
        let outcome = tokio::time::timeout(HANG, run).await;
        objects.iter().for_each(|(name, _)| link.server.remove(&path(name)));
        outcome.unwrap_or_else(|_| panic!("{:?} of {location} hangs", self.operation))
    }

    /// Returns the outcome without faults, and the cases: each is a place and the number of its fault. `seen` has
    /// the kinds of requests of earlier operations on the array, which have failed in every way.
    async fn cases(
        &self,
        faults: usize,
        seen: &mut BTreeSet<String>,
    ) -> (Outcome, BTreeSet<(Place, usize)>) {
        // Nothing fails, however slow the machine is.
        let expected = self.run("plain", HANG).await;
        let requests = self.link.server.take_requests();
        assert!(expected.is_ok() && !requests.is_empty(), "{:?}: {expected:?}", self.operation);
        let each = |number| (Place { kind: None, number }, number % faults);
        let sample = (1..=requests.len()).step_by(requests.len().div_ceil(SAMPLE));
        let mut cases: BTreeSet<_> = sample.map(each).chain([each(requests.len())]).collect();
        let mut kinds = BTreeMap::<String, usize>::new();
        requests.iter().for_each(|request| *kinds.entry(kind(request)).or_default() += 1);
        for (kind, count) in kinds.into_iter().filter(|(kind, _)| seen.insert(kind.clone())) {
            // The first and the last request of the kind take turns.
            let number = |fault| if fault % 2 == 0 { 1 } else { count };
            let place = |fault| Place { kind: Some(kind.clone()), number: number(fault) };
            cases.extend((0..faults).map(|fault| (place(fault), fault)));
        }
        (expected, cases)
    }

    /// Lets the requests at `place` go wrong for the objects below the folder `case`.
    fn fault(&self, case: &str, on: fn(usize) -> On, place: &Place, fault: &Fault) {
        let (case, wanted) = (format!("{case}/"), place.kind.clone());
        let is_wanted = move |request: &Request| {
            key(request).starts_with(&case) && wanted.as_ref().is_none_or(|it| *it == kind(request))
        };
        self.link.server.fault(on(place.number).of(is_wanted), fault.clone());
    }
}

/// Returns the key of the object or folder of a request.
fn key(request: &Request) -> &str {
    match &request.listing {
        Some(listing) => &listing.prefix,
        None => request.path.strip_prefix("bucket/").unwrap_or_default(),
    }
}

/// Returns a text that is equal for requests of the same kind: what is read of which files.
fn kind(request: &Request) -> String {
    // The names of fragments and schemas begin with their times.
    let is_dated = |name: &str| name.starts_with("__") && name.as_bytes()[2].is_ascii_digit();
    let names = key(request).split('/').skip(1).map(|it| if is_dated(it) { "*" } else { it });
    let place = names.collect::<Vec<_>>().join("/");
    let part = match (&request.listing, &request.range) {
        (Some(listing), _) if listing.delimiter.is_empty() => "list all of",
        (Some(_), _) => "list",
        (_, None) => "all of",
        (_, Some(Span::Between(0, 0))) => "the first byte of",
        (_, Some(Span::Between(0, _))) => "the beginning of",
        (_, Some(Span::Between(..) | Span::From(_))) => "a part of",
        (_, Some(Span::Last(_))) => "the end of",
    };
    format!("{} {part} {place}", request.method)
}

/// Runs each operation with each kind of request failing. `on` tells whether once or from then on. A case runs up to
/// `runs` times until no request is starved, because a busy machine may starve any of them.
async fn sweep(
    on: fn(usize) -> On,
    faults: &[Fault],
    timeout: Duration,
    runs: usize,
    check: impl Fn(&Found<'_>),
) {
    for array in &ARRAYS {
        let mut seen = BTreeSet::new();
        let objects: Vec<(String, Bytes)> =
            (array.files)().into_iter().map(|(path, bytes)| (path, bytes.into())).collect();
        for &operation in array.operations {
            let link = Link::without_reuse(ObjectServer::start(Vec::<(String, Bytes)>::new()));
            let bench = Bench { array, operation, objects: objects.clone(), link, timeout };
            let (expected, cases) = bench.cases(faults.len(), &mut seen).await;
            let run = async |(number, (place, fault)): (usize, (Place, usize))| {
                let (case, fault) = (format!("c{number}"), &faults[fault]);
                let mut found = Ok(String::new());
                for _ in 0..runs {
                    bench.fault(&case, on, &place, fault);
                    found = bench.run(&case, bench.timeout).await;
                    let is_starved = |error: &String| {
                        error.contains("sent nothing for") || error.contains("sent only")
                    };
                    if !found.as_ref().is_err_and(is_starved) {
                        break;
                    }
                }
                let how = format!("{operation:?}, {place:?}: {fault:?}: {found:?}");
                let (expected, found) = (&expected, &found);
                check(&Found { operation, case: &case, expected, found, how: &how });
            };
            let cases = stream::iter(cases.into_iter().enumerate()).map(run);
            cases.buffer_unordered(LANES).collect::<()>().await;
        }
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
    let check = |it: &Found<'_>| assert_eq!(it.found, it.expected, "{}", it.how);
    sweep(On::nth, &passing, TIMEOUT, 5, check).await;
}

/// A listing of a whole array may be missing, because others make up for it. Then the result is right.
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
    let check = |it: &Found<'_>| match it.found {
        Ok(_) => assert_eq!(it.found, it.expected, "{}", it.how),
        // A report leaves out the path of the array that it is about.
        Err(error) if it.operation == Operation::Verify => {
            assert!(!error.contains("bug in"), "{}", it.how);
        }
        Err(error) => assert!(error.contains(&format!("{}/", it.case)), "{}", it.how),
    };
    sweep(On::from, &lasting, SHORT_TIMEOUT, 1, check).await;
}

/// The object is replaced by another one before each request: the rows are those of one of both, or an error.
#[tokio::test]
async fn an_object_that_is_replaced_meanwhile_is_an_error() {
    let link = Link::new(ObjectServer::start(Vec::<(String, Bytes)>::new()));
    let operation = Operation::Query("SELECT sum(value) FROM t");
    // Requests of an earlier case may still arrive, so that each case has an object of its own.
    let run = async |case: &str, bytes: &Bytes| {
        link.server.put(format!("bucket/{case}.tet"), bytes.clone());
        let location = format!("s3://bucket/{case}.tet");
        operation.run(&link.session(limits(TIMEOUT)), &location).await
    };
    let (old, mut new) = (Bytes::from(large()), large());
    let last = new.len() - 300_000;
    new[last] ^= 1;
    let new = Bytes::from(new);
    let before = run("old", &old).await.unwrap();
    let requests = link.server.take_requests().len();
    assert!(requests > 5, "{requests}");
    let after = run("new", &new).await.unwrap();
    assert_ne!(before, after);
    for number in 1..=requests {
        let (case, path) = (format!("c{number}"), format!("bucket/c{number}.tet"));
        let of_case = path.clone();
        let on = On::nth(number).of(move |request| request.path == of_case);
        link.server.fault(on, Fault::ReplaceObjectBefore(path, new.clone()));
        match run(&case, &old).await {
            Ok(found) => assert_eq!((number, &found), (1, &after), "a mixture, or the old object"),
            Err(error) => assert!(error.contains("was replaced"), "request {number}: {error}"),
        }
    }
}

#[tokio::test]
async fn errors_say_what_was_read_and_how_often() {
    let link = Link::new(ObjectServer::start([("bucket/large.tet", large())]));
    let server = &link.server;
    let ctx = link.session(limits(Duration::from_millis(300)));
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
