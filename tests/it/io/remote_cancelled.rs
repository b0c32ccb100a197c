//! Dropping the stream of a remote scan stops its requests, and gives its memory back.

use std::time::Duration;

use datafusion::prelude::SessionContext;
use futures::StreamExt;
use gridfusion::io::RemoteLimits;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use tokio::task::JoinHandle;

use super::remote::{Link, small};
use crate::support::object_server::{Fault, ObjectServer, On};
use crate::support::waiting::within_hang;
use crate::support::{I32, Layout, TestDataset, cell, nothing_reserved, rows_from, tet_bytes};

/// The chunks of the file. Each takes a request.
const CHUNKS: usize = 64;
/// The bytes of a chunk.
const CHUNK: usize = 1 << 20;
/// Requests at a time.
const AT_ONCE: usize = 2;
/// Requests that are answered before the link holds all replies back.
const ANSWERED: usize = 8;

fn file() -> Vec<u8> {
    let cells = (CHUNKS * CHUNK / 4) as u64;
    let dataset =
        TestDataset::new("value", I32, &[cells], &[CHUNK as u64 / 4], vec![7; CHUNKS * CHUNK]);
    tet_bytes(&[dataset], &Layout { history_version: Some(2), ..Layout::default() })
}

async fn session(link: &Link) -> SessionContext {
    let limits = RemoteLimits::default()
        .with_requests(AT_ONCE)
        .with_merge(CHUNK as u64)
        .with_gap(0)
        .with_timeout(Duration::from_secs(3600));
    let ctx = link.session(limits);
    ctx.register_array("t", "s3://bucket/v.tet", ArrayOptions::default()).await.unwrap();
    ctx
}

/// Reads the rows of a query in a task. Dropping the task's work drops the stream.
async fn reading(ctx: &SessionContext, sql: &str) -> JoinHandle<()> {
    let mut stream = ctx.sql(sql).await.unwrap().execute_stream().await.unwrap();
    tokio::spawn(async move { while stream.next().await.is_some_and(|batch| batch.is_ok()) {} })
}

/// Drops a stream while its requests take all places.
async fn dropped(ctx: &SessionContext, reading: JoinHandle<()>) {
    assert!(ctx.runtime_env().memory_pool.reserved() > 0);
    reading.abort();
    assert!(reading.await.is_err_and(|ended| ended.is_cancelled()));
    nothing_reserved(ctx).await;
}

/// Some requests may follow the drop: those on their way, and those that take a place between two cancellations.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_stream_makes_no_more_requests() {
    let objects = [("bucket/v.tet", file()), ("bucket/other.tet", small())];
    let link = Link::new(ObjectServer::start(objects));
    for sql in ["SELECT value FROM t", "SELECT * FROM t WHERE value <> 3"] {
        let ctx = session(&link).await;
        link.server.take_requests();
        link.server.fault(On::from(ANSWERED + 1), Fault::Hold);
        let reading = reading(&ctx, sql).await;
        link.server.wait_for_requests(ANSWERED + AT_ONCE);
        dropped(&ctx, reading).await;
        // A scan that goes on sends its requests now. The next query takes its place behind them.
        link.server.release();
        cell(&ctx, "SELECT sum(value) FROM read_tet('s3://bucket/other.tet', dataset => 't2m')")
            .await;
        let requests = link.server.take_requests();
        let all = requests.iter().filter(|request| request.path.ends_with("v.tet")).count();
        assert!(ANSWERED < all && all + 4 * AT_ONCE < CHUNKS, "{all} of {CHUNKS}: {sql}");
    }
}

/// Requests of a dropped stream would hold their places until they fail, and here they never do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_stream_gives_its_places_to_others() {
    let link = Link::without_timeout(ObjectServer::start([("bucket/v.tet", file())]));
    let ctx = session(&link).await;
    link.server.take_requests();
    link.server.fault(On::from(ANSWERED + 1), Fault::NeverAnswer);
    let first = reading(&ctx, "SELECT value FROM t").await;
    link.server.wait_for_requests(ANSWERED + AT_ONCE);
    dropped(&ctx, first).await;
    link.server.clear_faults();
    let second = rows_from(&ctx, "SELECT value FROM t LIMIT 10");
    assert_eq!(within_hang("the second query", second).await.len(), 10);
}
