//! TileDB arrays, groups and folders.

/// Attributes that are dropped, added again, changed.
mod evolution;
/// Groups and folders as tables.
mod groups;
/// Damaged and hostile arrays.
mod hostile;
/// Arrays that libtiledb wrote, cell by cell.
pub(crate) mod libtiledb;
/// Several arrays as one table.
mod many;
/// Folders in memory, whose files tests damage.
pub(crate) mod memory_folder;
/// Legal and rare: extents that wrap, the widest domain, bad enumerations, old groups.
mod odd;
/// Random queries.
mod queries;
/// Random arrays and queries against a naive model.
pub(crate) mod random;
/// Plans and metrics of sparse arrays.
mod sparse;
/// Damaged and hostile sparse arrays.
mod sparse_hostile;
/// Random sparse arrays that libtiledb writes, and the rows that it reads from them.
mod sparse_libtiledb;
/// Merges of one to nine fragments, against a naive model.
mod sparse_merges;
/// Random queries.over random sparse arrays.
mod sparse_queries;
/// Random sparse arrays at all times, against a naive model.
mod sparse_random;
/// Every interface, and the same answers as from `.tet`.
mod sql;
/// NaT, and dates beyond Arrow's types.
mod times;
