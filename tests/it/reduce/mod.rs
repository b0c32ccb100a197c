//! Reductions: aggregations that work on chunks instead of rows.

/// Chunks that are not stored.
mod absent;
/// Random conditions on another variable.
mod conditions;
/// Random numbers of different values.
mod distinct;
mod extremes;
/// Random functions of labels where a variable is least or greatest.
mod firsts;
/// Random aggregates of labels.
mod labels;
/// Random trends and conditions of a `CASE`.
mod pairs;
/// Which aggregations become reductions.
mod plans;
mod quantiles;
/// Random aggregations, compared with the same over rows.
pub(crate) mod random;
/// Random longest runs of a condition.
mod runs;
