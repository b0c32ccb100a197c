//! DataFusion's logical side: table, schema and catalog providers, and how SQL and Rust make them.
//!
//! ```text
//!   SQL / Rust ──▶ session, factory, functions, schemas ──▶ ArrayOpener ──▶ ArrayTable
//!                                                                    GridTable   ──scan──▶ GridScanExec
//!                                                                    SparseTable ──scan──▶ SparseScanExec
//! ```
//!
//! | files | contents |
//! |---|---|
//! | `session`, `session_state` | methods that add gridfusion to a session |
//! | `factory` | `CREATE EXTERNAL TABLE` |
//! | `table_functions`, `arguments`, `named_arguments`, `fact_provider` | `read_array(…)`, `array_info(…)` |
//! | `spatial` | `grid_coverage(…)`, `grid_points(…)` |
//! | `nearest_rule` | `nearest(dimension, …)` |
//! | `derived_extremes` | `max(value - 273.15)` and `max(abs(value))` |
//! | `inserts` | `INSERT INTO` |
//! | `dataframe` | a method of a `DataFrame` that writes an array |
//! | `declared_table`, `exact_cast` | tables of arrays that are yet to be made |
//! | `merges`, `merged_types` | `MERGE INTO` |
//! | `updates` | `UPDATE` |
//! | `url_catalogs`, `url_tables`, `shown_names` | quoted paths, and the names of their tables in plans |
//! | `sql_secrets`, `statement_editor` | SQL text without its secrets, and statements with changed parts |
//! | `grid_catalog`, `lazy_schema`, `array_schema` | folders as catalogs, files as schemas |
//! | `opener`, `store_maker` | from locations, options and stores to tables |
//! | `files` | the files of a table of many, which options adapt |
//! | `collection` | files that are described together |
//! | `reopen`, `reopen_known` | the same from the origin of a table, in another process |
//! | `panics` | panics as errors of a query |
//! | `array_table`, `table`, `sparse_table` | one array as a table |

mod arguments;
mod array_schema;
mod array_table;
mod collection;
mod dataframe;
mod declared_table;
mod derived_extremes;
mod exact_cast;
mod fact_provider;
mod factory;
mod files;
mod grid_catalog;
mod inserts;
mod lazy_schema;
mod merged_types;
mod merges;
mod named_arguments;
mod nearest_rule;
mod opener;
mod panics;
mod reopen;
#[cfg(feature = "codec")]
mod reopen_known;
mod session;
mod session_state;
mod shown_names;
mod sparse_table;
pub(crate) mod spatial;
mod sql_secrets;
mod statement_editor;
mod store_maker;
mod table;
mod table_functions;
mod updates;
mod url_catalogs;
mod url_tables;

pub use array_schema::ArraySchema;
#[cfg(feature = "codec")]
pub(crate) use array_table::AlignedTable;
pub use array_table::ArrayTable;
pub use dataframe::GridfusionDataFrameExt;
pub use factory::ArrayTableFactory;
pub use grid_catalog::GridCatalog;
pub use opener::ArrayOpener;
pub use panics::without_panics;
pub use session::GridfusionSessionContextExt;
pub use session_state::GridfusionSessionStateBuilderExt;
pub use shown_names::qualify_by_shown_names;
pub use sparse_table::SparseTable;
pub(crate) use spatial::SpatialFunction;
pub use sql_secrets::{is_secret_option, secrets_in_sql, without_secrets_in_sql};
pub use statement_editor::{StatementEditor, edit_expression, edit_statement};
pub use store_maker::{MakesStores, StoreMaker};
pub use table::GridTable;
pub(crate) use table_functions::ArrayFunction;
pub use url_catalogs::UrlCatalogs;
pub use url_tables::GridUrlTables;
