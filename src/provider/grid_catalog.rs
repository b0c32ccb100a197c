//! A directory as a catalog: each file, package and TileDB array in it is a schema.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use datafusion::catalog::information_schema::INFORMATION_SCHEMA;
use datafusion::catalog::{CatalogProvider, SchemaProvider};

use super::ArrayOpener;
use super::lazy_schema::{LazySchema, Reading};
use crate::error::{Error, Result};
use crate::format::Foreign;
use crate::options::{ArrayOptions, Scope};
use crate::source::{Formats, holds};

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
    /// Lists the directory at `location`. Of the options, each format takes those that it has.
    ///
    /// # Errors
    /// `Io` if it cannot be listed; `Usage` if there is nothing of ours in it, it is itself a package, array
    /// or group, or the options say something about one dataset.
    pub async fn open(
        location: &str,
        options: &ArrayOptions,
        opener: &ArrayOpener,
    ) -> Result<Self> {
        Self::find(location, options, opener).await?.ok_or_else(|| {
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
            let error = Foreign::of_folder(&listed)
                .map_or_else(|| Error::usage(message).followed_by(&holds(&listed)), Foreign::error);
            return Err(error.in_file(location));
        }
        let reading = Arc::new(Reading { opener: opener.clone(), options: options.clone() });
        let names: Vec<&str> = places.iter().map(|(name, _)| name.as_str()).collect();
        let mut schemas = BTreeMap::new();
        for (schema, (name, found)) in schema_names(&names, formats).into_iter().zip(&places) {
            let location = place.child(name)?.location().to_owned();
            let lazy = LazySchema::new(location, found.format.name(), Arc::clone(&reading));
            schemas.insert(schema, Arc::new(lazy));
        }
        Ok(Some(Self { schemas }))
    }

    /// The names of the schemas, and the paths or URLs of what they are.
    pub fn places(&self) -> impl Iterator<Item = (&str, &str)> {
        self.schemas.iter().map(|(name, schema)| (name.as_str(), schema.location.as_str()))
    }

    /// The same, with those of `options` that the format of each place has.
    pub fn places_with(
        &self,
        options: &ArrayOptions,
    ) -> impl Iterator<Item = (&str, &str, ArrayOptions)> {
        self.schemas.iter().map(move |(name, schema)| {
            (name.as_str(), schema.location.as_str(), schema.options_of(options))
        })
    }
}

/// Refuses options that are about one table or one place.
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

/// What the schemas of files with these names are called.
fn schema_names(files: &[&str], formats: &Formats) -> Vec<String> {
    let mut called: HashMap<&str, usize> = HashMap::new();
    // What is called like its file counts once.
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
        let formats = Formats::default();
        assert_eq!(schema_names(&["a.tet", "b.tet.d", "c"], &formats), ["a", "b", "c"]);
        assert_eq!(schema_names(&["a", "a.tet", "a.tet.d"], &formats), ["a", "a.tet", "a.tet.d"]);
        assert_eq!(schema_names(&["a.tet", "a.tet.tet"], &formats), ["a", "a.tet.tet"]);
        let many: Vec<String> = (0..100_000).map(|number| format!("{number}.tet")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(schema_names(&many, &formats)[99_999], "99999"); // without comparing each with each
        assert_eq!(schema_names(&["information_schema.tet"], &formats), ["information_schema.tet"]);
    }
}
