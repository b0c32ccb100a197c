//! Runs gridfusion's queries in several processes: a coordinator plans a query, and workers read and aggregate the chunks.
//!
//! ```text
//!   coordinator                  worker 1                   worker 2
//!   SQL ─▶ plan ─▶ stages
//!            │ gRPC     ┌──▶ GridReduceExec: chunks 0–31
//!            ├──────────┤        │                    ┌──▶ GridReduceExec: chunks 32–63
//!            └──────────┼────────┼────────────────────┘         │
//!   final stage ◀───────┴────────┴── states or groups ──────────┘
//! ```
//!
//! [datafusion-distributed] cuts the plan into stages and moves rows between processes. This crate tells it how to divide
//! scans, reductions and joins of gridfusion, which worker reads which chunks, and how processes trust each other. Both sides take
//! one call: [`Cluster::coordinate`] adds a cluster to the session of a coordinator, and [`WorkerServer::serve`] is a worker.
//!
//! ```
//! use datafusion::execution::SessionStateBuilder;
//! use datafusion::prelude::{SessionConfig, SessionContext};
//! use gridfusion::{ArrayOptions, GridfusionSessionContextExt, GridfusionSessionStateBuilderExt};
//! use gridfusion_distributed::{Cluster, WorkerServer};
//! use tokio::net::TcpListener;
//!
//! # #[tokio::main]
//! # async fn main() -> datafusion::error::Result<()> {
//! # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))?;
//! // Two workers, each usually a process on a machine of its own:
//! let mut urls = vec![];
//! for _ in 0..2 {
//!     let listener = TcpListener::bind("127.0.0.1:0").await?;
//!     urls.push(format!("http://{}", listener.local_addr()?));
//!     // Only programs of this machine can connect. Other workers need a token.
//!     let worker = WorkerServer::default().without_token();
//!     tokio::spawn(worker.serve(listener, std::future::pending()));
//! }
//!
//! // The coordinator. Small queries stay here, so that this example needs tasks of one byte.
//! let cluster = Cluster::new(&urls)?.with_bytes_per_task(1);
//! let state = SessionStateBuilder::new()
//!     .with_default_features()
//!     .with_config(SessionConfig::new().with_target_partitions(2))
//!     .with_gridfusion();
//! let ctx = SessionContext::new_with_state(cluster.coordinate(state)?.build());
//! let options = ArrayOptions::default().with_dataset("temperature");
//! ctx.register_array("t", "examples/data/stations.tet", options).await?;
//! let rows = ctx.sql("SELECT station, avg(value) FROM t GROUP BY station").await?.collect().await?;
//! assert_eq!(rows.iter().map(|batch| batch.num_rows()).sum::<usize>(), 6);
//! # Ok(())
//! # }
//! ```
//!
//! [datafusion-distributed]: https://datafusion-contrib.github.io/datafusion-distributed

mod allowed;
mod channel;
mod cluster;
mod connections;
mod counters;
mod failure;
mod leaves;
mod metrics;
mod order;
mod planner;
mod progress;
mod queries;
mod query_number;
mod routing;
mod security;
mod settings;
mod worker;
mod workers;

pub use cluster::Cluster;
pub use failure::is_worker_failure;
pub use metrics::with_worker_metrics;
pub use progress::{WorkerCounter, WorkerProgress};
pub use security::{Identity, Token};
pub use worker::WorkerServer;
