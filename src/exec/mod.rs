//! The physical side of DataFusion: operators over arrays.
//!
//! [`GridScanExec`] streams the chunks of a [`crate::scan::ScanPlan`]. Everything about it is
//! decided when it is made; `execute` starts no I/O, the first poll of its stream does.

mod chunks;
mod config;
mod display;
mod error;
mod metrics;
mod reduce;
mod scan;
mod stats;
mod stream;

pub use config::GridfusionConfig;
pub use error::to_datafusion;
pub use reduce::{GridReduceExec, GridReduceRule};
pub use scan::GridScanExec;
