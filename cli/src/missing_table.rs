//! Hints for the names of missing tables and schemas.
//!
//! A missing name may be one of several mistakes, which are tested in turn:
//!
//! | user's SQL | hint |
//! |---|---|
//! | `FROM stations.tet` | put a path in single quotes |
//! | `FROM stations`, beside the file `stations.tet` | name a file by its path |
//! | `FROM 'years'`, a folder of files | a pattern for its files |
//! | `FROM temperature`, with only the folder `years` on the command line | how its tables are named |
//! | `FROM years.temperature`, with a catalog that has the schema `years` | the full name |
//! | `FROM temprature` | the table with the most similar name |
//! | `FROM zzz` | the tables of the schema, or else the schemas |

use std::fs;
use std::path::Path;

use datafusion::catalog::information_schema::INFORMATION_SCHEMA;
use datafusion::common::TableReference;
use datafusion::common::utils::quote_identifier;
use datafusion::prelude::SessionContext;
use gridfusion::ArrayOpener;
use gridfusion::source::Ending;

use crate::alike::{did_you_mean, distance, is_like, list, meant};
use crate::file_types::{is_datafusions, writable};
use crate::requests::gridfusion_config;

/// The most entries of a folder that a hint looks at.
const MOST_ENTRIES: usize = 10_000;

/// Suggests a correction for the name of a missing table, with or without catalog and schema.
pub(crate) fn hint(name: &str, ctx: &SessionContext) -> Option<String> {
    let hint = folder(name, ctx).or_else(|| path(name, ctx)).or_else(|| in_catalog(name, ctx));
    let tables = || Tables::in_session(ctx);
    hint.or_else(|| of_folders(ctx).filter(|_| tables().is_some_and(|it| it.are_none())))
        .or_else(|| tables()?.hint(name))
}

/// Returns a name as the user wrote it: messages add the default catalog and schema.
fn written<'a>(name: &'a str, ctx: &SessionContext) -> &'a str {
    let config = ctx.copied_config();
    let names = &config.options().catalog;
    let mut written = name;
    for default in [&names.default_catalog, &names.default_schema] {
        let rest = written.strip_prefix(default.as_str()).and_then(|rest| rest.strip_prefix('.'));
        written = rest.unwrap_or(written);
    }
    written
}

/// Returns the hint for a folder in place of its files: the pattern of the most frequent ending.
fn folder(name: &str, ctx: &SessionContext) -> Option<String> {
    let folder = written(name, ctx);
    // A hint must not tell what is outside of the root.
    let root = gridfusion_config(ctx).root;
    if root.is_some_and(|root| root.check(Path::new(folder)).is_err()) {
        return None;
    }
    let entries = fs::read_dir(folder).ok()?.take(MOST_ENTRIES).flatten();
    let names: Vec<String> = entries.filter_map(|it| it.file_name().into_string().ok()).collect();
    let opener = ArrayOpener::from_session(&ctx.state());
    let endings = opener.formats().iter().flat_map(|format| format.endings());
    // Others may have an ending that does not identify a format.
    let endings = endings.filter(|it| it.what.is_some());
    let count = |it: &&Ending| names.iter().filter(|name| name.ends_with(it.ending)).count();
    let most = endings.max_by_key(count).filter(|it| count(it) > 0);
    let folder = folder.trim_end_matches('/');
    Some(match most {
        Some(it) => format!(
            "'{folder}' is a folder; all its {ending} files are one table: FROM '{folder}/*{ending}'",
            ending = it.ending
        ),
        None => format!("'{folder}' is a folder without files of arrays"),
    })
}

/// Returns how the tables of folders are named that the command line gives, if there are any.
fn of_folders(ctx: &SessionContext) -> Option<String> {
    let config = ctx.copied_config();
    let default = &config.options().catalog.default_catalog;
    let name = ctx.catalog_names().into_iter().find(|it| it != default)?;
    let schemas = ctx.catalog(&name)?.schema_names();
    let schema = schemas.iter().find(|it| *it != INFORMATION_SCHEMA)?;
    let example = TableReference::full(name.as_str(), schema.as_str(), "NAME").to_quoted_string();
    Some(format!(
        "the tables of a folder have the names FOLDER.FILE.NAME, as in {}; SHOW TABLES lists them, and a pattern such as 'FOLDER/*.nc' is all files as one table",
        example.replace("\"NAME\"", "NAME")
    ))
}

/// Suggests a correction for the name of a missing schema.
pub(crate) fn schema_hint(name: &str, ctx: &SessionContext) -> Option<String> {
    meant(name, "schemas", Tables::in_session(ctx)?.schemas())
}

/// Returns the hint for the name of a file without its quotes or its ending.
fn path(name: &str, ctx: &SessionContext) -> Option<String> {
    let written = written(name, ctx);
    let opener = ArrayOpener::from_session(&ctx.state());
    let endings = opener.formats().iter().flat_map(|format| format.endings());
    let (folders, files): (Vec<&Ending>, Vec<&Ending>) = endings.partition(|it| it.folder);
    if files.iter().chain(&folders).any(|it| written.ends_with(it.ending)) && !written.contains('/')
    {
        return Some(format!("put a path in single quotes: FROM '{written}'"));
    }
    let mut paths = files.iter().map(|it| format!("{written}{}", it.ending));
    if let Some(file) = paths.find(|file| Path::new(file).exists()) {
        return Some(format!("name a file by its path: FROM '{file}'"));
    }
    let known: Vec<String> = writable(ctx).into_iter().filter(|it| is_datafusions(it)).collect();
    let extension = Path::new(written).extension().and_then(|it| it.to_str())?;
    if Path::new(written).is_file() && extension.eq_ignore_ascii_case("geojson") {
        return Some(format!("put a path in single quotes: FROM '{written}'"));
    }
    if Path::new(written).is_file() {
        let types = known.iter().map(|it| format!(".{it}")).collect::<Vec<_>>().join(", ");
        return Some(format!(
            "SQL cannot read this file by its path; it can read {}, {types} and arrays",
            files.iter().map(|it| it.ending).collect::<Vec<_>>().join(", ")
        ));
    }
    let is_file_type = known.contains(&extension.to_lowercase());
    is_file_type.then(|| "there is no such file".to_owned())
}

