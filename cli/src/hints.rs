//! What a user may have meant who named something that is not there.
//!
//! DataFusion suggests columns and functions itself. Tables, schemas, table functions, formats and
//! settings it only says are missing, in messages that this module knows by heart: a message that it
//! does not know gets no hint, and tests notice when one has changed.

use std::collections::BTreeSet;
use std::path::Path;

use datafusion::common::TableReference;
use datafusion::common::utils::datafusion_strsim::levenshtein;
use datafusion::common::utils::quote_identifier;
use datafusion::error::DataFusionError;
use datafusion::prelude::SessionContext;

use crate::errors::describe;
use crate::memory;

/// Beginnings of DataFusion's messages about `STORED AS xyz`, `COPY … TO 'a.xyz'` and `COPY … TO 'a'`.
const NO_FACTORY: &str = "Unable to find factory for ";
pub(crate) const NO_FORMAT: &str = "There is no registered file format with ext ";
const NO_EXTENSION: &str = "Format not explicitly set and unable to get file extension";

/// Types of files that DataFusion may know beside arrays.
const FILE_TYPES: [&str; 5] = ["arrow", "avro", "csv", "json", "parquet"];

/// Names that are listed if none is like the one that was asked for.
const LISTED: usize = 8;

/// The same error, with a hint behind its message if there is one.
pub(crate) fn with_hint(error: DataFusionError, ctx: &SessionContext) -> DataFusionError {
    let message = describe(&error);
    let said = reworded(&message, ctx);
    match memory::advice(&error).map(str::to_owned).or_else(|| hint(&message, ctx)) {
        Some(hint) => DataFusionError::Plan(format!("{}; {hint}", said.trim_end_matches('.'))),
        None if said != message => DataFusionError::Plan(said),
        None => error,
    }
}

/// A message in the words of somebody who does not know the engine: without the names of defaults, which
/// nobody has written, and with types of files instead of factories.
fn reworded(message: &str, ctx: &SessionContext) -> String {
    for unknown in [NO_FACTORY, NO_FORMAT] {
        if let Some(name) = between(message, unknown, "") {
            return format!("there is no file type '{}'", name.to_lowercase());
        }
    }
    if let Some(name) = window_function(message, ctx) {
        return format!("{name} has no OVER");
    }
    if message.contains(NO_EXTENSION) {
        return "the name of the file does not end in its type, as .csv does; say it: STORED AS csv"
            .to_owned();
    }
    let config = ctx.copied_config();
    let names = &config.options().catalog;
    let (catalog, schema) = (&names.default_catalog, &names.default_schema);
    let message = message.replace(&format!("'{catalog}.{schema}."), "'");
    let message = message.replace(&format!("able '{catalog}."), "able '");
    message.replace(&format!(" {catalog}.{schema}."), " ")
}

fn hint(message: &str, ctx: &SessionContext) -> Option<String> {
    if let Some(name) = between(message, "table function '", "' not found") {
        let state = ctx.state();
        return meant(name, "table functions", state.table_functions().keys().map(String::as_str));
    }
    let table = between(message, "table '", "' not found")
        .or_else(|| between(message, "Table '", "' doesn't exist"));
    if let Some(name) = table {
        let hint = path(name, ctx).or_else(|| in_catalog(name, ctx));
        return hint.or_else(|| Tables::of(ctx)?.hint(name));
    }
    if let Some(name) = between(message, "failed to resolve schema: ", "") {
        return meant(name, "schemas", Tables::of(ctx)?.schemas());
    }
    if let Some(name) = between(message, NO_FORMAT, "") {
        return meant(name, "types that can be written", writable(ctx).into_iter());
    }
    if message.contains(NO_EXTENSION) {
        return Some(list(
            "types that can be written",
            writable(ctx).into_iter().map(str::to_owned),
        ));
    }
    if let Some(name) = between(message, NO_FACTORY, "") {
        // In lower case, which is as good, and needs no quotes.
        let formats: Vec<String> =
            ctx.state().table_factories().keys().map(|format| format.to_lowercase()).collect();
        return meant(name, "types", formats.iter().map(String::as_str));
    }
    for (noun, has) in [("no dataset \"", "; the file has "), ("no array \"", "; there is ")] {
        if let Some(name) = between(message, noun, &format!("\"{has}")) {
            let (_, listed) = message.split_once(has)?;
            return closest(name, listed.split('"').skip(1).step_by(2)).map(did_you_mean);
        }
    }
    if let Some(name) = window_function(message, ctx) {
        return Some(format!("{name} is a window function: {name}(…) OVER (ORDER BY …)"));
    }
    // Not of the columns of a new table. Most such statements are changed before anybody sees this.
    if between(message, "Schema contains duplicate unqualified field name ", "")
        .is_some_and(|name| name.contains('('))
    {
        let how =
            "aggregates and keys that differ by a CAST only have the same name for the planner";
        return Some(format!(
            "{how}; write arrow_cast(x, 'Float64') for CAST(x AS DOUBLE) in one of them"
        ));
    }
    setting(message, ctx)
}

