//! SQL and the interfaces that open tables, for all formats.

/// Text that is not UTF-8.
mod array_facts;
mod character_sets;
/// Random queries, compared with a table in memory.
mod differential;
/// Functions of a session, and ours in the places of DataFusion's.
mod functions;
/// `IN` and `NOT IN` over subqueries with NULLs.
mod in_subqueries;
/// Messages about mistakes of users.
mod mistakes;
/// The sign of NaN.
mod nan;
/// The label that is nearest to a value.
mod nearest;
/// The table of options.
mod options;
/// Locations, formats and options of opened tables.
mod origin;
/// Rust calls, external tables, schemas.
mod register;
/// `tests/slt`.
mod slt;
/// Faults of DataFusion alone, which `src/exec/mended/UPSTREAM.md` shows.
mod upstream;
/// Quoted paths, URLs, catalogs.
pub(crate) mod ways_in;
/// Files that programs write.
mod written;
/// Times without seconds, minutes or days.
mod written_times;
