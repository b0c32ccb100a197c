//! A directory as a catalog: each file, package and TileDB array in it is a schema.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use datafusion::catalog::information_schema::INFORMATION_SCHEMA;
use datafusion::catalog::{CatalogProvider, SchemaProvider};
use datafusion::execution::runtime_env::RuntimeEnv;
use futures::future::ready;
use futures::stream::{self, StreamExt};

use super::elsewhere::holds;
use super::holding::{Holding, stem};
use super::lazy_schema::{LazySchema, Reading};
use super::location::{child, entries};
use crate::error::{Error, Result};
use crate::format::{Entry, Foreign};
use crate::io::MAX_CONCURRENT_IO;
use crate::options::{IoMode, TetReadOptions, TileDbReadOptions};

/// The `.tet` files, `.tet.d` packages, and TileDB arrays and groups in a directory, each a schema. In an
/// object store, a directory is a prefix, and the store must be able to list.
///
/// The directory is listed once; what is in it is opened when a query asks for it, or for the list of all
/// tables. What cannot be opened has no tables, which a warning says, and gives its error when it is
/// queried.
///
/// A schema is called like its file, without `.tet`, `.tet.d`, `.tdb` or `.tiledb`. Where two would be called
/// the same, both keep their whole names: `"a.tet"` and `"a.tet.d"`. Directories within, other than packages,
/// arrays and groups, are left out, and so is what begins with a dot.
#[derive(Debug)]
pub struct GridCatalog {
    schemas: BTreeMap<String, Arc<LazySchema>>,
}

impl GridCatalog {
    /// Lists the directory at `location`.
    ///
    /// # Errors
    /// `Io` if it cannot be listed; `Usage` if there is nothing of ours in it, it is itself a package, array
    /// or group, or the options say something about one dataset.
    pub async fn open(
        location: &str,
        options: TetReadOptions,
        runtime: Arc<RuntimeEnv>,
    ) -> Result<Self> {
        Self::find(location, options, runtime).await?.ok_or_else(|| {
            let message = "this is a package, array or group, which is a schema; a catalog is a directory of such";
            Error::usage(message).in_file(location)
        })
    }

    /// The same, but `None` for a package, array or group.
    ///
    /// # Errors
    /// Those of [`GridCatalog::open`] else.
    pub async fn find(
        location: &str,
        options: TetReadOptions,
        runtime: Arc<RuntimeEnv>,
    ) -> Result<Option<Self>> {
        let common = options.common;
        let tiledb = TileDbReadOptions { common, ..TileDbReadOptions::default() };
        Self::find_with(location, options, tiledb, runtime).await
    }

    /// The same, with options for TileDB arrays of their own.
    ///
    /// # Errors
    /// Those of [`GridCatalog::open`] else.
    pub async fn find_with(
        location: &str,
        options: TetReadOptions,
        tiledb: TileDbReadOptions,
        runtime: Arc<RuntimeEnv>,
    ) -> Result<Option<Self>> {
        let listed = entries(location, options.io(), &runtime).await?;
        if Holding::of_folder(&listed).is_some() {
            return Ok(None);
        }
        if [&options.dataset, &tiledb.dataset].iter().any(|it| it.is_some())
            || options.generation.is_some()
        {
            let message = "a catalog holds every dataset of all files; options 'dataset' and 'generation' do not apply";
            return Err(Error::usage(message).in_file(location));
        }
        let holdings = holdings(location, &listed, options.io(), &runtime).await;
        if holdings.is_empty() {
            let message = "no .tet file, .tet.d package or TileDB array in this directory";
            let error = Foreign::of_folder(&listed)
                .map_or_else(|| Error::usage(message).followed_by(&holds(&listed)), Foreign::error);
            return Err(error.in_file(location));
        }
        let reading = Arc::new(Reading { tet: options, tiledb, runtime });
        let names: Vec<&str> = holdings.iter().map(|(name, _)| name.as_str()).collect();
        let schemas =
            schema_names(&names).into_iter().zip(&holdings).map(|(schema, (name, it))| {
                let location = child(location, name);
                (schema, Arc::new(LazySchema::new(location, *it, Arc::clone(&reading))))
            });
        Ok(Some(Self { schemas: schemas.collect() }))
    }

    /// The names of the schemas, and the paths or URLs of what they are.
    pub fn places(&self) -> impl Iterator<Item = (&str, &str)> {
        self.schemas.iter().map(|(name, schema)| (name.as_str(), schema.location.as_str()))
    }

    /// Whether there is a `.tet` file or package, rather than TileDB arrays alone.
    pub fn has_tet(&self) -> bool {
        let is_tet = |holding| matches!(holding, Holding::Tet | Holding::Package);
        self.schemas.values().any(|schema| is_tet(schema.holding))
    }
}

/// The names of what is of ours in a directory, and what it is.
async fn holdings(
    location: &str,
    listed: &[Entry],
    io: IoMode,
    runtime: &RuntimeEnv,
) -> Vec<(String, Holding)> {
    let visible = listed.iter().filter(|entry| !entry.name.starts_with('.'));
    let looks: Vec<_> = visible
        .map(|entry| async move {
            let holding = match (entry.size, Holding::of_name(&entry.name)) {
                (Some(_), by_name) => by_name.filter(|it| *it == Holding::Tet),
                (None, Some(Holding::Package)) => Some(Holding::Package),
                (None, _) => match entries(&child(location, &entry.name), io, runtime).await {
                    Ok(entries) => Holding::of_folder(&entries),
                    Err(error) => {
                        log::warn!("left out: {error}");
                        None
                    }
                },
            };
            holding.map(|holding| (entry.name.clone(), holding))
        })
        .collect();
    let mut found: Vec<_> =
        stream::iter(looks).buffered(MAX_CONCURRENT_IO).filter_map(ready).collect().await;
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

/// What the schemas of files with these names are called.
fn schema_names(files: &[&str]) -> Vec<String> {
    let mut called: HashMap<&str, usize> = HashMap::new();
    // What is called like its file counts once.
    let shortened = files.iter().map(|file| stem(file)).zip(files);
    let whole = shortened.clone().filter(|(short, file)| short != *file).map(|(_, file)| *file);
    for name in shortened.map(|(short, _)| short).chain(whole) {
        *called.entry(name).or_default() += 1;
    }
    let name = |file: &&str| {
        let short = stem(file);
        let is_taken = called.get(short).is_some_and(|times| *times > 1);
        let name = if is_taken || short == INFORMATION_SCHEMA { *file } else { short };
        if name == *file && name != short {
            log::warn!("the schema of {file} is \"{name}\", because \"{short}\" could be another");
        }
        name.to_owned()
    };
    files.iter().map(name).collect()
}

impl CatalogProvider for GridCatalog {
    fn schema_names(&self) -> Vec<String> {
        self.schemas.keys().cloned().collect()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        self.schemas.get(name).map(|schema| Arc::clone(schema) as Arc<dyn SchemaProvider>)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_are_told_apart() {
        assert_eq!(schema_names(&["a.tet", "b.tet.d", "c"]), ["a", "b", "c"]);
        assert_eq!(schema_names(&["a", "a.tet", "a.tet.d"]), ["a", "a.tet", "a.tet.d"]);
        assert_eq!(schema_names(&["a.tet", "a.tet.tet"]), ["a", "a.tet.tet"]);
        let many: Vec<String> = (0..100_000).map(|number| format!("{number}.tet")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(schema_names(&many)[99_999], "99999"); // without comparing each with each
        assert_eq!(schema_names(&["information_schema.tet"]), ["information_schema.tet"]);
    }
}