/// What to say of a name that is a file without quotes, or without its ending.
fn path(name: &str, ctx: &SessionContext) -> Option<String> {
    let config = ctx.copied_config();
    let names = &config.options().catalog;
    let mut written = name;
    for default in [&names.default_catalog, &names.default_schema] {
        let rest = written.strip_prefix(default.as_str()).and_then(|rest| rest.strip_prefix('.'));
        written = rest.unwrap_or(written);
    }
    let is_path = written.ends_with(".tet") && !written.contains('/');
    let file = format!("{written}.tet");
    if is_path {
        return Some(format!("a path stands in single quotes: FROM '{written}'"));
    }
    if Path::new(&file).exists() {
        return Some(format!("a file is a table by its path: FROM '{file}'"));
    }
    let known = writable(ctx);
    let extension = Path::new(written).extension().and_then(|it| it.to_str())?;
    if Path::new(written).is_file() {
        let types = known.iter().map(|it| format!(".{it}")).collect::<Vec<_>>().join(", ");
        return Some(format!(
            "it is a file, but not one that is a table by its path: those are .tet, {types} and arrays"
        ));
    }
    let is_file_type = known.contains(&&*extension.to_lowercase());
    is_file_type.then(|| "there is no such file".to_owned())
}

/// The name of a function that is not found, but would be with a window behind it.
fn window_function<'a>(message: &'a str, ctx: &SessionContext) -> Option<&'a str> {
    let name = between(message, "Invalid function '", "'")?;
    ctx.state().window_functions().contains_key(name).then_some(name)
}

/// The types of files that `COPY` writes.
fn writable(ctx: &SessionContext) -> Vec<&'static str> {
    let state = ctx.state();
    FILE_TYPES.into_iter().filter(|it| state.get_file_format_factory(it).is_some()).collect()
}

/// The full name of a table of another catalog, as a directory on the command line is one.
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

/// The setting that a `SET` or `SHOW` was about.
fn setting(message: &str, ctx: &SessionContext) -> Option<String> {
    let config = ctx.copied_config();
    let options = config.options();
    if let Some(name) = between(message, "'", "' is not a variable which can be viewed") {
        let keys: Vec<String> = options.entries().into_iter().map(|entry| entry.key).collect();
        return closest(name, keys.iter().map(String::as_str)).map(did_you_mean);
    }
    // The message has the last part of the name only; extensions leave their own name out.
    let name = between(message, "Config value \"", "\" not found on ")?;
    let ours = options.extensions.iter().flat_map(|(prefix, extension)| {
        let full = move |key: &str| format!("{prefix}.{}", key.rsplit('.').next().unwrap_or(key));
        extension.entries().into_iter().map(move |entry| full(&entry.key))
    });
    let theirs = options.entries().into_iter().map(|entry| entry.key);
    let keys: Vec<String> = ours.chain(theirs.filter(|key| key.contains('.'))).collect();
    let last = keys.iter().filter_map(|key| Some((key, key.rsplit('.').next()?)));
    let near = last.filter(|(_, last)| is_like(name, last));
    near.min_by_key(|(_, last)| distance(name, last)).map(|(key, _)| did_you_mean(key))
}

/// What stands between two texts of a message.
fn between<'a>(message: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let (_, rest) = message.split_once(before)?;
    if after.is_empty() { Some(rest) } else { rest.split_once(after).map(|(name, _)| name) }
}

fn did_you_mean(name: &str) -> String {
    format!("did you mean {name}?")
}

