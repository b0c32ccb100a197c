//! Completes names, keywords, commands and paths when the user presses Tab.
//!
//! | before the cursor | candidates |
//! |---|---|
//! | `\ti` | commands |
//! | `FROM te` | tables, schemas, catalogs and table functions |
//! | `FROM 'sta` | paths |
//! | `t.va` | the columns of `t` in this statement, else the tables of schema `t` |
//! | `SELECT va … FROM t` | the columns of `t`, functions and keywords |
//!
//! `cursor.rs` finds which of these it is. Columns come from planning `SELECT * FROM t`.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use datafusion::catalog::information_schema::INFORMATION_SCHEMA;
use datafusion::common::utils::quote_identifier;
use datafusion::prelude::SessionContext;
use rustyline::Result;
use rustyline::completion::{FilenameCompleter, Pair};
use tokio::runtime::Handle;
use tokio::task::block_in_place;
use tokio::time::timeout;

use super::commands::COMMANDS;
use super::cursor::{Cursor, CursorPlace, Relation, relations};
use super::keywords::KEYWORDS;
use crate::printable::printable;

/// Longest wait for the columns of a table, during which the prompt takes no input.
const PATIENCE: Duration = Duration::from_secs(3);

/// The completions of a session.
pub(super) struct Completions {
    ctx: SessionContext,
    files: FilenameCompleter,
    /// The columns of relations, keyed by the SQL of the relation.
    columns: RefCell<HashMap<String, Vec<String>>>,
}

impl Completions {
    pub(super) fn new(ctx: &SessionContext) -> Self {
        let columns = RefCell::default();
        Self { ctx: ctx.clone(), files: FilenameCompleter::new(), columns }
    }

    /// Forgets the cached columns, which a statement may have changed.
    pub(super) fn forget(&self) {
        self.columns.borrow_mut().clear();
    }

    /// Returns the completions at a byte offset of a line, and the offset at which they start.
    pub(super) fn at(&self, line: &str, place: usize) -> Result<(usize, Vec<Pair>)> {
        let before = &line[..place];
        let begin = before.len() - before.trim_start().len();
        if before[begin..].starts_with(['\\', '.']) {
            return self.of_command(before, begin);
        }
        let Cursor { start, prefix, place: here } = Cursor::new(before);
        let candidates = match here {
            CursorPlace::Nothing => vec![],
            CursorPlace::Path => return self.paths(before, start - 1),
            CursorPlace::Table(parts) => self.tables(&parts, &prefix, true),
            CursorPlace::Member(parts) => self.members(&parts, &prefix, &relations(line, place)),
            CursorPlace::Word => self.words(&prefix, &relations(line, place)),
        };
        Ok((start, pairs(candidates)))
    }

    /// Completes a command or its argument.
    fn of_command(&self, before: &str, begin: usize) -> Result<(usize, Vec<Pair>)> {
        let Some((command, _)) = before[begin..].split_once(char::is_whitespace) else {
            let names = COMMANDS.iter().flat_map(|command| command.names);
            let names = names.filter(|name| name.starts_with(&before[begin..]));
            return Ok((begin, pairs(names.map(|name| (*name).to_owned()).collect())));
        };
        // The word at the cursor, after the last blank.
        let blank = before.char_indices().rfind(|(_, c)| c.is_whitespace());
        let start = blank.map_or(begin, |(at, c)| at + c.len_utf8());
        let of = COMMANDS.iter().find(|known| known.names.contains(&command));
        match of.map(|of| of.argument) {
            Some("FILE" | "[FILE]" | "[FOLDER]") => self.files.complete_path(before, before.len()),
            Some("[TABLE]") => {
                // The argument is completed as if it were SQL after TABLE, then moved back by that word.
                let cursor = Cursor::new(&format!("TABLE {}", &before[start..]));
                let CursorPlace::Table(parts) = cursor.place else { return Ok((start, vec![])) };
                let start = start + cursor.start - "TABLE ".len();
                Ok((start, pairs(self.tables(&parts, &cursor.prefix, false))))
            }
            Some(argument) => {
                // The lower-case words of the argument's help are what users type, such as `on` and `off`.
                let words = argument.split(|c: char| !c.is_alphanumeric() && c != '-');
                let words = words.filter(|word| {
                    word.starts_with(char::is_lowercase) && word.starts_with(&before[start..])
                });
                Ok((start, pairs(words.map(str::to_owned).collect())))
            }
            None => Ok((start, vec![])),
        }
    }

    /// Completes the path in an open quote.
    fn paths(&self, before: &str, quote: usize) -> Result<(usize, Vec<Pair>)> {
        let (start, pairs) = self.files.complete_path(&before[quote..], before.len() - quote)?;
        Ok((quote + start, pairs))
    }

