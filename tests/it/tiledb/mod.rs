//! TileDB arrays, groups and folders.

/// Attributes that are dropped, come back, change.
mod evolution;
/// Groups and folders as tables.
mod groups;
/// Damaged and lying arrays.
mod hostile;
/// Arrays that libtiledb wrote, cell by cell.
pub(crate) mod libtiledb;
/// Several arrays as one table.
mod many;
/// Random queries.
mod queries;
/// Random arrays and queries against a naive model.
pub(crate) mod random;
/// Every door, and the same answers as from `.tet`.
mod sql;
/// Times that are none.
mod times;
