//! Aggregations over dimensions as reductions: `GROUP BY` without rows and without hashing.
//!
//! ```text
//!   Final ◀─ Partial ◀─ (Projection, Filter) ◀─ GridScanExec
//!      │        │                                   │
//!      └────────┴─── Query: keys, aggregates, predicate over the scan's columns
//!                      │
//!            Keys: each key expression once over its axis' labels, numbered
//!                      │
//!            ReduceStrategy: dense kernels │ DataFusion's accumulators │ (rows: plan unchanged)
//!                      │
//!            Partitions: cut, if possible, so that none share a group ── then the final stage goes too
//!                      │
//!               GridReduceExec
//! ```

mod account;
mod accumulate;
mod dense;
mod extremes;
mod group_pruning;
mod keys;
mod node;
mod partitions;
mod query;
mod reduction;
mod rule;
mod strategy;
mod stream;

pub use node::GridReduceExec;
pub use rule::GridReduceRule;
