//! [`GridCatalog`]: a directory as a SQL catalog, with a schema per file, package, array and group.
//!
//! ```text
//!   data/                    catalog "data"
//!   ├── climate.tet          ├── schema climate      a table per dataset
//!   ├── model.tet.d/         ├── schema model        a table per dataset
//!   └── forecast.tdb/        └── schema forecast     a table per array
//! ```
//!
//! A query of one file must not open a thousand, and a damaged file must not affect the others. So a file is opened when
//! a query names it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use datafusion::catalog::information_schema::INFORMATION_SCHEMA;
use datafusion::catalog::{CatalogProvider, SchemaProvider};

use super::ArrayOpener;
use super::lazy_schema::{LazySchema, SharedOpener};
use crate::error::{Error, Result};
use crate::format::Foreign;
use crate::options::{ArrayOptions, Scope};
use crate::source::{Formats, holds};

/// A catalog with a schema for each file, store, array and group of arrays in a directory, of any format. In an object
/// store, a directory is a prefix, and the store must support listing.
///
/// The directory is listed once. A schema is opened when a query uses it. Listing tables opens all schemas side
/// by side.
/// A schema that cannot be opened lists no tables and logs a warning; a query of its tables returns the
/// error.
///
/// The name of a schema is the name of its file without the ending of its format. Schemas whose short names would be
/// equal keep their whole names: `"a.tet"` and `"a.tet.d"`. The catalog leaves out names that begin with a dot, and
/// directories without arrays.
#[derive(Debug)]
pub struct GridCatalog {
    schemas: BTreeMap<String, Arc<LazySchema>>,
}

impl GridCatalog {
    /// Lists the directory at `location`. Each schema uses the `options` that its format has.
    ///
    /// # Errors
    /// `Io` if the directory cannot be listed. `Usage` if it holds no arrays, or is itself a package, array or
    /// group. `Usage` for an option that applies to a single table or file.
    pub async fn open(
        location: &str,
        options: &ArrayOptions,
        opener: &ArrayOpener,
    ) -> Result<Self> {
        Self::find(location, options, opener).await?.ok_or_else(|| {
            let message = "this is one package, array or group: register it as a schema; a catalog is a directory of several";
            Error::usage(message).in_file(location)
        })
    }

    /// Lists the directory at `location` like [`GridCatalog::open`], but returns `None` for a package, array
    /// or group.
    ///
    /// # Errors
    /// Otherwise as [`GridCatalog::open`].
    pub async fn find(
        location: &str,
        options: &ArrayOptions,
        opener: &ArrayOpener,
    ) -> Result<Option<Self>> {
        let (place, formats) = (opener.place(location)?, opener.formats());
        let listed = place.entries().await?;
        if formats.of_folder(&listed).is_some() {
            return Ok(None);
        }
        formats.check(options).map_err(|error| error.in_file(location))?;
        refuse_narrow(options, formats).map_err(|error| error.in_file(location))?;
        let (places, left_out) = formats.places_in(&place, &listed).await;
        left_out.iter().for_each(|error| log::warn!("left out: {error}"));
        if places.is_empty() {
            let message = format!("no {} in this directory", formats.nouns());
            let error = Foreign::from_folder(&listed)
                .map_or_else(|| Error::usage(message).followed_by(&holds(&listed)), Foreign::error);
            return Err(error.in_file(location));
        }
        let reading = Arc::new(SharedOpener::new(opener.clone(), options.clone()));
        let names: Vec<&str> = places.iter().map(|(name, _)| name.as_str()).collect();
        let mut schemas = BTreeMap::new();
        for (schema, (name, found)) in schema_names(&names, formats).into_iter().zip(&places) {
            let location = place.child(name)?.location().to_owned();
            let lazy = LazySchema::new(location, found.format.name(), Arc::clone(&reading));
            schemas.insert(schema, Arc::new(lazy));
        }
        reading.of_all(schemas.values());
        Ok(Some(Self { schemas }))
    }

    /// Returns the name and the path or URL of each schema.
    pub fn places(&self) -> impl Iterator<Item = (&str, &str)> {
        self.schemas.iter().map(|(name, schema)| (name.as_str(), schema.location.as_str()))
    }

    /// Returns the name and the path or URL of each schema, with the `options` that its format has.
    pub fn places_with(
        &self,
        options: &ArrayOptions,
    ) -> impl Iterator<Item = (&str, &str, ArrayOptions)> {
        self.schemas.iter().map(move |(name, schema)| {
            (name.as_str(), schema.location.as_str(), schema.options_of(options))
        })
    }
}

/// Fails for options that apply to a single table or file only.
fn refuse_narrow(options: &ArrayOptions, formats: &Formats) -> Result<()> {
    let is_narrow = |name: &str| {
        let option = formats.iter().find_map(|format| format.option_table().find(name));
        option.is_some_and(|option| option.scope != Scope::Any)
    };
    match options.iter().find(|(name, _)| is_narrow(name)) {
        None => Ok(()),
        Some((name, _)) => Err(Error::usage(format!(
            "a catalog holds every dataset of all files; option '{name}' does not apply"
        ))),
    }
}

/// Returns the name of the schema of each file, in the order of `files`. No two are equal.
///
/// A short name is used if no other file has it as its short or whole name. So `a.tet` and `a.tet.tet`
/// become `a` and `a.tet.tet`, because `a.tet` is the whole name of the first.
fn schema_names(files: &[&str], formats: &Formats) -> Vec<String> {
    let mut called: HashMap<&str, usize> = HashMap::new();
    // A file whose short name is its whole name is counted once.
    let shortened = files.iter().map(|file| formats.stem(file)).zip(files);
    let whole = shortened.clone().filter(|(short, file)| short != *file).map(|(_, file)| *file);
    for name in shortened.map(|(short, _)| short).chain(whole) {
        *called.entry(name).or_default() += 1;
    }
    let name = |file: &&str| {
        let short = formats.stem(file);
        let is_taken = called.get(short).is_some_and(|times| *times > 1);
        let name = if is_taken || short == INFORMATION_SCHEMA { *file } else { short };
        if name == *file && name != short {
            log::warn!(
                "the schema of {file} is \"{name}\", because \"{short}\" is ambiguous or reserved"
            );
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
    fn schemas_have_different_names() {
        let formats = crate::built_in_formats();
        assert_eq!(schema_names(&["a.tet", "b.tet.d", "c"], &formats), ["a", "b", "c"]);
        assert_eq!(schema_names(&["a", "a.tet", "a.tet.d"], &formats), ["a", "a.tet", "a.tet.d"]);
        assert_eq!(schema_names(&["a.tet", "a.tet.tet"], &formats), ["a", "a.tet.tet"]);
        let many: Vec<String> = (0..100_000).map(|number| format!("{number}.tet")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(schema_names(&many, &formats)[99_999], "99999"); // takes linear time
        assert_eq!(schema_names(&["information_schema.tet"], &formats), ["information_schema.tet"]);
    }
}
