//! Suggests corrections for errors about missing tables, schemas, table functions and settings.
//!
//! DataFusion itself suggests columns and functions. For the others, its errors (`Plan`, `Execution` or
//! `Configuration`) hold the missing name only in their text, so this module matches texts. A text that
//! DataFusion changes gets no hint; a test compares each one with DataFusion.

use datafusion::error::DataFusionError;
use datafusion::prelude::SessionContext;

use crate::alike::{closest, did_you_mean, distance, is_like, meant};
use crate::calendars::with_calendar;
use crate::errors::describe;
use crate::missing_column::with_columns;
use crate::mistyped::with_column;
use crate::store_hints::{self, without_xml};
use crate::unique_names::is_clash_inside;
use crate::{memory, missing_table};

/// The text before and after a name in an error message.
#[derive(Debug, Clone, Copy)]
struct Text {
    before: &'static str,
    after: &'static str,
}

impl Text {
    /// Returns the name in a message with this text.
    fn name<'a>(&self, message: &'a str) -> Option<&'a str> {
        let (_, rest) = message.split_once(self.before)?;
        if self.after.is_empty() {
            return Some(rest);
        }
        rest.split_once(self.after).map(|(name, _)| name)
    }
}

/// The message for `SELECT … FROM name(…)`.
const NO_TABLE_FUNCTION: Text = Text { before: "table function '", after: "' not found" };
/// The message for every other statement that reads a table; the name has its catalog and schema.
const NO_TABLE: Text = Text { before: "table '", after: "' not found" };
/// The message for `DROP TABLE`; the name is as the user wrote it.
const NO_TABLE_TO_DROP: Text = Text { before: "Table '", after: "' doesn't exist" };
/// The message for `CREATE TABLE schema.name`.
const NO_SCHEMA: Text = Text { before: "failed to resolve schema: ", after: "" };
/// The message for a function. DataFusion adds a suggestion, which is useless for window functions without
/// `OVER`.
const NO_FUNCTION: Text = Text { before: "Invalid function '", after: "'" };
/// The message for `SHOW`.
const NO_VARIABLE: Text = Text { before: "'", after: "' is not a variable which can be viewed" };
/// The message for `SET`; the name is the last part of the written one.
const NO_SETTING: Text = Text { before: "Config value \"", after: "\" not found on " };

/// The messages of the library, each with the text before its list of existing names.
const NO_MEMBERS: [(Text, &str); 2] = [
    (Text { before: "no dataset \"", after: "\"; the file has " }, "; the file has "),
    (Text { before: "no array \"", after: "\"; there is " }, "; there is "),
];

/// Returns the error of the statement `sql` with what helps to mend it.
pub(crate) async fn explained(
    error: DataFusionError,
    ctx: &SessionContext,
    sql: &str,
) -> DataFusionError {
    let error = Box::pin(with_columns(error, ctx, sql)).await;
    let error = Box::pin(with_column(error, ctx, sql)).await;
    let error = Box::pin(with_calendar(error, ctx, sql)).await;
    with_hint(error, ctx)
}

/// Appends a hint to the message of an error, if there is one.
pub(crate) fn with_hint(error: DataFusionError, ctx: &SessionContext) -> DataFusionError {
    let message = describe(&error);
    if let Some(name) = window_function(&message, ctx) {
        let how = format!("{name} is a window function: {name}(…) OVER (ORDER BY …)");
        return DataFusionError::Plan(format!("{name} has no OVER; {how}"));
    }
    let shown = without_xml(&without_defaults(&message, ctx));
    let general = || memory::advice(&error).or_else(|| clash(&error));
    let general = || general().or_else(|| dictionary(&message)).map(str::to_owned);
    let advice = || general().or_else(|| store_hints::advice(&error, ctx));
    match advice().or_else(|| hint(&message, ctx)) {
        Some(hint) => DataFusionError::Plan(format!("{}; {hint}", shown.trim_end_matches('.'))),
        None if shown != message => DataFusionError::Plan(shown),
        None => error,
    }
}

/// Removes the names of the default catalog and schema, which DataFusion added to the user's names.
fn without_defaults(message: &str, ctx: &SessionContext) -> String {
    let config = ctx.copied_config();
    let names = &config.options().catalog;
    let (catalog, schema) = (&names.default_catalog, &names.default_schema);
    let message = message.replace(&format!("'{catalog}.{schema}."), "'");
    let message = message.replace(&format!("able '{catalog}."), "able '");
    message.replace(&format!(" {catalog}.{schema}."), " ")
}

