//! Plans: the text that they show, the order that they promise, the chunks that they leave unread.

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
