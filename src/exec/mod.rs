//! The physical side of DataFusion: operators over arrays.
//!
//! [`GridScanExec`] streams the chunks of a [`crate::plan::ScanPlan`], [`GridReduceExec`] aggregates
//! them. Everything about them is decided when they are made; `execute` starts no I/O, the first poll
//! of a stream does.
//!
//! ```text
//!   scan ─▶ stream ──┐                        pruning: which chunks a query can do without
//!                    ├─▶ blocks ─▶ chunks ─▶       ├─ while it is planned  (provider asks)
//!   reduce ──────────┘                             └─ while it runs        (chunks asks)
//! ```

mod best_first;
mod blocks;
mod chunks;
mod columns;
mod compact;
mod config;
mod display;
mod error;
mod leaf;
mod metrics;
mod order;
pub(crate) mod pruning;
mod reduce;
mod scan;
mod stats;
mod stream;
mod yield_budget;

pub use best_first::BestFirstRule;
pub use config::GridfusionConfig;
pub use reduce::{GridReduceExec, GridReduceRule};
pub use scan::GridScanExec;
