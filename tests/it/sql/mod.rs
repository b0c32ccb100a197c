//! SQL and the ways into it, whatever the format.

/// Random queries against a table in memory.
mod differential;
/// What people get wrong, and the whole message.
mod mistakes;
/// The table of options.
mod options;
/// Rust calls, external tables, schemas.
mod register;
/// `tests/slt/*.slt`.
mod slt;
/// Quoted paths, URLs, catalogs.
pub(crate) mod ways_in;
