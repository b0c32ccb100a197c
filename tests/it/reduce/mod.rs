//! Reductions: aggregations that work on chunks instead of rows.

/// Which aggregations become reductions.
mod plans;
/// Random aggregations, compared with the same over rows.
pub(crate) mod random;
