//! Helpers of all tests: writers that use no code of the library, naive models, random arrays.

/// Random arrays, as files and as rows.
pub(crate) mod cases;
/// The columns of a table, for random queries.
pub(crate) mod columns;
/// A writer of tables in FlatBuffers.
mod flat_tables;
/// A writer of Icechunk repositories.
pub(crate) mod icechunk_repository;
/// Objects over HTTP, with slow links and faults.
pub(crate) mod object_server;
/// Arrays that the library opens.
pub(crate) mod open;
/// The schemas and delete conditions of random sparse TileDB arrays.
pub(crate) mod sparse_cases;
/// The files of a fragment of a sparse TileDB array.
mod sparse_fragment;
/// Random sparse TileDB arrays: writes, deletions, consolidation, changes of schema.
pub(crate) mod sparse_history;
/// A naive model of a table over a sparse TileDB array.
pub(crate) mod sparse_model;
/// Sparse TileDB arrays, byte by byte.
pub(crate) mod sparse_writer;
/// Sessions, queries, rows as text.
mod sql;
/// `.tet` files, byte by byte.
mod tet_writer;
/// Random TileDB arrays.
pub(crate) mod tiledb_cases;
/// A naive model of a table over a TileDB array.
pub(crate) mod tiledb_model;
/// Tile statistics, computed as TileDB does.
pub(crate) mod tiledb_statistics;
/// The tiles and the metadata of a fragment of a TileDB array.
mod tiledb_tiles;
/// Dense TileDB arrays, byte by byte.
pub(crate) mod tiledb_writer;
/// Waits that end with a signal or a condition.
pub(crate) mod waiting;
/// A writer of zip archives.
pub(crate) mod zip_archive;
/// Random `.tet` arrays with zone maps.
pub(crate) mod zoned;

pub(crate) use sql::{
    cell, limited, query, reducing, rows_from, rows_of, session, shipped, sorted_rows_from,
    variable,
};
pub(crate) use tet_writer::{
    F32, F64, I16, I32, I64, Layout, TempTet, TestDataset, positions, tet_bytes, width,
};
pub(crate) use waiting::nothing_reserved;