    /// Returns the tables, schemas and catalogs after these parts of a name, and table functions if
    /// `has_functions`. Opens the files of a catalog only if the name contains their schema.
    fn tables(&self, parts: &[String], prefix: &str, has_functions: bool) -> Vec<String> {
        let config = self.ctx.copied_config();
        let names = &config.options().catalog;
        let (catalog, schema) = (&names.default_catalog, &names.default_schema);
        let mut found = BTreeSet::new();
        match parts {
            [] => {
                let bare = self.tables_of(catalog, schema, prefix);
                let catalogs = self.ctx.catalog_names().into_iter();
                let catalogs = catalogs.filter(|name| name != catalog && is_begun(name, prefix));
                found.extend(catalogs.map(|name| format!("{}.", quote_identifier(&name))));
                found.extend(self.schemas_of(catalog, prefix));
                for of in self.schema_names(catalog).into_iter().filter(|of| of != schema) {
                    // Tables with a bare name are offered by that name alone.
                    let tables = self.tables_of(catalog, &of, prefix).into_iter();
                    let tables = tables.filter(|table| !bare.contains(table));
                    found.extend(tables.map(|table| format!("{}.{table}", quote_identifier(&of))));
                }
                found.extend(bare);
                if has_functions && !prefix.is_empty() {
                    let state = self.ctx.state();
                    let functions = state.table_functions().keys();
                    let functions = functions.filter(|name| is_begun(name, prefix));
                    found.extend(functions.map(|name| format!("{name}(")));
                }
            }
            [of] => {
                found.extend(self.tables_of(catalog, of, prefix));
                found.extend(self.schemas_of(of, prefix));
            }
            [of, schema] => found.extend(self.tables_of(of, schema, prefix)),
            _ => {}
        }
        found.into_iter().collect()
    }

    fn schema_names(&self, catalog: &str) -> Vec<String> {
        let names = self.ctx.catalog(catalog).map(|catalog| catalog.schema_names());
        let names = names.unwrap_or_default().into_iter();
        names.filter(|name| name != INFORMATION_SCHEMA).collect()
    }

    /// Returns the schemas with this prefix, each with a dot: a table's name follows.
    fn schemas_of(&self, catalog: &str, prefix: &str) -> Vec<String> {
        let schemas = self.schema_names(catalog).into_iter().filter(|name| is_begun(name, prefix));
        schemas.map(|name| format!("{}.", quote_identifier(&name))).collect()
    }

    /// Returns the tables with this prefix, with quotes where SQL needs them.
    fn tables_of(&self, catalog: &str, schema: &str, prefix: &str) -> Vec<String> {
        let schema = self.ctx.catalog(catalog).and_then(|catalog| catalog.schema(schema));
        let tables = schema.map(|schema| schema.table_names()).unwrap_or_default().into_iter();
        let tables = tables.filter(|name| is_begun(name, prefix));
        tables.map(|name| quote_identifier(&name).into_owned()).collect()
    }