/// Suggests the full name of a table in another catalog, such as a directory on the command line.
fn in_catalog(name: &str, ctx: &SessionContext) -> Option<String> {
    let config = ctx.copied_config();
    let default = &config.options().catalog.default_catalog;
    let (schema, table) = name.rsplit_once('.')?;
    let schema = schema.rsplit('.').next()?;
    let has = |catalog: &String| {
        catalog != default
            && ctx
                .catalog(catalog)
                .is_some_and(|it| it.schema_names().iter().any(|it| it == schema))
    };
    let catalog = ctx.catalog_names().into_iter().find(has)?;
    Some(did_you_mean(&TableReference::full(catalog, schema, table).to_quoted_string()))
}

/// The tables of the default catalog, by schema.
struct Tables {
    catalog: String,
    default_schema: String,
    schemas: Vec<(String, Vec<String>)>,
}

impl Tables {
    /// Lists the tables of all schemas by name, without opening them.
    fn in_session(ctx: &SessionContext) -> Option<Self> {
        let config = ctx.copied_config();
        let names = &config.options().catalog;
        let catalog = ctx.catalog(&names.default_catalog)?;
        let tables_of = |schema: String| {
            let mut tables = catalog.schema(&schema)?.table_names();
            tables.sort();
            Some((schema, tables))
        };
        Some(Self {
            catalog: names.default_catalog.clone(),
            default_schema: names.default_schema.clone(),
            schemas: catalog.schema_names().into_iter().filter_map(tables_of).collect(),
        })
    }

    fn are_none(&self) -> bool {
        self.schemas.iter().all(|(_, tables)| tables.is_empty())
    }

    fn schemas(&self) -> impl Iterator<Item = &str> {
        self.schemas.iter().map(|(schema, _)| schema.as_str())
    }

    /// Returns the hint for a missing table, given by its full name or as the user wrote it.
    fn hint(&self, name: &str) -> Option<String> {
        if self.are_none() {
            let how = "quote a path, as in FROM 'air.nc', give paths on the command line, \
                       or CREATE EXTERNAL TABLE";
            return Some(format!("the session has no tables: {how}"));
        }
        let (schema, table) = self.split(name);
        let all = self.schemas.iter().flat_map(|(schema, tables)| {
            tables.iter().map(move |table| (schema.as_str(), table.as_str()))
        });
        // Schema and table must both be similar; the best pair has the fewest wrong letters in all.
        let near = all
            .filter(|(of, candidate)| is_like(schema, of) && is_like(table, candidate))
            .min_by_key(|(of, candidate)| (distance(schema, of) + distance(table, candidate), *of));
        if let Some((schema, table)) = near {
            return Some(did_you_mean(&self.written(schema, table)));
        }
        match self.schemas.iter().find(|(of, tables)| of == schema && !tables.is_empty()) {
            Some((schema, tables)) => {
                Some(list("tables", tables.iter().map(|table| self.written(schema, table))))
            }
            None => meant(schema, "schemas", self.schemas()),
        }
    }

    /// Splits a name into schema and table. Its parts may contain dots, because messages do not quote names:
    /// a known schema `a.b` splits `a.b.c` into `a.b` and `c`.
    fn split<'a>(&'a self, name: &'a str) -> (&'a str, &'a str) {
        let name = name.strip_prefix(&*format!("{}.", self.catalog)).unwrap_or(name);
        let known = self
            .schemas()
            .find_map(|schema| Some((schema, name.strip_prefix(schema)?.strip_prefix('.')?)));
        known.or_else(|| name.split_once('.')).unwrap_or((&self.default_schema, name))
    }

    /// Returns the name of a table as SQL needs it, with quotes and a schema where necessary.
    fn written(&self, schema: &str, table: &str) -> String {
        if schema == self.default_schema {
            return quote_identifier(table).into_owned();
        }
        TableReference::partial(schema, table).to_quoted_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_may_have_dots() {
        let tables = Tables {
            catalog: "datafusion".to_owned(),
            default_schema: "public".to_owned(),
            schemas: vec![
                ("public".to_owned(), vec![]),
                ("soil.v1".to_owned(), vec!["Depth".to_owned()]),
            ],
        };
        assert_eq!(tables.split("datafusion.public.a.tet"), ("public", "a.tet"));
        assert_eq!(tables.split("x"), ("public", "x"));
        let hint = tables.hint("datafusion.soil.v1.dept");
        assert_eq!(hint.as_deref(), Some("did you mean \"soil.v1\".\"Depth\"?"));
        let hint = tables.hint("datafusion.air.v1.depth");
        assert_eq!(hint.as_deref(), Some("the schemas are public, \"soil.v1\""));
    }
}
