//! The parts of the tests that benches use, too, under the path that these parts import one another by.

#[path = "../../tests/it/support/flat_tables.rs"]
mod flat_tables;
#[path = "../../tests/it/support/icechunk_repository.rs"]
pub(crate) mod icechunk_repository;
#[path = "../../tests/it/support/object_server/mod.rs"]
pub(crate) mod object_server;
#[path = "../../tests/it/support/sql.rs"]
mod sql;
#[path = "../../tests/it/support/tet_writer.rs"]
mod tet_writer;
#[path = "../../tests/it/support/tiledb_statistics.rs"]
pub(crate) mod tiledb_statistics;
#[path = "../../tests/it/support/tiledb_tiles.rs"]
mod tiledb_tiles;
#[path = "../../tests/it/support/tiledb_writer.rs"]
pub(crate) mod tiledb_writer;
#[path = "../../tests/it/support/zip_archive.rs"]
pub(crate) mod zip_archive;

pub(crate) use sql::{query, reducing, session};
pub(crate) use tet_writer::{
    F32, F64, I16, I32, Layout, TempTet, TestDataset, positions, tet_bytes,
};
