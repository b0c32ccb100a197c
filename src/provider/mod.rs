//! The logical side of DataFusion: tables, schemas, and the ways to reach them from SQL and Rust.
//!
//! ```text
//!   SQL / Rust ──▶ session, factory, functions, schemas ──▶ GridTable ──scan──▶ exec::pruning ──▶ GridScanExec
//! ```

mod elsewhere;
mod factory;
mod grid_catalog;
mod holding;
mod lazy_schema;
mod location;
mod locations;
mod members;
mod named_arguments;
mod open_table;
mod session;
mod table;
mod table_function;
mod tet_chunks;
mod tet_facts;
mod tet_functions;
mod tet_schema;
mod tiledb_facts;
mod tiledb_functions;
mod tiledb_schema;
mod url_catalogs;
mod url_tables;
mod variables;

pub use factory::{TetTableFactory, TileDbTableFactory};
pub use grid_catalog::GridCatalog;
pub use location::{open, open_tiledb};
pub use locations::Locations;
pub use open_table::{open_table, open_tiledb_table};
pub use session::{GridfusionSessionContextExt, GridfusionSessionStateBuilderExt};
pub use table::GridTable;
pub use tet_functions::TetFunction;
pub use tet_schema::TetSchema;
pub use tiledb_functions::TileDbFunction;
pub use tiledb_schema::TileDbSchema;
pub use url_catalogs::UrlCatalogs;
pub use url_tables::GridUrlTables;
