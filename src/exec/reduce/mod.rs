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
mod call;
mod condition;
mod contract;
mod dense;
mod dense_stream;
mod extremes;
mod factors;
mod group_pruning;
mod keys;
mod linear;
mod node;
mod number;
mod partitions;
mod query;
mod reduction;
mod refinement;
mod rule;
mod strategy;
mod stream;

pub(super) use group_pruning::elements;
pub use node::GridReduceExec;
pub(super) use number::is_never_nan;
pub(super) use rule::{reduce_arrays, reduced_aggregation};
