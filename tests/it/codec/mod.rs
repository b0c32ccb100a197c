//! Plans that travel: as bytes to another session, which opens the tables itself.

/// Tables of many files.
mod mosaics;
/// Bytes that must be refused, and what they must not hold.
mod refused;
/// Sending plans, and comparing both ends.
pub(crate) mod sent;
/// Dynamic filters, limits and orders in the other session.
pub(crate) mod shapes;
/// Leaves whose partitions an engine chooses.
mod work_lists;
