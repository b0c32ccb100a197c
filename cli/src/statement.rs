//! Splits SQL into statements, and parses and plans them.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::{mem, slice};

use datafusion::common::{ParamValues, plan_datafusion_err, plan_err};
use datafusion::dataframe::DataFrame;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{self, CreateExternalTable, DdlStatement, LogicalPlan, SetVariable};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::{DFParser, Statement};
use datafusion::sql::sqlparser::ast::{Statement as SqlStatement, Value};
use datafusion::sql::sqlparser::dialect::{Dialect, dialect_from_str};
use datafusion::sql::sqlparser::parser::ParserError;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
use gridfusion::provider::qualify_by_shown_names;
use gridfusion::{has_secrets, shown_location, without_secrets};
use url::Url;

use crate::placeholders::bound;
use crate::store::{StoreOptions, Stores, is_of_store};
use crate::{file_types, from_first, named_coordinates, stdin, tables, unique_names};

/// Returns the SQL dialect of the session, which a statement may change.
fn dialect(ctx: &SessionContext) -> Result<Box<dyn Dialect>> {
    let name = ctx.copied_config().options().sql_parser.dialect;
    dialect_from_str(name).ok_or_else(|| plan_datafusion_err!("there is no SQL dialect '{name}'"))
}

/// Parses the statements of a text.
pub(crate) fn parse(ctx: &SessionContext, sql: &str) -> Result<VecDeque<Statement>> {
    DFParser::parse_sql_with_dialect(&from_first::with_select(sql), &*dialect(ctx)?)
}

/// Parses `sql`, which must be a single query.
pub(crate) fn parse_query(ctx: &SessionContext, sql: &str) -> Result<Statement> {
    let mut statements = parse(ctx, sql)?;
    match (statements.pop_front(), statements.is_empty()) {
        (Some(Statement::Statement(query)), true) if matches!(*query, SqlStatement::Query(_)) => {
            Ok(Statement::Statement(query))
        }
        _ => plan_err!("one query is needed here, for instance SELECT x, y FROM t"),
    }
}

/// Returns the texts of the statements of `sql`. Blanks replace the text before each statement.
pub(crate) fn texts(ctx: &SessionContext, sql: &str) -> Result<impl Iterator<Item = String>> {
    let statements = split(sql, &*dialect(ctx)?)?.into_iter();
    Ok(statements.map(|at| in_place(&sql[..at.start], &sql[at])))
}

/// Returns the byte ranges of the statements of `sql`, without the semicolons between them.
///
/// Each statement keeps its own text, because the parser's printed form loses parts, such as the options of
/// `CREATE EXTERNAL TABLE`.
fn split(sql: &str, dialect: &dyn Dialect) -> Result<Vec<Range<usize>>> {
    let semicolons = places(sql, dialect, |token| (*token == Token::SemiColon).then_some(()))?;
    let mut statements = Vec::new();
    let mut start = 0;
    for (at, ()) in semicolons {
        if sql[at..].starts_with(';') {
            statements.push(start..at);
            start = at + 1;
        }
    }
    statements.push(start..sql.len());
    Ok(statements)
}

/// Returns the tokens that `choose` turns into something, with their byte offsets, in order.
fn places<T>(
    sql: &str,
    dialect: &dyn Dialect,
    choose: impl Fn(&Token) -> Option<T>,
) -> Result<Vec<(usize, T)>> {
    let tokens =
        Tokenizer::new(dialect, sql).tokenize_with_location().map_err(ParserError::from)?;
    let chosen = tokens.iter().filter_map(|token| {
        let start = token.span.start;
        Some(((start.line, start.column), choose(&token.token)?))
    });
    let mut chosen: HashMap<(u64, u64), T> = chosen.collect();

    // Tokens have lines and columns, but no byte offsets: the loop counts both, in characters.
    let mut places = Vec::new();
    let (mut line, mut column) = (1, 1);
    for (at, character) in sql.char_indices() {
        if let Some(it) = chosen.remove(&(line, column)) {
            places.push((at, it));
        }
        (line, column) = if character == '\n' { (line + 1, 1) } else { (line, column + 1) };
    }
    Ok(places)
}

/// Returns the placeholders `?`, `$1` and `$name` of a text, with their byte offsets.
pub(crate) fn placeholders(ctx: &SessionContext, sql: &str) -> Result<Vec<(usize, String)>> {
    places(sql, &*dialect(ctx)?, |token| match token {
        Token::Placeholder(name) => Some(name.clone()),
        Token::Question => Some("?".to_owned()),
        _ => None,
    })
}

/// Puts blanks in place of the text before a statement, so that errors name its line and column in the
/// whole text.
fn in_place(before: &str, statement: &str) -> String {
    let lines = before.matches('\n').count();
    let columns = before.chars().rev().take_while(|character| *character != '\n').count();
    format!("{}{}{statement}", "\n".repeat(lines), " ".repeat(columns))
}

