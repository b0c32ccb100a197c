//! Everything that can be said about how arrays are read, by name: in SQL `OPTIONS (…)`, in table
//! functions, with `SET gridfusion.…`, and in Rust.
//!
//! ```text
//!   names   OPTIONS: the one table of names, which parsers, messages, SHOW ALL and docs/options.md share
//!   slot    what a value may be, and where it is kept once it is set
//!   common  options of tables of every format, and what a session says for all of them
//!   tet, tiledb  the options of one format: the builders
//! ```
//!
//! What is not said is `None` here. What counts is what was said nearest to the table: an option of the
//! statement, the argument or the builder; else what the session was told with `SET`; else what is built in.

mod common;
mod names;
mod slot;
mod tet;
mod tiledb;

pub use common::{CommonOptions, TableDefaults};
pub use names::{OPTIONS, OptionInfo, Scope};
pub(crate) use slot::Slot;
pub use slot::{IoMode, ValueKind};
pub use tet::TetReadOptions;
pub use tiledb::TileDbReadOptions;
