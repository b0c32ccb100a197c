//! From locations to a table: what every way to a table ends in.
//!
//! Rust's `register_…` and `read_…`, `CREATE EXTERNAL TABLE`, the table functions and quoted paths differ
//! in how locations and options reach them, and in nothing else.

use std::sync::Arc;

use datafusion::catalog::Session;
use datafusion::execution::runtime_env::RuntimeEnv;
use futures::stream::{self, StreamExt, TryStreamExt};

use super::location::open_among;
use super::locations::Found;
use super::members::{Opening, arrays_at};
use super::variables::arrays_of;
use super::{GridTable, Locations, open};
use crate::array::GridArray;
use crate::error::Result;
use crate::exec::GridfusionConfig;
use crate::io::MAX_CONCURRENT_IO;
use crate::io::OpenFiles;
use crate::options::{IoMode, TableDefaults, TetReadOptions, TileDbReadOptions};
use crate::source::FileArrays;

/// Of many files, so many are held open at once.
const MOST_OPEN: usize = 512;

/// The table of a dataset in what is at `locations`, as [`open`] understands it. Without a dataset in the
/// options, the data variables of a file are columns of one table, if they have the same dimensions. Several
/// files are one table too: they follow one another along the dimension whose labels differ, in the
/// order of these labels, and are opened once, to be opened again when a query wants them.
///
/// ```
/// use datafusion::prelude::SessionContext;
/// use gridfusion::{TetReadOptions, open_table};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> gridfusion::Result<()> {
/// let ctx = SessionContext::new();
/// let options = TetReadOptions::default().with_dataset("elevation");
/// let table = open_table("examples/data/stations.tet", &options, &ctx.runtime_env()).await?;
/// assert_eq!(table.array().grid().shape(), [6]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Those of [`open`], [`GridTable::open`] and [`GridArray::side_by_side`]; `Usage` for a pattern that nothing
/// matches.
pub async fn open_table(
    locations: impl Into<Locations>,
    options: &TetReadOptions,
    runtime: &RuntimeEnv,
) -> Result<GridTable> {
    let locations = locations.into();
    let found = match locations.expand(runtime).await? {
        Found::One(location) => {
            let file = open(&location, options, runtime).await?;
            return GridTable::open(&file, options).await;
        }
        Found::Many(found) => found,
    };
    let opened = OpenFiles::new(options.io() == IoMode::Mmap, MOST_OPEN);
    let opened = &opened;
    let files = found.into_iter().map(|location| async move {
        let file = open_among(&location, options, runtime, Some(opened)).await?;
        arrays_of(&file, options.dataset.as_deref(), &options.read()).await
    });
    let files: Vec<FileArrays> =
        stream::iter(files).buffered(MAX_CONCURRENT_IO).try_collect().await?;
    let array = GridArray::side_by_side(locations.name(), files, &options.mosaic())?;
    Ok(GridTable::new(Arc::new(array)))
}

/// The table of the TileDB array at `locations`, or of several, as [`open_table`] has it of files. A group, or
/// a folder of arrays, is like a file: its arrays are columns of one table, if they have the same dimensions
/// and coordinates, or those of them that the options name. Arrays with one dimension that are called like
/// it are coordinates, and no columns.
///
/// # Errors
/// Those of [`open_tiledb`](super::open_tiledb), [`GridTable::of_tiledb`] and [`GridArray::side_by_side`];
/// `Usage` for a pattern that nothing matches, or a name that no array has.
pub async fn open_tiledb_table(
    locations: impl Into<Locations>,
    options: &TileDbReadOptions,
    runtime: &RuntimeEnv,
) -> Result<GridTable> {
    let locations = locations.into();
    let found = match locations.expand(runtime).await? {
        Found::One(location) => {
            let opening = Opening { options, runtime, many: None };
            let arrays = arrays_at(&location, &opening).await?;
            return GridTable::of_file(arrays, &options.mosaic());
        }
        Found::Many(found) => found,
    };
    let files = OpenFiles::new(options.io() == IoMode::Mmap, MOST_OPEN);
    let opening = &Opening { options, runtime, many: Some(&files) };
    let arrays =
        found.into_iter().map(|location| async move { arrays_at(&location, opening).await });
    let arrays: Vec<FileArrays> =
        stream::iter(arrays).buffered(MAX_CONCURRENT_IO).try_collect().await?;
    let array = GridArray::side_by_side(locations.name(), arrays, &options.mosaic())?;
    Ok(GridTable::new(Arc::new(array)))
}

/// What the session says for tables that say nothing.
pub(super) fn defaults(session: &dyn Session) -> TableDefaults {
    GridfusionConfig::of(session.config_options()).tables
}
