//! The logical side of DataFusion: tables, schemas, and the ways to reach them from SQL and Rust.
//!
//! ```text
//!   SQL / Rust ──▶ session, factory, schema ──▶ GridTable ──scan──▶ pushdown, prune ──▶ GridScanExec
//! ```

mod factory;
mod location;
mod options;
mod prune;
mod pushdown;
mod schema;
mod session;
mod table;

pub use factory::TetTableFactory;
pub use location::open;
pub use options::{IoMode, TetReadOptions};
pub use schema::TetSchema;
pub use session::{GridfusionSessionContextExt, GridfusionSessionStateBuilderExt};
pub use table::GridTable;
