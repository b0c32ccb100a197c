//! Dropping the stream of a remote scan stops its requests, and gives its memory back.

use std::time::Duration;

use datafusion::execution::SendableRecordBatchStream;
use datafusion::prelude::SessionContext;
use futures::StreamExt;
use gridfusion::io::RemoteLimits;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};

use super::remote::Link;
use crate::support::object_server::ObjectServer;
use crate::support::{I32, Layout, TestDataset, nothing_reserved, tet_bytes};

/// The chunks of the file. Each takes a request.
const CHUNKS: usize = 64;
/// The bytes of a chunk.
const CHUNK: usize = 1 << 20;
/// Requests at a time.
const AT_ONCE: usize = 2;
/// The time until a reply. A whole scan takes `CHUNKS / AT_ONCE` times as long.
const LATENCY: Duration = Duration::from_millis(200);

fn file() -> Vec<u8> {
    let cells = (CHUNKS * CHUNK / 4) as u64;
    let dataset =
        TestDataset::new("v", I32, &[cells], &[CHUNK as u64 / 4], vec![7; CHUNKS * CHUNK]);
    tet_bytes(&[dataset], &Layout { history_version: Some(2), ..Layout::default() })
}

async fn session(link: &Link) -> SessionContext {
    let limits =
        RemoteLimits { requests: AT_ONCE, merge: CHUNK as u64, gap: 0, ..RemoteLimits::default() };
    let ctx = link.session(limits);
    ctx.register_array("t", "s3://bucket/v.tet", ArrayOptions::default()).await.unwrap();
    ctx
}

async fn stream(ctx: &SessionContext, sql: &str) -> SendableRecordBatchStream {
    let mut stream = ctx.sql(sql).await.unwrap().execute_stream().await.unwrap();
    assert!(stream.next().await.is_some_and(|batch| batch.is_ok()));
    stream
}

/// Waits until no request has arrived for some time. A scan that goes on sends its last one first.
///
/// Some requests may follow the drop: those on their way, and those that take a place between two cancellations.
async fn settled(link: &Link) {
    let mut before = usize::MAX;
    loop {
        let now = link.server.requests().len();
        if now == before {
            return;
        }
        before = now;
        tokio::time::sleep(3 * LATENCY).await;
    }
}

/// Drops a stream after its first batch. Returns the numbers of requests before, and of all.
async fn requests_of_dropped(link: &Link, sql: &str) -> (usize, usize) {
    let ctx = session(link).await;
    link.server.set_latency(LATENCY);
    let stream = stream(&ctx, sql).await;
    assert!(ctx.runtime_env().memory_pool.reserved() > 0);
    let before = link.server.requests().len();
    drop(stream);
    nothing_reserved(&ctx).await;
    settled(link).await;
    link.server.set_latency(Duration::ZERO);
    (before, link.server.take_requests().len())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_stream_makes_no_more_requests() {
    let link = Link::new(ObjectServer::start([("bucket/v.tet", file())]));
    for sql in ["SELECT value FROM t", "SELECT * FROM t WHERE value <> 3"] {
        let mut tries = 0;
        let (before, all) = loop {
            let (before, all) = requests_of_dropped(&link, sql).await;
            // Fetches begin side by side. On a busy machine, the first chunk may be the last to be requested.
            if before < CHUNKS / 2 {
                break (before, all);
            }
            tries += 1;
            assert!(tries < 10, "the first batch always comes after {before} of {CHUNKS} chunks");
        };
        assert!(all + 4 * AT_ONCE < CHUNKS, "{before} requests, then {all} of {CHUNKS}: {sql}");
    }
}

/// Requests of a dropped stream would hold their places for half a minute.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_stream_gives_its_places_to_others() {
    let link = Link::new(ObjectServer::start([("bucket/v.tet", file())]));
    let ctx = session(&link).await;
    link.server.set_latency(Duration::from_millis(40));
    let mut first = stream(&ctx, "SELECT value FROM t").await;
    // From now on, replies take longer than any test.
    link.server.set_latency(Duration::from_secs(3600));
    let rest = async { while first.next().await.is_some() {} };
    assert!(tokio::time::timeout(Duration::from_millis(200), rest).await.is_err());
    drop(first);
    nothing_reserved(&ctx).await;
    link.server.set_latency(Duration::ZERO);
    let second = stream(&ctx, "SELECT value FROM t LIMIT 10");
    tokio::time::timeout(Duration::from_secs(12), second).await.unwrap();
}
