//! A TileDB array, group, or folder with arrays in it, as a schema: each array is a table.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::error::Result;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::logical_expr::TableType;
use futures::stream::{self, StreamExt};

use super::holding::Holding;
use super::location::{below, entries, folder};
use super::{GridTable, open_tiledb};
use crate::error::{Error, Result as GridResult};
use crate::exec::to_datafusion;
use crate::format::Entry;
use crate::format::tiledb::{FolderKind, ReadGroup, folder_kind};
use crate::io::MAX_CONCURRENT_IO;
use crate::io::last_part;
use crate::options::{Scope, TileDbReadOptions};
use crate::tile::{Objects, drive};

/// The arrays of a TileDB group or of a folder as tables, opened when they are first asked for. An array
/// alone is a schema of one table.
///
/// The arrays of groups within are called `group/array`. An array that cannot be read is listed all
/// the same; querying it gives its error.
#[derive(Debug)]
pub struct TileDbSchema {
    /// Names of tables, and where they are.
    arrays: BTreeMap<String, String>,
    /// What could not be looked into.
    left_out: Vec<Error>,
    options: TileDbReadOptions,
    runtime: Arc<RuntimeEnv>,
    opened: Mutex<HashMap<String, Arc<GridTable>>>,
}

/// Groups may hold groups, but not without end: one could hold itself.
const MAX_GROUPS: usize = 1024;

impl TileDbSchema {
    /// Finds the arrays below `location`.
    ///
    /// # Errors
    /// `Usage` if it holds no array, or the options name one; `Corrupt` or `Io` if a group cannot be read.
    pub async fn open(
        location: &str,
        options: TileDbReadOptions,
        runtime: Arc<RuntimeEnv>,
    ) -> GridResult<Self> {
        if let Some(dataset) = &options.dataset {
            let message = format!(
                "a schema holds every array of its group; option 'dataset' ('{dataset}') does not apply"
            );
            return Err(Error::usage(message).in_file(location));
        }
        let (arrays, left_out) = find_arrays(location, &options, &runtime).await?;
        Ok(Self { arrays, left_out, options, runtime, opened: Mutex::default() })
    }

    /// The names of the arrays' tables, and the paths or URLs of the arrays.
    pub fn arrays(&self) -> impl Iterator<Item = (&str, &str)> {
        self.arrays.iter().map(|(name, location)| (name.as_str(), location.as_str()))
    }

    /// How they are read.
    pub fn options(&self) -> &TileDbReadOptions {
        &self.options
    }

    /// Why groups and folders within are left out, if they could not be looked into.
    pub fn left_out(&self) -> &[Error] {
        &self.left_out
    }

    /// The table of an array; `None` if there is none of this name.
    ///
    /// # Errors
    /// Those of [`open_tiledb`] and [`GridTable::of_tiledb`].
    pub async fn grid_table(&self, name: &str) -> GridResult<Option<Arc<GridTable>>> {
        let Some(location) = self.arrays.get(name) else { return Ok(None) };
        let held = self.opened.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        if held.is_some() {
            return Ok(held);
        }
        let array = open_tiledb(location, &self.options, &self.runtime).await?;
        let table = Arc::new(GridTable::of_tiledb(&array, &self.options)?);
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Some(Arc::clone(opened.entry(name.to_owned()).or_insert(table))))
    }
}

/// What the folder at `location` is, and what is in it.
async fn kind(
    location: &str,
    options: &TileDbReadOptions,
    runtime: &RuntimeEnv,
) -> GridResult<(Option<FolderKind>, Vec<Entry>)> {
    let entries = entries(location, options.io(), runtime).await?;
    Ok((folder_kind(&entries), entries))
}

/// Names of tables and places of the arrays at `location`, and in the groups there, of which there is at
/// least one; and what could not be looked into.
///
/// # Errors
/// Those of [`TileDbSchema::open`].
pub(super) async fn find_arrays(
    location: &str,
    options: &TileDbReadOptions,
    runtime: &RuntimeEnv,
) -> GridResult<(BTreeMap<String, String>, Vec<Error>)> {
    let found = match arrays_below(location, options, runtime).await {
        Ok((arrays, _)) if arrays.is_empty() => {
            let message = "no TileDB array in this folder, and it is no TileDB group";
            Err(Error::usage(message).in_file(location))
        }
        found => found,
    };
    match found {
        Ok(found) => Ok(found),
        Err(error) => Err(Holding::explain(error, location, Scope::TileDb, runtime).await),
    }
}

