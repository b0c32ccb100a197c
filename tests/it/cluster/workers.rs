//! Workers in this process, and sessions whose queries they run.

use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::SessionContext;
use gridfusion::GridfusionConfig;
use gridfusion_distributed::{Cluster, WorkerServer};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Workers that listen on the loopback interface; they end when this is dropped.
pub(crate) struct Workers {
    pub(crate) urls: Vec<String>,
    pub(crate) tasks: Vec<JoinHandle<Result<()>>>,
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Workers {
    /// Starts workers with the object stores and formats of a session.
    pub(crate) async fn start(count: usize, ctx: &SessionContext) -> Self {
        let config = ctx.copied_config();
        let config = config.options().extensions.get::<GridfusionConfig>().cloned();
        let config = config.unwrap_or_default();
        let worker =
            || WorkerServer::default().without_token().with_files().with_runtime(ctx.runtime_env());
        Self::of((0..count).map(|_| worker().with_config(config.clone())).collect()).await
    }

    /// Starts these workers.
    pub(crate) async fn of(servers: Vec<WorkerServer>) -> Self {
        let (mut urls, mut tasks) = (vec![], vec![]);
        for server in servers {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            urls.push(format!("http://{}", listener.local_addr().unwrap()));
            tasks.push(tokio::spawn(server.serve(listener, std::future::pending())));
        }
        Self { urls, tasks }
    }

    /// Returns the cluster of these workers, in which every scan is divided.
    pub(crate) fn cluster(&self) -> Cluster {
        Cluster::new(&self.urls).unwrap().with_bytes_per_task(1)
    }

    /// Returns a session with the tables and settings of `ctx`, whose queries run on the workers.
    pub(crate) fn coordinate(&self, ctx: &SessionContext) -> SessionContext {
        let state = SessionStateBuilder::new_from_existing(ctx.state());
        SessionContext::new_with_state(self.cluster().coordinate(state).unwrap().build())
    }
}

/// Runs a query on a number of workers, which have the object stores of `ctx`.
pub(crate) async fn query_on_workers(
    ctx: &SessionContext,
    workers: usize,
    sql: &str,
) -> Result<Vec<RecordBatch>> {
    let workers = Workers::start(workers, ctx).await;
    let ctx = workers.coordinate(ctx);
    let plan = plan(&ctx, sql).await?;
    collect(plan, ctx.task_ctx()).await
}

/// The plan of a query.
pub(crate) async fn plan(ctx: &SessionContext, sql: &str) -> Result<Arc<dyn ExecutionPlan>> {
    ctx.sql(sql).await?.create_physical_plan().await
}
