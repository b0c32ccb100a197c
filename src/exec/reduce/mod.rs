//! Aggregations over dimensions as reductions: `GROUP BY` without rows and without hashing.
//!
//! ```text
//!   Final ◀─ Partial ◀─ (Projection, Filter) ◀─ GridScanExec
//!      │        │                                   │
//!      └────────┴─── Query: keys, aggregates, predicate over the scan's columns
//!                      │
//!            Keys: each key expression once over its axis' labels, numbered
//!                      │
//!            Tier: dense kernels │ DataFusion's accumulators │ (rows: left as it was)
//!                      │
//!            Slabs: cut so that no group is in two of them ── if so, the final stage goes too
//!                      │
//!               GridReduceExec
//! ```

mod account;
mod accumulate;
mod dense;
mod extremes;
mod keys;
mod node;
mod query;
mod rule;
mod slabs;
mod stream;
mod wanted;

pub use node::GridReduceExec;
pub use rule::GridReduceRule;