/// The candidate that is most like `name`, or a list of them.
fn meant<'a>(name: &str, kind: &str, candidates: impl Iterator<Item = &'a str>) -> Option<String> {
    let candidates: BTreeSet<&str> = candidates.collect();
    match closest(name, candidates.iter().copied()) {
        Some(candidate) => Some(did_you_mean(&quote_identifier(candidate))),
        None if candidates.is_empty() => None,
        None => {
            let quoted = candidates.iter().map(|name| quote_identifier(name).into_owned());
            Some(list(kind, quoted))
        }
    }
}

fn list(kind: &str, names: impl ExactSizeIterator<Item = String>) -> String {
    let more = names.len().saturating_sub(LISTED);
    let listed = names.take(LISTED).collect::<Vec<_>>().join(", ");
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("the {kind} are {listed}{rest}")
}

fn closest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let near = candidates.filter(|candidate| is_like(name, candidate));
    near.min_by_key(|candidate| (distance(name, candidate), *candidate))
}

/// Whether one name may be a slip of the pen for the other: a third of it is wrong, or two letters
/// have changed places.
fn is_like(name: &str, candidate: &str) -> bool {
    let length = name.chars().count().max(candidate.chars().count());
    let wrong = distance(name, candidate);
    wrong <= length.div_ceil(3) && wrong < length
}

fn distance(name: &str, candidate: &str) -> usize {
    levenshtein(&name.to_lowercase(), &candidate.to_lowercase())
}

/// The tables of the default catalog, by schema.
struct Tables {
    catalog: String,
    default_schema: String,
    schemas: Vec<(String, Vec<String>)>,
}

impl Tables {
    fn of(ctx: &SessionContext) -> Option<Self> {
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

    fn schemas(&self) -> impl Iterator<Item = &str> {
        self.schemas.iter().map(|(schema, _)| schema.as_str())
    }

    /// What to say of a missing table by its name, full or as it was written.
    fn hint(&self, name: &str) -> Option<String> {
        if self.schemas.iter().all(|(_, tables)| tables.is_empty()) {
            let how = "name a file on the command line, or CREATE EXTERNAL TABLE";
            return Some(format!("there are no tables at all: {how}"));
        }
        let (schema, table) = self.split(name);
        let all = self.schemas.iter().flat_map(|(schema, tables)| {
            tables.iter().map(move |table| (schema.as_str(), table.as_str()))
        });
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

    /// The schema and the table of a name whose parts may have dots in them: messages quote nothing.
    fn split<'a>(&'a self, name: &'a str) -> (&'a str, &'a str) {
        let name = name.strip_prefix(&*format!("{}.", self.catalog)).unwrap_or(name);
        let known = self
            .schemas()
            .find_map(|schema| Some((schema, name.strip_prefix(schema)?.strip_prefix('.')?)));
        known.or_else(|| name.split_once('.')).unwrap_or((&self.default_schema, name))
    }

    /// A table as SQL has to name it.
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
    fn names_are_alike_up_to_a_third() {
        assert!(is_like("tempreture", "temperature") && is_like("TEMP", "temp"));
        assert!(is_like("tmie", "time") && is_like("t1", "t2"));
        assert!(!is_like("a", "b") && !is_like("", "a") && !is_like("abc", "axy"));
        let candidates = ["elevation", "temperatures", "temperature"];
        assert_eq!(closest("temperatur", candidates.into_iter()), Some("temperature"));
        assert_eq!(closest("rain", candidates.into_iter()), None);
    }

    #[test]
    fn lists_are_short() {
        let names = |n: usize| (0..n).map(|at| format!("t{at}"));
        assert_eq!(list("tables", names(2)), "the tables are t0, t1");
        assert!(list("tables", names(20)).ends_with("t6, t7 and 12 more"));
    }

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

    #[test]
    fn names_of_defaults_are_left_out() {
        let ctx = SessionContext::new();
        for (message, expected) in [
            ("table 'datafusion.public.rain' not found", "table 'rain' not found"),
            ("table 'datafusion.air.rain' not found", "table 'air.rain' not found"),
            ("'datafusion.public' is odd", "'datafusion.public' is odd"),
            ("SET 'datafusion.execution.x'", "SET 'datafusion.execution.x'"),
            ("Unable to find factory for XYZ", "there is no file type 'xyz'"),
        ] {
            assert_eq!(reworded(message, &ctx), expected);
        }
    }

    #[test]
    fn other_messages_get_no_hint() {
        let error = DataFusionError::Plan("the moon is full".to_owned());
        assert_eq!(describe(&with_hint(error, &SessionContext::new())), "the moon is full");
    }
}
