//! Many files or arrays as one table.

/// Patterns, lists, errors, and skipped files.
mod adapted;
mod coordinates;
/// Groups of one file that a pattern selects.
mod groups;
mod many_files;
/// Random variables of random files.
pub(crate) mod random;
/// Random TileDB arrays.
mod tiledb;
