//! Registers the paths of the command line as schemas, and their datasets as tables with bare names.
//!
//! ```text
//!   gridfusion 2023.tet 2024.tet years/     each file has the dataset temperature
//!
//!   "2023".temperature, "2024".temperature  a schema per file, in the default catalog
//!   temperature                             ambiguous, so it is no table; only one file may have the name
//!   years.january.temperature               a catalog per directory, with a schema per file
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use datafusion::catalog::information_schema::INFORMATION_SCHEMA;
use datafusion::catalog::{CatalogProvider, SchemaProvider, TableProvider};
use datafusion::common::{TableReference, plan_datafusion_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::TableType;
use datafusion::prelude::SessionContext;
use url::Url;

use crate::options::PathOptions;
use crate::place::OpenedPlace;
use crate::session::Session;

/// Opens each path with the options, and registers it as a schema. Its datasets or arrays also get bare
/// names. A directory of files becomes a catalog, whose files are not opened yet.
///
/// # Errors
/// If a path cannot be opened. A dataset that cannot be read causes an error only when a query names it.
pub(crate) async fn register(
    session: &Session,
    paths: &[String],
    options: &PathOptions,
) -> Result<()> {
    if paths.is_empty() {
        return Ok(());
    }
    let mut datasets: BTreeMap<String, Vec<SourceFile>> = BTreeMap::new();
    for path in paths {
        let tables: Arc<dyn SchemaProvider> =
            match OpenedPlace::open(path, options, &session.ctx).await? {
                OpenedPlace::Group(schema) => schema,
                OpenedPlace::Directory(files) => {
                    session.ctx.register_catalog(catalog_name(path, session), Arc::new(files));
                    continue;
                }
            };
        let file = SourceFile { schema: schema_name(path, &*session.catalog), tables };
        session.catalog.register_schema(&file.schema, Arc::clone(&file.tables))?;
        for dataset in file.tables.table_names() {
            datasets.entry(dataset).or_default().push(file.clone());
        }
    }
    let name = &session.default_schema;
    let inner = session
        .catalog
        .schema(name)
        .ok_or_else(|| plan_datafusion_err!("there is no schema \"{name}\""))?;
    let bare = Arc::new(BareNames { inner, datasets: RwLock::new(datasets) });
    session.catalog.register_schema(name, Arc::clone(&bare) as _)?;
    session.ctx.state_ref().write().config_mut().set_extension(bare);
    Ok(())
}

/// Returns a query that lists each table once, by its shortest name, and leaves out the information schema.
pub(crate) fn listed(ctx: &SessionContext) -> String {
    let mut sql = format!(
        "SELECT table_catalog, table_schema, table_name, table_type FROM information_schema.tables \
         WHERE table_schema <> '{INFORMATION_SCHEMA}'"
    );
    let config = ctx.copied_config();
    let Some(bare) = config.get_extension::<BareNames>() else { return sql };
    let catalog = quoted(&config.options().catalog.default_catalog);
    for (schema, datasets) in bare.listed_without_schema() {
        let datasets = datasets.iter().map(|it| quoted(it)).collect::<Vec<_>>().join(", ");
        sql.push_str(&format!(
            " AND NOT (table_catalog = {catalog} AND table_schema = {} AND table_name IN ({datasets}))",
            quoted(&schema)
        ));
    }
    sql
}

/// Returns a text as SQL writes it.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Returns the catalog name of a directory: its stem, with a number if that is taken.
fn catalog_name(path: &str, session: &Session) -> String {
    // This resolves `.` and `..` to the names of their directories.
    let resolved = Path::new(path).canonicalize().ok();
    let stem = stem(resolved.as_deref().and_then(Path::to_str).unwrap_or(path));
    let name = first_free(&stem, |name| session.ctx.catalog(name).is_some());
    if name != stem {
        log::warn!("{path}: its catalog is \"{name}\", because catalog \"{stem}\" exists");
    }
    name
}

/// Returns the schema name of a file: its stem, with a number if that is taken.
fn schema_name(path: &str, catalog: &dyn CatalogProvider) -> String {
    let stem = stem(path);
    let is_taken = |name: &str| name == INFORMATION_SCHEMA || catalog.schema(name).is_some();
    let name = first_free(&stem, is_taken);
    if name != stem {
        log::warn!("{path}: its schema is \"{name}\", because schema \"{stem}\" exists");
    }
    name
}

/// Returns the last part of a path or URL without its extension, which for a package is `.tet.d`.
fn stem(location: &str) -> String {
    let url = location.contains("://").then(|| Url::parse(location).ok()).flatten();
    let path = url.as_ref().map_or(location, Url::path).trim_end_matches('/');
    let path = path.strip_suffix(".d").filter(|path| path.ends_with(".tet")).unwrap_or(path);
    match Path::new(path).file_stem() {
        Some(stem) => stem.to_string_lossy().into_owned(),
        None => "file".to_owned(),
    }
}

/// Returns `stem`, or the first of `stem_2`, `stem_3`, … that is not taken.
fn first_free(stem: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let mut name = stem.to_owned();
    let mut number = 2;
    while is_taken(&name) {
        name = format!("{stem}_{number}");
        number += 1;
    }
    name
}

/// A path of the command line: its schema name and its tables.
#[derive(Debug, Clone)]
struct SourceFile {
    schema: String,
    tables: Arc<dyn SchemaProvider>,
}

/// The default schema, with the tables that SQL creates and the datasets of all files.
///
/// A dataset is opened when a query names it. A table created by SQL hides datasets with the same name.
#[derive(Debug)]
struct BareNames {
    /// The original default schema, in which SQL creates tables and views.
    inner: Arc<dyn SchemaProvider>,
    /// The files that have a dataset, by its name. A name is a table only if one file has it.
    datasets: RwLock<BTreeMap<String, Vec<SourceFile>>>,
}

impl BareNames {
    fn files_with(&self, dataset: &str) -> Vec<SourceFile> {
        let datasets = self.datasets.read().unwrap_or_else(PoisonError::into_inner);
        datasets.get(dataset).cloned().unwrap_or_default()
    }
}

impl BareNames {
    /// Returns the datasets that have bare names, by the schemas of their files.
    fn listed_without_schema(&self) -> BTreeMap<String, Vec<String>> {
        let datasets = self.datasets.read().unwrap_or_else(PoisonError::into_inner);
        let mut listed: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (dataset, files) in &*datasets {
            if let [file] = files.as_slice()
                && !self.inner.table_exist(dataset)
            {
                listed.entry(file.schema.clone()).or_default().push(dataset.clone());
            }
        }
        listed
    }
}

/// Lists the full names of a dataset that several files have.
fn full_names(dataset: &str, files: &[SourceFile]) -> String {
    let name =
        |file: &SourceFile| TableReference::partial(&*file.schema, dataset).to_quoted_string();
    files.iter().map(name).collect::<Vec<_>>().join(" or ")
}

#[async_trait]
impl SchemaProvider for BareNames {
    fn owner_name(&self) -> Option<&str> {
        self.inner.owner_name()
    }

    fn table_names(&self) -> Vec<String> {
        let mut names = BTreeSet::from_iter(self.inner.table_names());
        let datasets = self.datasets.read().unwrap_or_else(PoisonError::into_inner);
        let clear = datasets.iter().filter(|(_, files)| files.len() == 1);
        names.extend(clear.map(|(name, _)| name.clone()));
        names.into_iter().collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if self.inner.table_exist(name) {
            return self.inner.table(name).await;
        }
        let files = self.files_with(name);
        match files.as_slice() {
            [] => Ok(None),
            [file] => file.tables.table(name).await,
            _ => {
                let names = full_names(name, &files);
                plan_err!("the table name \"{name}\" is ambiguous; write {names}")
            }
        }
    }

    async fn table_type(&self, name: &str) -> Result<Option<TableType>> {
        if self.inner.table_exist(name) {
            return self.inner.table_type(name).await;
        }
        Ok(self.table_exist(name).then_some(TableType::Base))
    }

    fn register_table(
        &self,
        name: String,
        table: Arc<dyn TableProvider>,
    ) -> Result<Option<Arc<dyn TableProvider>>> {
        self.inner.register_table(name, table)
    }

    /// Removes a bare name, for `DROP TABLE` and `CREATE OR REPLACE`. The dataset remains in its file and in
    /// the file's schema.
    fn deregister_table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if self.inner.table_exist(name) {
            return self.inner.deregister_table(name);
        }
        self.datasets.write().unwrap_or_else(PoisonError::into_inner).remove(name);
        Ok(None)
    }

    fn table_exist(&self, name: &str) -> bool {
        self.inner.table_exist(name) || self.files_with(name).len() == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stems() {
        for (location, expected) in [
            ("stations.tet", "stations"),
            ("/data/soil.v1.tet", "soil.v1"),
            ("s3://bucket/a/b.tet", "b"),
            ("demo.tet.d", "demo"),
            ("s3://bucket/demo.tet.d/", "demo"),
            ("init.d", "init"),
            ("https://example.org/c.tet?version=3", "c"),
            ("noextension", "noextension"),
            ("https://example.org/", "file"),
            ("s3://bucket/arrays/overlap/", "overlap"),
        ] {
            assert_eq!(stem(location), expected, "{location}");
        }
    }

    #[test]
    fn names_are_counted_up() {
        assert_eq!(first_free("a", |_| false), "a");
        assert_eq!(first_free("a", |name| name == "a"), "a_2");
        assert_eq!(first_free("a", |name| ["a", "a_2"].contains(&name)), "a_3");
    }
}