    /// Returns the columns of the relation with this name, else the tables of the schema with this name.
    fn members(&self, parts: &[String], prefix: &str, of: &[Relation<'_>]) -> Vec<String> {
        let called =
            of.iter().filter(|relation| parts.last().is_some_and(|it| relation.names.contains(it)));
        let columns: BTreeSet<String> = called
            .flat_map(|relation| self.columns(relation.sql))
            .filter(|name| is_begun(name, prefix))
            .map(|name| quote_identifier(&name).into_owned())
            .collect();
        if columns.is_empty() {
            self.tables(parts, prefix, false)
        } else {
            columns.into_iter().collect()
        }
    }

    /// Returns columns, then functions and keywords. Without a prefix, these are too many, so only columns.
    fn words(&self, prefix: &str, of: &[Relation<'_>]) -> Vec<String> {
        let columns: BTreeSet<String> = of
            .iter()
            .flat_map(|relation| self.columns(relation.sql))
            .filter(|name| is_begun(name, prefix))
            .map(|name| quote_identifier(&name).into_owned())
            .collect();
        let mut words: Vec<String> = columns.into_iter().collect();
        if prefix.is_empty() {
            return words;
        }
        let state = self.ctx.state();
        let functions: BTreeSet<&String> = (state.scalar_functions().keys())
            .chain(state.aggregate_functions().keys())
            .chain(state.window_functions().keys())
            .filter(|name| is_begun(name, prefix))
            .collect();
        words.extend(functions.into_iter().map(|name| format!("{name}(")));
        let is_lower = prefix.contains(char::is_lowercase);
        let keywords = KEYWORDS.iter().filter(|word| is_begun(word, prefix));
        words.extend(keywords.map(
            |word| {
                if is_lower { word.to_lowercase() } else { (*word).to_owned() }
            },
        ));
        words
    }

    /// Returns the columns of a relation; none if planning fails or takes longer than [`PATIENCE`].
    fn columns(&self, relation: &str) -> Vec<String> {
        if let Some(known) = self.columns.borrow().get(relation) {
            return known.clone();
        }
        let query = format!("SELECT * FROM {relation}");
        let state = self.ctx.state();
        let plan = async { timeout(PATIENCE, state.create_logical_plan(&query)).await };
        let plan = block_in_place(|| Handle::current().block_on(plan));
        let columns: Vec<String> = match plan {
            Ok(Ok(plan)) => plan.schema().fields().iter().map(|it| it.name().clone()).collect(),
            _ => vec![],
        };
        self.columns.borrow_mut().insert(relation.to_owned(), columns.clone());
        columns
    }
}

/// Whether a name begins with a prefix, in any case.
fn is_begun(name: &str, prefix: &str) -> bool {
    name.to_lowercase().starts_with(&prefix.to_lowercase())
}

fn pairs(candidates: Vec<String>) -> Vec<Pair> {
    let pair = |text: String| Pair { display: printable(&text).into_owned(), replacement: text };
    candidates.into_iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn session() -> Completions {
        let ctx = SessionContext::new();
        for sql in [
            "CREATE TABLE temperature AS SELECT 1 AS time, 2 AS \"Value\", 3 AS station",
            "CREATE TABLE \"Soil-2024\" AS SELECT 1 AS depth",
            "CREATE SCHEMA other",
            "CREATE TABLE other.tension AS SELECT 1 AS volt",
            "CREATE TABLE other.temperature AS SELECT 1 AS other",
        ] {
            ctx.sql(sql).await.unwrap();
        }
        Completions::new(&ctx)
    }

    /// Returns the completions at the bar in `line`, and their start.
    fn offered(completions: &Completions, line: &str) -> (usize, Vec<String>) {
        let place = line.find('|').unwrap();
        let (start, pairs) = completions.at(&line.replace('|', ""), place).unwrap();
        (start, pairs.into_iter().map(|pair| pair.replacement).collect())
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn names_are_completed() {
        let completions = session().await;
        for (line, start, expected) in [
            ("SELECT * FROM te|", 14, &["other.tension", "temperature"][..]),
            ("SELECT * FROM soil|", 14, &["\"Soil-2024\""]),
            ("SELECT * FROM \"So|", 14, &["\"Soil-2024\""]),
            ("SELECT * FROM oth|", 14, &["other."]),
            ("SELECT * FROM other.|", 20, &["temperature", "tension"]),
            ("DESCRIBE temp|", 9, &["temperature"]),
            (".schema temp|", 8, &["temperature"]),
            ("\\d other.t|", 9, &["temperature", "tension"]),
            ("SELECT | FROM temperature", 7, &["\"Value\"", "station", "time"]),
            ("SELECT sta| FROM temperature", 7, &["station", "starts_with("]),
            ("SELECT t.ti| FROM temperature t", 9, &["time"]),
            ("SELECT * FROM temperature WHERE other.|", 38, &["temperature", "tension"]),
            ("SELECT d| FROM temperature; SELECT d FROM other.tension", 7, &["decode("]),
            ("sel|", 0, &["select"]),
            ("SEL|", 0, &["SELECT"]),
            ("SELECT 1 -- sel|", 15, &[]),
            (".ta|", 0, &[".tables"]),
            ("\\pset form|", 6, &["format"]),
            ("\\pset\u{a0}form|", 7, &["format"]),
        ] {
            let (at, found) = offered(&completions, line);
            assert_eq!(at, start, "{line}");
            for name in expected {
                assert!(found.iter().any(|it| it == name), "{line}: {found:?}");
            }
            if expected.len() != 1 || !expected[0].ends_with('(') {
                let few = found.iter().filter(|it| !it.ends_with('(')).count();
                assert!(few <= expected.len().max(1), "{line}: {found:?}");
            }
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn paths_are_completed_in_quotes() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("it is.tet"), "").unwrap();
        let completions = session().await;
        let begun = format!("SELECT 'x', * FROM '{}/it|", folder.path().display());
        let (start, found) = offered(&completions, &begun);
        assert_eq!(start, "SELECT 'x', * FROM '".len());
        assert_eq!(found, [folder.path().join("it is.tet").display().to_string()]);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn tables_that_are_not_there_have_no_columns() {
        let completions = session().await;
        assert_eq!(offered(&completions, "SELECT | FROM nowhere").1, Vec::<String>::new());
        assert!(completions.columns.borrow().contains_key("nowhere"));
        completions.forget();
        assert!(completions.columns.borrow().is_empty());
    }
}
