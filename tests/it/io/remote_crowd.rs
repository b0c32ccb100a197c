//! Many queries of one session at a time: all get the right rows, within the limit of requests, and none waits for ever.

use std::path::Path;
use std::time::Duration;

use datafusion::prelude::SessionContext;
use gridfusion::io::RemoteLimits;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use tokio::runtime::{Builder, Runtime};

use super::remote::{Link, files, large};
use crate::support::object_server::ObjectServer;
use crate::support::{nothing_reserved, rows_from, shipped};

const QUERIES: usize = 64;
const AT_ONCE: usize = 16;
/// A crowd that takes longer is in a deadlock.
const DEADLOCK: Duration = Duration::from_secs(120);

/// Returns the query with this number, of one of the tables.
fn sql(number: usize) -> String {
    match number % 4 {
        0 => format!("SELECT sum(value), count(*) FROM large WHERE dim_0 >= {number}"),
        1 => format!("SELECT * FROM large WHERE value % 400 = {number} ORDER BY 1 DESC LIMIT 5"),
        2 => format!("SELECT r, max(a), {number} FROM dense GROUP BY r ORDER BY r"),
        _ => format!("SELECT * FROM ships ORDER BY 1, 2 LIMIT {number}"),
    }
}

/// Returns a new session, with a table of each kind.
async fn session(link: &Link, limits: RemoteLimits) -> SessionContext {
    let ctx = link.session(limits);
    for (name, path) in [("large", "large.tet"), ("dense", "overlap"), ("ships", "ships")] {
        let location = format!("s3://bucket/{path}");
        ctx.register_array(name, &location, ArrayOptions::default()).await.unwrap();
    }
    ctx
}

fn crowd(runtime: &Runtime) {
    let mut objects = files(Path::new(&shipped("examples/data/ships")), "bucket/ships");
    objects.extend(files(Path::new(&shipped("tests/data/tiledb/overlap")), "bucket/overlap"));
    objects.push(("bucket/large.tet".into(), large()));
    let link = Link::new(ObjectServer::start(objects));
    // Small requests make many of them.
    let limits = RemoteLimits::default().with_merge(20_000).with_gap(0);
    let run = async {
        let alone = session(&link, limits).await;
        let mut expected = vec![];
        for number in 0..QUERIES {
            expected.push(rows_from(&alone, &sql(number)).await);
        }
        let ctx = session(&link, limits).await;
        ctx.sql(&format!("SET gridfusion.remote_requests = {AT_ONCE}")).await.unwrap();
        link.server.set_latency(Duration::from_millis(5));
        link.server.reset_most_in_flight();
        let tasks: Vec<_> = (0..QUERIES)
            .map(|number| {
                let ctx = ctx.clone();
                tokio::spawn(async move { rows_from(&ctx, &sql(number)).await })
            })
            .collect();
        for (number, task) in tasks.into_iter().enumerate() {
            assert_eq!(task.await.unwrap(), expected[number], "{}", sql(number));
        }
        nothing_reserved(&ctx).await;
    };
    let waits = async { tokio::time::timeout(DEADLOCK, run).await };
    assert!(runtime.block_on(waits).is_ok(), "a deadlock");
    assert_eq!(link.server.most_in_flight(), AT_ONCE);
}

#[test]
fn many_queries_on_one_thread() {
    crowd(&Builder::new_current_thread().enable_all().build().unwrap());
}

#[test]
fn many_queries_on_several_threads() {
    crowd(&Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap());
}
