//! Joins of arrays with tables.

/// Random joins of arrays with arrays.
mod arrays;
/// The plans of joins, and what they read.
mod plans;
/// Random joins, compared with the same joins over rows.
mod random;
/// Windows along a dimension.
mod running;
/// Windows over partitions.
mod windows;
