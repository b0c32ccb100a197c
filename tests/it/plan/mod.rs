//! What plans show, which order they promise, and what they leave unread.

/// Filters that become known while a query runs.
pub(crate) mod dynamic;
/// `EXPLAIN` and `EXPLAIN ANALYZE`.
mod explain;
/// The declared order of rows.
mod order;
/// Random arrays and queries, with what prunes and without.
mod pruning;
/// The predicates of such queries.
mod pruning_predicates;
/// Such queries.
mod pruning_queries;
