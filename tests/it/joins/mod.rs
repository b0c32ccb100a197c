//! Joins of arrays with tables.

/// Random joins of arrays with arrays.
mod arrays;
/// Infinities and NaN above joins.
mod infinities;
/// Random aggregations above joins that look up rows.
pub(crate) mod join_reduce;
mod join_reduce_limits;
/// Random joins that look up rows by label.
mod lookups;
/// The plans of joins, and what they read.
mod plans;
/// Random joins, compared with the same joins over rows.
mod random;
/// Windows along a dimension.
mod running;
/// Columns of the same name on both sides.
mod same_names;
/// The first rows of partitions.
mod top;
/// Windows for many partitions and little memory.
mod window_memory;
/// The plans of windows and lookups.
mod window_plans;
/// Windows over partitions.
mod windows;
