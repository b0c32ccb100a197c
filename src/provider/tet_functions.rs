//! Table functions over `.tet` files and packages: a dataset as a table, and what is known of the file.

use std::sync::Arc;

use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::error::{DataFusionError, Result};

use super::open_table;
use super::open_table::defaults;
use super::table_function::{Arguments, table_of, wait};
use super::tet_chunks::TetChunks;
use super::{open, tet_facts};
use crate::exec::to_datafusion;
use crate::options::TetReadOptions;

/// A table function over one `.tet` file or `.tet.d` package. The first argument is its path or URL; the
/// name of a dataset may follow, and then options of [`TetReadOptions`]: named arguments, or names and
/// values in turn. Of these, `dataset`, `generation` and `io` mean something to the functions other than
/// `read_tet`.
///
/// | function | a row per | columns |
/// |---|---|---|
/// | `read_tet(path)` | cell | those of the table, as `CREATE EXTERNAL TABLE` would make it |
/// | `tet_info(path)` | dataset | `dataset`, `element_type`, `shape`, `chunk_shape`, `dimensions`, `chunks`, `stored_chunks`, `stored_bytes`, `raw_bytes`, `ratio`, `codec`, `units`, `long_name`, `is_coordinate`, `has_zone_maps`, `warnings` |
/// | `tet_chunks(path)` | stored chunk | `dataset`, `chunk`, `file_offset`, `stored_bytes`, `raw_bytes`, `codec`, `null_count`, `min_value`, `max_value` |
/// | `tet_attributes(path)` | attribute | `dataset` (NULL: of the file), `key`, `value` |
///
/// Shapes and a chunk's coordinates are lists. `chunks` counts those of the grid, `stored_chunks` the rows
/// that the index has for them; `codec` is `raw`, `zstd` or `mixed`. The last three columns of
/// `tet_chunks` are the chunk's zone map, NULL where there is none: the least and the greatest element as
/// stored, in decimal text (cast it to the element's type; CF packing is not undone), because 64-bit integers are exact in no number that all types share.
/// `tet_chunks` streams: a `LIMIT` ends it early, and zone maps are read only if they are asked for.
/// What the file says of itself has NULL for a dataset, and so has its history: `history.1.op`,
/// `history.1.source`, `history.1.at`.
///
/// ```sql
/// SELECT * FROM read_tet('stations.tet', 'temperature', index_columns => true) LIMIT 3;
/// SELECT dataset, shape, chunk_shape, ratio FROM tet_info('stations.tet');
/// SELECT chunk, stored_bytes FROM tet_chunks('stations.tet', 'temperature') ORDER BY stored_bytes DESC;
/// SELECT value FROM tet_attributes('stations.tet') WHERE dataset = 'temperature' AND key = 'units';
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TetFunction {
    /// `read_tet`.
    Read,
    /// `tet_info`.
    Info,
    /// `tet_chunks`.
    Chunks,
    /// `tet_attributes`.
    Attributes,
}

impl TetFunction {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Read, Self::Info, Self::Chunks, Self::Attributes];

    /// What SQL calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read_tet",
            Self::Info => "tet_info",
            Self::Chunks => "tet_chunks",
            Self::Attributes => "tet_attributes",
        }
    }
}

impl TableFunctionImpl for TetFunction {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let arguments = Arguments::new(self.name(), args.exprs(), true)?;
        let mut options = TetReadOptions::from_sql(&arguments.options).map_err(to_datafusion)?;
        options.dataset = arguments.dataset(self.name(), options.dataset)?;
        let options = options.with_defaults(&defaults(args.session()));
        let runtime = args.session().runtime_env();
        let opened = async || {
            let location = arguments.location(self.name())?;
            let file = open(location, &options, runtime).await.map_err(to_datafusion)?;
            let dataset = options.dataset.as_deref().map(|name| file.dataset_id(name));
            Ok::<_, DataFusionError>((file, dataset.transpose().map_err(to_datafusion)?))
        };
        wait(async {
            Ok(match self {
                Self::Read => {
                    let table = open_table(arguments.locations.clone(), &options, runtime).await;
                    Arc::new(table.map_err(to_datafusion)?) as Arc<dyn TableProvider>
                }
                Self::Info => {
                    let (file, dataset) = opened().await?;
                    let known = file.dataset_info(dataset).await.map_err(to_datafusion)?;
                    table_of(tet_facts::info(&known)?)?
                }
                Self::Chunks => {
                    let (file, dataset) = opened().await?;
                    Arc::new(TetChunks::new(file, dataset))
                }
                Self::Attributes => {
                    let (file, dataset) = opened().await?;
                    table_of(tet_facts::attributes(&file, dataset)?)?
                }
            })
        })
    }
}
