//! The checks. Each function checks one array in one format, and works for all arrays and formats.

/// The tables of facts.
pub(crate) mod facts;
/// Verification, mistakes and damage.
pub(crate) mod health;
/// Pruning of chunks.
pub(crate) mod predicates;
/// Groups, orders, limits.
pub(crate) mod queries;
/// Columns and rows.
pub(crate) mod rows;
/// Plans that are sent to another session.
pub(crate) mod travel;
/// Every interface that opens a table.
pub(crate) mod ways_in;
