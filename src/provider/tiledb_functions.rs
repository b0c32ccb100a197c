//! Table functions over TileDB arrays: the array as a table, and what is known of it.

use std::sync::Arc;

use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::error::Result;

use super::members::open_member;
use super::open_table::defaults;
use super::table_function::{Arguments, table_of, wait};
use super::{open_tiledb_table, tiledb_facts};
use crate::exec::to_datafusion;
use crate::options::TileDbReadOptions;

/// A table function over TileDB arrays. The first argument is the path or URL of an array, or of a group or
/// folder of arrays, and an array of it may come second. Options of [`TileDbReadOptions`] follow as named
/// arguments, or as names and values in turn.
///
/// | function | table |
/// |---|---|
/// | `read_tiledb(path)` | the array or arrays, as `CREATE EXTERNAL TABLE` would make it; takes a list of paths too |
/// | `tiledb_info(path)` | its properties, dimensions, attributes and dimension labels |
/// | `tiledb_fragments(path)` | the fragments that are visible, oldest first |
/// | `tiledb_metadata(path)` | the array's own keys and values |
///
/// ```sql
/// SELECT * FROM read_tiledb('arrays/overlap', timestamp => '2024-03-01');
/// SELECT * FROM read_tiledb('arrays', 'overlap');
/// SELECT name, value FROM tiledb_info('arrays/overlap') WHERE property = 'domain';
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TileDbFunction {
    /// `read_tiledb`.
    Read,
    /// `tiledb_info`.
    Info,
    /// `tiledb_fragments`.
    Fragments,
    /// `tiledb_metadata`.
    Metadata,
}

impl TileDbFunction {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Read, Self::Info, Self::Fragments, Self::Metadata];

    /// What SQL calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read_tiledb",
            Self::Info => "tiledb_info",
            Self::Fragments => "tiledb_fragments",
            Self::Metadata => "tiledb_metadata",
        }
    }
}

impl TableFunctionImpl for TileDbFunction {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let arguments = Arguments::new(self.name(), args.exprs(), true)?;
        let mut options = TileDbReadOptions::from_sql(&arguments.options).map_err(to_datafusion)?;
        options.dataset = arguments.dataset(self.name(), options.dataset)?;
        let options = options.with_defaults(&defaults(args.session()));
        let runtime = args.session().runtime_env();
        let opened = async || {
            let location = arguments.location(self.name())?;
            open_member(location, &options, runtime).await.map_err(to_datafusion)
        };
        wait(async {
            let facts = match self {
                Self::Read => {
                    let table = open_tiledb_table(arguments.locations.clone(), &options, runtime);
                    let table = table.await.map_err(to_datafusion)?;
                    return Ok(Arc::new(table) as Arc<dyn TableProvider>);
                }
                Self::Info => tiledb_facts::info(&opened().await?)?,
                Self::Fragments => tiledb_facts::fragments(&opened().await?)?,
                Self::Metadata => {
                    let metadata = opened().await?.metadata().await.map_err(to_datafusion)?;
                    tiledb_facts::metadata(&metadata)?
                }
            };
            table_of(facts)
        })
    }
}
