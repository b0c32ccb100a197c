//! Plans: their text, the order that they declare, and the chunks that they skip.

/// Coordinates of fewer dimensions than the variables.
mod coordinates;
/// Dynamic filters.
pub(crate) mod dynamic;
/// `EXPLAIN` and `EXPLAIN ANALYZE`.
mod explain;
/// `OFFSET`.
mod offset;
/// The contract of all operators.
mod operators;
/// The declared order of rows.
mod order;
/// Random arrays and queries, with pruning and without.
mod pruning;
/// Random predicates of such queries.
mod pruning_predicates;
/// Random queries for `pruning`.
mod pruning_queries;