async fn arrays_below(
    location: &str,
    options: &TileDbReadOptions,
    runtime: &RuntimeEnv,
) -> GridResult<(BTreeMap<String, String>, Vec<Error>)> {
    let mut arrays = BTreeMap::new();
    let mut left_out = Vec::new();
    let mut groups = vec![(location.to_owned(), String::new())];
    let mut visited = 0;
    while let Some((location, prefix)) = groups.pop() {
        visited += 1;
        if visited > MAX_GROUPS {
            let message = format!("more than {MAX_GROUPS} groups within groups");
            return Err(Error::unsupported(message).in_file(&location));
        }
        let members = match members_of(&location, options, runtime, &mut left_out).await {
            Ok(members) => members,
            Err(error) if prefix.is_empty() => return Err(error),
            Err(error) => {
                left_out.push(error.in_folder(&location));
                continue;
            }
        };
        for Member { name, location, kind } in members {
            let name = format!("{prefix}{name}");
            match kind {
                FolderKind::Array if arrays.contains_key(&name) => {
                    log::warn!("there is an array \"{name}\" already; \"{location}\" is called so");
                    arrays.insert(location.clone(), location);
                }
                FolderKind::Array => _ = arrays.insert(name, location),
                FolderKind::Group => groups.push((location, format!("{name}/"))),
            }
        }
    }
    for error in &left_out {
        log::warn!("left out: {error}");
    }
    Ok((arrays, left_out))
}

/// What is at `location`: an array, the members of a group, or the arrays and groups in a folder.
async fn members_of(
    location: &str,
    options: &TileDbReadOptions,
    runtime: &RuntimeEnv,
    left_out: &mut Vec<Error>,
) -> GridResult<Vec<Member>> {
    Ok(match kind(location, options, runtime).await? {
        (Some(FolderKind::Array), _) => {
            let (name, location) = (last_part(location).to_owned(), location.to_owned());
            vec![Member { name, location, kind: FolderKind::Array }]
        }
        (Some(FolderKind::Group), _) => group_members(location, options, runtime).await?,
        (None, entries) => folders_within(location, &entries, options, runtime, left_out).await,
    })
}

/// Something that is in a group or a folder.
struct Member {
    name: String,
    location: String,
    kind: FolderKind,
}

/// The arrays and groups directly in a plain folder; what cannot be listed is left out.
async fn folders_within(
    location: &str,
    entries: &[Entry],
    options: &TileDbReadOptions,
    runtime: &RuntimeEnv,
    left_out: &mut Vec<Error>,
) -> Vec<Member> {
    let folders = entries.iter().filter(|entry| entry.size.is_none());
    let looks = folders.map(|entry| {
        let (name, location) = (entry.name.clone(), below(location, &entry.name));
        async move {
            let (kind, _) = kind(&location, options, runtime)
                .await
                .map_err(|error| error.in_folder(&location))?;
            Ok(kind.map(|kind| Member { name, location, kind }))
        }
    });
    let looks: Vec<_> = looks.collect();
    let mut looks = stream::iter(looks).buffered(MAX_CONCURRENT_IO);
    let mut members = Vec::new();
    while let Some(looked) = looks.next().await {
        match looked {
            Ok(member) => members.extend(member),
            Err(error) => left_out.push(error),
        }
    }
    members
}

async fn group_members(
    location: &str,
    options: &TileDbReadOptions,
    runtime: &RuntimeEnv,
) -> GridResult<Vec<Member>> {
    let objects = Objects::many(folder(location, options.io(), runtime)?);
    let members = drive(ReadGroup::new(options.open.clone()), &objects).await?;
    let named = members.into_iter().map(|member| {
        let place = if member.relative { below(location, &member.uri) } else { member.uri };
        let name = member.name.unwrap_or_else(|| last_part(&place).to_owned());
        Member { name, location: place, kind: member.kind }
    });
    Ok(named.collect())
}

#[async_trait]
impl SchemaProvider for TileDbSchema {
    fn table_names(&self) -> Vec<String> {
        self.arrays.keys().cloned().collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let table = self.grid_table(name).await.map_err(to_datafusion)?;
        Ok(table.map(|table| table as Arc<dyn TableProvider>))
    }

    async fn table_type(&self, name: &str) -> Result<Option<TableType>> {
        // Known without opening the array, so that listing tables survives a bad one.
        Ok(self.table_exist(name).then_some(TableType::Base))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.arrays.contains_key(name)
    }
}
