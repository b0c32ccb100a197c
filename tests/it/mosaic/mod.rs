//! Many files or arrays as one table.

/// Patterns, lists, and files that are not opened.
mod many_files;
/// Random variables of random files.
mod random;
/// Random TileDB arrays.
mod tiledb;
