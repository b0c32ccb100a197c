//! The writer of dense TileDB arrays of the tests, under the path that its parts import it by.

pub(crate) use crate::common::support::positions;

#[path = "../../tests/it/support/tiledb_statistics.rs"]
pub(crate) mod tiledb_statistics;
#[path = "../../tests/it/support/tiledb_tiles.rs"]
mod tiledb_tiles;
#[path = "../../tests/it/support/tiledb_writer.rs"]
pub(crate) mod tiledb_writer;
