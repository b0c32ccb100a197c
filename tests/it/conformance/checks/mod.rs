//! The checks: each function takes one array in one format, and knows neither.

/// Verification, mistakes and damage.
pub(crate) mod health;
/// Predicates spare chunks.
pub(crate) mod predicates;
/// Groups, orders, limits.
pub(crate) mod queries;
/// Columns and rows.
pub(crate) mod rows;
/// Every way from a location to a table.
pub(crate) mod ways_in;