/// A statement that can be run.
pub(crate) struct PlannedStatement {
    pub(crate) logical: LogicalPlan,
    pub(crate) physical: Arc<dyn ExecutionPlan>,
    pub(crate) context: TaskContext,
}

/// Plans a statement. If names clash inside its plan, changes casts so that they differ. If a column is missing, gives tables all
/// coordinates.
pub(crate) async fn plan(ctx: &SessionContext, statement: Statement) -> Result<PlannedStatement> {
    Box::pin(plan_with(ctx, statement, None)).await
}

/// As [`plan`], with values for placeholders.
pub(crate) async fn plan_with(
    ctx: &SessionContext,
    mut statement: Statement,
    values: Option<&ParamValues>,
) -> Result<PlannedStatement> {
    if let Statement::Statement(tables) = &statement
        && matches!(**tables, SqlStatement::ShowTables { .. })
    {
        statement = parse_query(ctx, &tables::listed(ctx))?;
    }
    qualify_by_shown_names(&mut statement);
    hide_in_explain(ctx, &mut statement)?;
    let outcome = Box::pin(plan_with_unique_names(ctx, statement.clone(), values)).await;
    let Err(error) = outcome else { return outcome };
    if !named_coordinates::is_missing_column(&error) {
        return Err(error);
    }
    match Box::pin(named_coordinates::with_coordinates(ctx, statement)).await {
        Some(wider) => {
            Box::pin(plan_with_unique_names(ctx, wider, values)).await.map_err(|_| error)
        }
        None => Err(error),
    }
}

async fn plan_with_unique_names(
    ctx: &SessionContext,
    statement: Statement,
    values: Option<&ParamValues>,
) -> Result<PlannedStatement> {
    let error = match Box::pin(plan_as_written(ctx, statement.clone(), values)).await {
        Err(error) if unique_names::is_clash(&error) => error,
        outcome => return outcome,
    };
    match Box::pin(unique_names::with_casts_shown(ctx, statement)).await {
        Some(shown) => Box::pin(plan_as_written(ctx, shown, values)).await.map_err(|_| error),
        None => Err(error),
    }
}

/// Takes the options of object stores from a `COPY` that is explained: the plan shows its options and its target. Only
/// `EXPLAIN ANALYZE` writes, so only that needs them.
fn hide_in_explain(ctx: &SessionContext, statement: &mut Statement) -> Result<()> {
    let Statement::Explain(explain) = statement else { return Ok(()) };
    let Statement::CopyTo(copy) = &mut *explain.statement else { return Ok(()) };
    if explain.options.analyze {
        let text = |value: &Value| value.clone().into_string().unwrap_or_else(|| value.to_string());
        let options = copy.options.iter().map(|(name, value)| (name.clone(), text(value)));
        configure_stores(ctx, slice::from_ref(&copy.target), &options.collect())?;
    } else {
        copy.target = shown_location(&copy.target);
    }
    copy.options.retain(|(name, _)| !is_of_store(name));
    Ok(())
}

async fn plan_as_written(
    ctx: &SessionContext,
    statement: Statement,
    values: Option<&ParamValues>,
) -> Result<PlannedStatement> {
    let mut plan = logical(ctx, statement).await?;
    if let Some(values) = values {
        plan = bound(plan, values)?;
    }
    planned(execute(ctx, plan).await?).await
}

/// Plans a `COPY` of the rows of another plan, in place of those that the statement has.
pub(crate) async fn plan_copy(
    ctx: &SessionContext,
    statement: Statement,
    rows: &LogicalPlan,
) -> Result<PlannedStatement> {
    let mut plan = logical(ctx, statement).await?;
    if let LogicalPlan::Copy(copy) = &mut plan {
        copy.input = Arc::new(rows.clone());
    }
    planned(execute(ctx, plan).await?).await
}

async fn planned(frame: DataFrame) -> Result<PlannedStatement> {
    let (logical, context) = (frame.logical_plan().clone(), frame.task_ctx());
    let physical = Box::pin(frame.create_physical_plan()).await?;
    file_types::check_columns(&physical)?;
    Ok(PlannedStatement { logical, physical, context })
}

async fn logical(ctx: &SessionContext, statement: Statement) -> Result<LogicalPlan> {
    file_types::check(ctx, &statement)?;
    Box::pin(unique_names::plan(ctx, statement)).await
}

/// Executes a plan. DDL and `SET` run at once, other plans when the returned frame runs.
async fn execute(ctx: &SessionContext, mut plan: LogicalPlan) -> Result<DataFrame> {
    match &mut plan {
        LogicalPlan::Ddl(DdlStatement::CreateExternalTable(table)) => {
            configure_stores(ctx, &table.locations, &table.options)?;
            prepare_table(table);
            file_types::check_table(ctx, table)?;
        }
        LogicalPlan::Copy(copy) => {
            refuse_stdout(&copy.output_url)?;
            configure_stores(ctx, slice::from_ref(&copy.output_url), &copy.options)?;
            check_folder(&copy.output_url)?;
            copy.options.retain(|name, _| !is_of_store(name));
        }
        LogicalPlan::Statement(logical_expr::Statement::SetVariable(set)) => {
            check_setting(ctx, set)?;
        }
        _ => {}
    }
    Box::pin(ctx.execute_logical_plan(plan)).await
}

