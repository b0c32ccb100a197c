//! The tables that this process has opened for plans of others.
//!
//! Each task of a query has a plan of its own, and all of them read the same table. So tables are kept by what they were
//! opened from, with its versions. A table of another session's object stores is never used: they may have other
//! credentials.

use std::ops::Range;
use std::sync::{Arc, LazyLock, Weak};

use datafusion::execution::TaskContext;
use datafusion::execution::runtime_env::RuntimeEnv;
use futures::future::BoxFuture;
use tokio::sync::OnceCell;

use super::known_files::files_of;
use super::messages::{JoinedOrigin, Origin};
use super::origins::origin_of;
use super::versions::versions_of;
use crate::array::Contents;
use crate::error::{Error, Result};
use crate::io::LruCache;
use crate::provider::{AlignedTable, ArrayOpener, ArrayTable};
use crate::tile::ObjectVersion;

/// The most tables that are kept open.
const MOST_TABLES: usize = 32;

/// A table that one task opens, while the others wait.
type TableCell = Arc<OnceCell<ArrayTable>>;

/// The tables by what they were opened from, and by the runtime whose object stores opened them.
static TABLES: LazyLock<LruCache<Key, (Weak<RuntimeEnv>, TableCell)>> =
    LazyLock::new(|| LruCache::new(MOST_TABLES));

/// The address of a runtime, and an origin.
type Key = (usize, Arc<Origin>);

/// Opens the table of a plan, or takes it from those that are open.
///
/// # Errors
/// As [`ArrayOpener::table`], and `Io` if an object has changed since the plan was made.
pub(super) fn open<'a>(
    origin: &'a Arc<Origin>,
    context: &'a TaskContext,
) -> BoxFuture<'a, Result<ArrayTable>> {
    // Arrays side by side are opened one by one, which would be a future in itself.
    Box::pin(open_or_take(origin, context))
}

async fn open_or_take(origin: &Arc<Origin>, context: &TaskContext) -> Result<ArrayTable> {
    let runtime = context.runtime_env();
    let key = (Arc::as_ptr(&runtime) as usize, Arc::clone(origin));
    let is_same =
        |held: &Weak<RuntimeEnv>| held.upgrade().is_some_and(|held| Arc::ptr_eq(&held, &runtime));
    let opened = match TABLES.get(&key) {
        Some((held, opened)) if is_same(&held) => opened,
        // Another runtime may have had this address.
        _ => {
            let opened = TableCell::default();
            TABLES.insert(key, (Arc::downgrade(&runtime), Arc::clone(&opened)));
            opened
        }
    };
    let open = || async {
        if !origin.side_by_side.is_empty() {
            return side_by_side(&origin.side_by_side, context).await;
        }
        let opener = ArrayOpener::from_running_task(context);
        let planned = origin_of(origin);
        if let Some(files) = &origin.files {
            // Each file is compared with its version when it is opened.
            return opener.reopen_known(&planned, &files_of(files, &planned.places)?).await;
        }
        let table = opener.reopen(&planned).await?;
        let (versions, contents) = match &table {
            ArrayTable::Grid(table) => (table.array().versions(), table.array().contents()),
            ArrayTable::Sparse(table) => (table.array().versions(), Contents::default()),
        };
        let name = origin.locations.first().map_or("", String::as_str);
        ObjectVersion::compare(name, &versions_of(&origin.versions), &versions)?;
        if !origin.contents.is_empty() {
            let planned = versions_of(&origin.contents);
            ObjectVersion::compare(name, &planned, &contents.versions()?)?;
        }
        Ok(table)
    };
    opened.get_or_try_init(open).await.cloned()
}

/// Opens the arrays that a query has put side by side, and puts them side by side again.
async fn side_by_side(parts: &[JoinedOrigin], context: &TaskContext) -> Result<ArrayTable> {
    let mut opened = vec![];
    for part in parts {
        let table = open(&Arc::new(part.origin.clone()), context).await?;
        let axes: Vec<usize> = part.axes.iter().map(|axis| *axis as usize).collect();
        let ends = part.starts.iter().zip(&part.ends);
        let ranges: Vec<Range<u64>> = ends.map(|(start, end)| *start..*end).collect();
        if ranges.iter().any(|range| range.start > range.end) {
            return Err(Error::corrupt_region("plan", "the indices of joined arrays are damaged"));
        }
        opened.push(AlignedTable { table, axes, ranges });
    }
    ArrayTable::side_by_side(&opened)
}
