//! Aggregations that read chunks, not rows.

/// Which aggregations become reductions.
mod plans;
/// Random aggregations against those over rows.
pub(crate) mod random;
