//! Workers that do not answer, cannot be reached, or see other files.

use std::time::Duration;

use datafusion::error::DataFusionError;
use datafusion::prelude::SessionContext;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use gridfusion_distributed::{Cluster, Token, WorkerServer, is_worker_failure};
use tokio::net::TcpListener;

use super::workers::{Workers, plan};
use crate::codec::shapes::tables;
use crate::support::waiting::within_hang;
use crate::support::{query, reducing, rows_of, shipped};

const SQL: &str = "SELECT station, avg(value) FROM temperature GROUP BY station ORDER BY station";

/// Runs the query, which must fail instead of waiting for ever, and returns the error.
async fn failure(ctx: &SessionContext) -> DataFusionError {
    let answer = within_hang("a worker does not do its part", query(ctx, SQL)).await;
    answer.expect_err("a worker does not do its part")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_accepts_and_stays_silent() {
    let ctx = tables().await;
    let mut workers = Workers::start(1, &ctx).await;
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    workers.urls.push(url.clone());
    let coordinator = workers.coordinate(&ctx);
    let error = failure(&coordinator).await;
    assert!(is_worker_failure(&error) && error.to_string().contains(&url), "{error}");
    // The next query leaves the worker out.
    let expected = query(&ctx, SQL).await.unwrap();
    assert_eq!(rows_of(&query(&coordinator, SQL).await.unwrap()), rows_of(&expected));
}

#[tokio::test]
async fn a_worker_that_is_not_there() {
    let ctx = tables().await;
    let mut workers = Workers::start(2, &ctx).await;
    let url = "http://127.0.0.1:9".to_owned();
    workers.urls.push(url.clone());
    let coordinator = workers.coordinate(&ctx);
    let error = failure(&coordinator).await;
    assert!(is_worker_failure(&error) && error.to_string().contains(&url), "{error}");
    assert!(error.to_string().contains("cannot be reached"), "{error}");
    let expected = query(&ctx, SQL).await.unwrap();
    assert_eq!(rows_of(&query(&coordinator, SQL).await.unwrap()), rows_of(&expected));
}

#[tokio::test]
async fn a_worker_with_another_token() {
    let ctx = tables().await;
    let with = |text: &str| WorkerServer::default().with_token(Token::new(text).unwrap());
    let workers = Workers::of(vec![with("one"), with("other")]).await;
    let session = |cluster: Cluster| {
        let state = datafusion::execution::SessionStateBuilder::new_from_existing(ctx.state());
        SessionContext::new_with_state(cluster.coordinate(state).unwrap().build())
    };
    let coordinator = session(workers.cluster().with_token(Token::new("one").unwrap()));
    let error = failure(&coordinator).await;
    assert!(error.to_string().contains(&workers.urls[1]), "{error}");
    assert!(error.to_string().contains("refused the token"), "{error}");
    assert!(!is_worker_failure(&error), "another try would not help");
    // The next query does not run without the worker: the mistake must be mended.
    let error = failure(&coordinator).await;
    assert!(error.to_string().contains(&workers.urls[1]), "{error}");
    let error = failure(&session(workers.cluster())).await;
    assert!(error.to_string().contains("refused the token"), "{error}");
}

/// A worker opens the file itself, and compares what it finds with what was planned.
#[tokio::test]
async fn a_worker_that_sees_another_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stations.tet");
    std::fs::copy(shipped("examples/data/stations.tet"), &path).unwrap();
    let ctx = reducing(2, 8192);
    let options = ArrayOptions::default().with_dataset("temperature");
    ctx.register_array("temperature", path.to_str().unwrap(), options).await.unwrap();
    let workers = Workers::start(2, &ctx).await;
    let coordinator = workers.coordinate(&ctx);
    let planned = plan(&coordinator, SQL).await.unwrap();
    let bytes = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, bytes).unwrap();
    let changed = std::time::SystemTime::now() + Duration::from_secs(100);
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(changed).unwrap();
    let error = datafusion::physical_plan::collect(planned, coordinator.task_ctx()).await;
    let message = error.expect_err("the file has changed").to_string();
    assert!(message.contains("the object has changed"), "{message}");
    assert!(message.contains("(on worker http://127.0.0.1:"), "{message}");
}

/// Errors of a query keep their texts, with the name of a worker.
#[tokio::test]
async fn errors_of_queries_name_the_worker() {
    let ctx = tables().await;
    let workers = Workers::start(2, &ctx).await;
    let coordinator = workers.coordinate(&ctx);
    let sql =
        "SELECT station, sum(100 / (CAST(value AS bigint) * 0)) FROM temperature GROUP BY station";
    let [here, there] = [query(&ctx, sql).await, query(&coordinator, sql).await];
    let [here, there] = [here, there].map(|it| it.expect_err("a division by zero").to_string());
    assert!(here.contains("Divide by zero") && there.contains("Divide by zero"), "{there}");
    assert!(there.contains("on worker http://127.0.0.1:"), "{there}");
}