/// Refuses a folder for temporary files outside of the session's root, and values with secrets, which `SHOW ALL` would show.
fn check_setting(ctx: &SessionContext, set: &SetVariable) -> Result<()> {
    refuse_secret_setting(&set.variable, &set.value)?;
    match Stores::in_session(ctx) {
        Some(stores) if set.variable.eq_ignore_ascii_case("datafusion.runtime.temp_directory") => {
            Ok(stores.check_folder(&set.value)?)
        }
        _ => Ok(()),
    }
}

/// Refuses a setting whose value has the password or the signature of a URL.
pub(crate) fn refuse_secret_setting(name: &str, value: &str) -> Result<()> {
    match has_secrets(value) || without_secrets(value) != value {
        false => Ok(()),
        true => plan_err!(
            "the setting {name} has a URL with a password or a signature, which SHOW ALL would show; leave them out"
        ),
    }
}

/// Sets the options of object stores that a statement has, for the stores of `locations`.
fn configure_stores(
    ctx: &SessionContext,
    locations: &[String],
    options: &HashMap<String, String>,
) -> Result<()> {
    let options = StoreOptions::from_sql(options)?;
    let Some(stores) = Stores::in_session(ctx) else { return Ok(()) };
    let mut locations = locations.iter();
    locations.try_for_each(|location| Ok(stores.configure(location, &options)?))
}

/// Replaces the parts of a table that DataFusion's formats do not understand: standard input, and settings
/// of object stores.
fn prepare_table(table: &mut CreateExternalTable) {
    if !file_types::is_datafusions(&table.file_type) {
        return;
    }
    table.options.retain(|name, _| !is_of_store(name));
    let locations = mem::take(&mut table.locations).into_iter();
    table.locations =
        locations.map(|location| stdin::location(location, &table.file_type)).collect();
}

/// Refuses a `COPY` to standard output: a copy appears only when complete, and rows in a pipe appear at once.
fn refuse_stdout(target: &str) -> Result<()> {
    match ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "-"].contains(&target) {
        true => plan_err!(
            "COPY writes files, not standard output; run the query with --format csv, tsv, json, nd-json, parquet or arrow"
        ),
        false => Ok(()),
    }
}

/// Refuses to write below a folder that does not exist, as a name with a mistake would. DataFusion makes all folders.
fn check_folder(target: &str) -> Result<()> {
    let url = Url::parse(target).ok().filter(|it| it.scheme() == "file");
    let path = match url {
        Some(url) => url.to_file_path().unwrap_or_default(),
        None if target.contains("://") => return Ok(()),
        None => PathBuf::from(target),
    };
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    match folder.filter(|folder| !folder.is_dir()) {
        Some(folder) => plan_err!(
            "cannot write '{target}': there is no folder '{}'; make it first",
            folder.display()
        ),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::GenericDialect;

    use super::*;

    fn pieces(sql: &str) -> Vec<&str> {
        split(sql, &GenericDialect {}).unwrap().into_iter().map(|range| sql[range].trim()).collect()
    }

    #[test]
    fn only_semicolons_between_statements_split() {
        assert_eq!(pieces("SELECT 1"), ["SELECT 1"]);
        assert_eq!(pieces(""), [""]);
        let sql = "SELECT ';' AS \";ä\";\r\n-- one; two\nSELECT 'é''; ' /* ; */ ;; SELECT 3;\n";
        let expected =
            ["SELECT ';' AS \";ä\"", "-- one; two\nSELECT 'é''; ' /* ; */", "", "SELECT 3", ""];
        assert_eq!(pieces(sql), expected);
        assert!(split("SELECT 'open", &GenericDialect {}).is_err());
    }

    #[test]
    fn a_hint_with_a_semicolon_loses_nothing() {
        // The tokenizer is wrong about where this semicolon is; the parser sees two statements.
        let sql = "/*! SELECT 1; */ SELECT 2";
        assert_eq!(pieces(sql).concat(), sql);
    }

    #[test]
    fn a_statement_keeps_its_place() {
        assert_eq!(in_place("", "SELECT 1"), "SELECT 1");
        assert_eq!(in_place("SELECT 1;\näb;", " SELECT 2"), "\n    SELECT 2");
        let error = DFParser::parse_sql(&in_place("SELECT 1;\n\n", "SELEC 2")).unwrap_err();
        assert!(error.to_string().contains("Line: 3, Column: 1"), "{error}");
    }
}
