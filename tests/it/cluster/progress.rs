//! Counters of workers while a query runs.

use std::sync::Arc;

use datafusion::physical_plan::collect;
use gridfusion::io::RemoteLimits;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use gridfusion_distributed::{WorkerCounter, WorkerProgress};

use super::workers::{Workers, plan};
use crate::io::remote::{Link, large};
use crate::support::object_server::{Fault, ObjectServer};
use crate::support::rows_of;
use crate::support::waiting::until;

/// The server holds back a chunk. Others are counted before the query ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chunks_of_all_workers_are_counted() {
    let link = Link::new(ObjectServer::start([("bucket/large.tet", large())]));
    let one_by_one = RemoteLimits::default().with_requests(1).with_merge(40_000).with_gap(0);
    let ctx = link.session(one_by_one);
    let location = "s3://bucket/large.tet";
    ctx.register_array("t", location, ArrayOptions::default()).await.unwrap();
    let workers = Workers::start(2, &ctx).await;
    let coordinator = workers.coordinate(&ctx);
    let plan = plan(&coordinator, "SELECT max(value) FROM t").await.unwrap();
    // Workers open the file again, with a few requests. There are 16 more for its chunks.
    link.server.fault(9, Fault::Hold);
    let context = coordinator.task_ctx();
    let progress = WorkerProgress::watch(&plan, &context);
    let query = tokio::spawn(collect(Arc::clone(&plan), context));
    let mut seen = vec![];
    let is_under_way = || {
        for counter in progress.counters() {
            match counter.name.as_str() {
                "chunks_read" => seen.push(counter.count),
                "chunks_pruned_selection" => {
                    // Only one share reports them, when it has begun.
                    let WorkerCounter { count, matched, .. } = counter;
                    assert!(count == 0 && [0, 16].contains(&matched), "{count}, {matched}");
                }
                _ => {}
            }
        }
        seen.iter().any(|read| (1..16).contains(read))
    };
    until("no chunk is counted before the query ends", is_under_way).await;
    assert!(!query.is_finished());
    link.server.release();
    assert_eq!(rows_of(&query.await.unwrap().unwrap()), [["159999"]]);
    assert!(seen.is_sorted(), "{seen:?}");
}
