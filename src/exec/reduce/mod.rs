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
//!
//! There are three tiers. Tests compare each with the next:
//!
//! 1. *Dense kernels*: `count`, `sum`, `avg`, `min`, `max` and variances of a variable, at most through a widening cast.
//!    Functions of pairs, such as `regr_slope`, of a variable and a function of one dimension.
//!    Also `sum`, `avg`, `count` and `weighted_avg` of sums of products of a variable and functions of single dimensions.
//!    Also `first_value` and `last_value` of functions of labels in the order of a variable.
//!    Also aggregates of functions of one dimension, such as `max(time)`, which read no cells.
//!    Predicates, `FILTER` and the condition of a `CASE` are an interval per variable and conditions on single dimensions.
//! 2. *Accumulators*: every other aggregate, argument, `FILTER` and predicate. DataFusion's own accumulators get batches
//!    and computed group numbers. Medians and percentiles of floats, `count(DISTINCT …)`, `mode` and `longest_run` have
//!    accumulators of this crate.
//! 3. *Rows*: keys over values or over several dimensions, grouping sets, aggregates that depend on the order of rows,
//!    volatile functions, a limit below the aggregation. Also tables of groups that are too large, axes of more than 2²⁴
//!    selected labels, and keys that fail on a label.
//!
//! The rule removes projections, filters and round-robin repartitioning below the aggregation, and rewrites keys,
//! arguments and predicate over the scan's columns.
//!
//! A chunk whose statistics exclude all values is not read. If a whole chunk is in one group, its statistics answer
//! counts and extremes, and sums if they are stored.

mod account;
mod accumulate;
mod call;
mod case_filter;
mod condition;
mod contract;
mod dense;
mod dense_stream;
mod distinct_counts;
mod extremes;
mod factors;
mod first_cell;
mod gathered;
mod group_blocks;
mod group_pruning;
mod keys;
mod label_call;
mod linear;
mod members;
mod node;
mod number;
mod pair;
mod parsed_call;
mod partition_blocks;
mod partitions;
mod plane;
mod query;
mod reason;
mod reduction;
mod refinement;
mod rule;
mod strategy;
mod stream;

pub(super) use account::Account;
pub(super) use accumulate::{AccumulatePlan, Accumulators};
pub(super) use call::Call;
pub(super) use group_pruning::elements;
pub use node::GridReduceExec;
pub(super) use number::{is_never_nan, number_of};
pub(super) use partition_blocks::is_exhausted;
pub(super) use partitions::{
    Cuts, ReducePartition, as_planned, shares_apart, without_shared_groups,
    without_shared_groups_or_empty,
};
pub(super) use query::Aggregate;
pub(super) use reduction::Output;
pub(super) use rule::{reduce_arrays, reduced_aggregation};