fn hint(message: &str, ctx: &SessionContext) -> Option<String> {
    if let Some(name) = NO_TABLE_FUNCTION.name(message) {
        let state = ctx.state();
        return meant(name, "table functions", state.table_functions().keys().map(String::as_str));
    }
    if let Some(name) = NO_TABLE.name(message).or_else(|| NO_TABLE_TO_DROP.name(message)) {
        return missing_table::hint(name, ctx);
    }
    if let Some(name) = NO_SCHEMA.name(message) {
        return missing_table::schema_hint(name, ctx);
    }
    for (text, has) in NO_MEMBERS {
        if let Some(name) = text.name(message) {
            let (_, listed) = message.split_once(has)?;
            return closest(name, listed.split('"').skip(1).step_by(2)).map(did_you_mean);
        }
    }
    setting(message, ctx)
}

/// Returns the name of an unknown function that is a window function without `OVER`.
fn window_function<'a>(message: &'a str, ctx: &SessionContext) -> Option<&'a str> {
    let name = NO_FUNCTION.name(message)?;
    ctx.state().window_functions().contains_key(name).then_some(name)
}

/// Returns the hint for two expressions with the same name. [`crate::unique_names`] avoids most of these
/// errors.
fn clash(error: &DataFusionError) -> Option<&'static str> {
    is_clash_inside(error).then_some(
        "aggregates or keys that differ only in a CAST get the same name from the planner; \
         write arrow_cast(x, 'Float64') for CAST(x AS DOUBLE) in one of them",
    )
}

/// Returns the hint for a column whose dictionary changes from batch to batch.
fn dictionary(message: &str) -> Option<&'static str> {
    message.contains("Dictionary replacement detected").then_some(
        "write Parquet, or an Arrow stream as in -o x.arrows, or CAST the column to VARCHAR",
    )
}

/// Suggests a setting for a misspelled name in `SET` or `SHOW`.
fn setting(message: &str, ctx: &SessionContext) -> Option<String> {
    let config = ctx.copied_config();
    let options = config.options();
    if let Some(name) = NO_VARIABLE.name(message) {
        let keys: Vec<String> = options.entries().into_iter().map(|entry| entry.key).collect();
        return closest(name, keys.iter().map(String::as_str)).map(did_you_mean);
    }
    // The message has only the last part of the name. Keys of some extensions lack the extension's prefix.
    let name = NO_SETTING.name(message)?;
    let ours = options.extensions.iter().flat_map(|(prefix, extension)| {
        let full = move |key: String| match key.split_once('.') {
            Some((first, _)) if first == prefix => key,
            _ => format!("{prefix}.{key}"),
        };
        extension.entries().into_iter().map(move |entry| full(entry.key))
    });
    let theirs = options.entries().into_iter().map(|entry| entry.key);
    let keys: Vec<String> = ours.chain(theirs.filter(|key| key.contains('.'))).collect();
    let last = keys.iter().filter_map(|key| Some((key, key.rsplit('.').next()?)));
    let near = last.filter(|(_, last)| is_like(name, last));
    near.min_by_key(|(_, last)| distance(name, last)).map(|(key, _)| did_you_mean(key))
}

#[cfg(test)]
mod tests {
    use datafusion::prelude::SessionConfig;

    use super::*;

    /// If an update of DataFusion breaks this test, the failure shows the new text.
    #[tokio::test]
    async fn texts_are_those_of_datafusion() {
        let config = SessionConfig::new().with_information_schema(true);
        let ctx = SessionContext::new_with_config(config);
        for (sql, text, name) in [
            ("SELECT * FROM nope(1)", NO_TABLE_FUNCTION, "nope"),
            ("SELECT * FROM nope", NO_TABLE, "datafusion.public.nope"),
            ("DESCRIBE nope", NO_TABLE, "datafusion.public.nope"),
            ("DROP TABLE nope", NO_TABLE_TO_DROP, "nope"),
            ("CREATE TABLE nope.t AS SELECT 1", NO_SCHEMA, "nope"),
            ("SELECT rank()", NO_FUNCTION, "rank"),
            ("SHOW nope", NO_VARIABLE, "nope"),
            ("SET datafusion.execution.nope = 1", NO_SETTING, "nope"),
        ] {
            let message = describe(&ctx.sql(sql).await.unwrap_err());
            assert_eq!(text.name(&message), Some(name), "{sql}: {message}");
        }
    }

    #[test]
    fn names_of_defaults_are_left_out() {
        let ctx = SessionContext::new();
        for (message, expected) in [
            ("table 'datafusion.public.rain' not found", "table 'rain' not found"),
            ("table 'datafusion.air.rain' not found", "table 'air.rain' not found"),
            ("'datafusion.public' is odd", "'datafusion.public' is odd"),
            ("SET 'datafusion.execution.x'", "SET 'datafusion.execution.x'"),
        ] {
            assert_eq!(without_defaults(message, &ctx), expected);
        }
    }

    #[test]
    fn other_messages_get_no_hint() {
        let error = DataFusionError::Plan("the moon is full".to_owned());
        assert_eq!(describe(&with_hint(error, &SessionContext::new())), "the moon is full");
    }
}
