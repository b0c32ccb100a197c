//! The tables that this process has opened for plans of others.
//!
//! Each task of a query has a plan of its own, and all of them read the same table. So tables are kept by what they were
//! opened from, with its versions. A table of another session's object stores is never used: they may have other
//! credentials.

use std::sync::{Arc, LazyLock, Weak};

use datafusion::execution::TaskContext;
use datafusion::execution::runtime_env::RuntimeEnv;
use tokio::sync::OnceCell;

use super::known_files::files_of;
use super::messages::Origin;
use super::origins::origin_of;
use super::versions::versions_of;
use crate::error::Result;
use crate::io::LruCache;
use crate::provider::{ArrayOpener, ArrayTable};
use crate::tile::ObjectVersion;

/// The most tables that are kept open.
const MOST_TABLES: usize = 32;

/// A table that one task opens, while the others wait.
type Opened = Arc<OnceCell<ArrayTable>>;

/// The tables by what they were opened from, and by the runtime whose object stores opened them.
static TABLES: LazyLock<LruCache<Key, (Weak<RuntimeEnv>, Opened)>> =
    LazyLock::new(|| LruCache::new(MOST_TABLES));

/// The address of a runtime, and an origin.
type Key = (usize, Arc<Origin>);

/// Opens the table of a plan, or takes it from those that are open.
///
/// # Errors
/// As [`ArrayOpener::table`], and `Io` if an object has changed since the plan was made.
pub(super) async fn open(origin: &Arc<Origin>, context: &TaskContext) -> Result<ArrayTable> {
    let runtime = context.runtime_env();
    let key = (Arc::as_ptr(&runtime) as usize, Arc::clone(origin));
    let is_same =
        |held: &Weak<RuntimeEnv>| held.upgrade().is_some_and(|held| Arc::ptr_eq(&held, &runtime));
    let opened = match TABLES.get(&key) {
        Some((held, opened)) if is_same(&held) => opened,
        // Another runtime may have had this address.
        _ => {
            let opened = Opened::default();
            TABLES.insert(key, (Arc::downgrade(&runtime), Arc::clone(&opened)));
            opened
        }
    };
    let open = || async {
        let opener = ArrayOpener::of_running_task(context);
        let planned = origin_of(origin);
        if let Some(files) = &origin.files {
            // Each file is compared with its version when it is opened.
            return opener.reopen_known(&planned, &files_of(files, &planned.places)?).await;
        }
        let table = opener.reopen(&planned).await?;
        let versions = match &table {
            ArrayTable::Grid(table) => table.array().versions(),
            ArrayTable::Sparse(table) => table.array().versions(),
        };
        let name = origin.locations.first().map_or("", String::as_str);
        ObjectVersion::compare(name, &versions_of(&origin.versions), &versions)?;
        Ok(table)
    };
    opened.get_or_try_init(open).await.cloned()
}
