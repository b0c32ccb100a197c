//! SQL and the ways into it, whatever the format.

/// Random queries against a table in memory.
mod differential;
/// Mistakes of users, with the whole message of each.
mod mistakes;
/// The table of options.
mod options;
/// Locations, formats and options of opened tables.
mod origin;
/// Rust calls, external tables, schemas.
mod register;
/// `tests/slt/*.slt`.
mod slt;
/// Quoted paths, URLs, catalogs.
pub(crate) mod ways_in;
