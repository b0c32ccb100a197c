//! Running SQL text: one statement after the other, each by whoever does it best.
//!
//! What is left to datafusion-cli is whatever needs no watching. Two kinds of statements are ours:
//! `CREATE EXTERNAL TABLE … STORED AS TET` or `TILEDB`, whose options datafusion-cli refuses, and
//! [queries](crate::query).

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use datafusion::common::instant::Instant;
use datafusion::common::{plan_datafusion_err, plan_err};
use datafusion::dataframe::DataFrame;
use datafusion::error::Result;
use datafusion::logical_expr::{DdlStatement, LogicalPlan};
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::{CreateExternalTable, DFParser, Statement};
use datafusion::sql::sqlparser::ast::Statement as SqlStatement;
use datafusion::sql::sqlparser::dialect::{Dialect, dialect_from_str};
use datafusion::sql::sqlparser::parser::ParserError;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
use datafusion_cli::exec::exec_from_commands;
use datafusion_cli::print_format::PrintFormat;
use datafusion_cli::print_options::{MaxRows, PrintOptions};
use gridfusion::exec::to_datafusion;
use gridfusion::{TetTableFactory, TileDbTableFactory};

use crate::hints::with_hint;
use crate::query::{Query, is_query};
use crate::session::Output;
use crate::store;
use crate::timing::Timing;

/// Runs the statements of `sql` and prints their results; stops at the first that fails.
pub(crate) async fn run_sql(ctx: &SessionContext, sql: &str, output: &Output) -> Result<()> {
    let print = all_rows_unless_table(&output.print);
    let output = Output { print, ..*output };
    let statements = split(sql, &*dialect(ctx)?)?;
    for statement in statements {
        let text = in_place(&sql[..statement.start], &sql[statement]);
        let outcome = Box::pin(run_statement(ctx, text, &output)).await;
        let timing = outcome.map_err(|error| with_hint(error, ctx))?;
        if let Some(timing) = timing.filter(|_| output.timing) {
            timing.report();
        }
    }
    Ok(())
}

/// Runs a statement, if there is one in the text.
async fn run_statement(
    ctx: &SessionContext,
    text: String,
    output: &Output,
) -> Result<Option<Timing>> {
    let start = Instant::now();
    let mut parsed = DFParser::parse_sql_with_dialect(&text, &*dialect(ctx)?)?;
    let Some(statement) = parsed.pop_front() else { return Ok(None) };
    // Only a text that was not split as the parser does it has a second statement.
    let is_single = parsed.is_empty();
    match statement {
        Statement::CreateExternalTable(table) if is_single && is_of_arrays(&table) => {
            create_table(ctx, table, &output.print, start).await?;
        }
        statement if is_single && is_query(&statement) => {
            let query = Query::plan(ctx, statement, output, start).await?;
            if !query.is_endless() {
                return query.run().await.map(Some);
            }
            exec_from_commands(ctx, vec![text], &output.print).await?;
        }
        _ => exec_from_commands(ctx, vec![text], &output.print).await?,
    }
    Ok(Some(Timing::Whole(start.elapsed())))
}

/// The SQL dialect of the session; a statement may change it.
fn dialect(ctx: &SessionContext) -> Result<Box<dyn Dialect>> {
    let name = ctx.copied_config().options().sql_parser.dialect;
    dialect_from_str(name).ok_or_else(|| plan_datafusion_err!("there is no SQL dialect '{name}'"))
}

/// The query that `sql` is.
pub(crate) fn parse_query(ctx: &SessionContext, sql: &str) -> Result<Statement> {
    let mut statements = DFParser::parse_sql_with_dialect(sql, &*dialect(ctx)?)?;
    match (statements.pop_front(), statements.is_empty()) {
        (Some(Statement::Statement(query)), true) if matches!(*query, SqlStatement::Query(_)) => {
            Ok(Statement::Statement(query))
        }
        _ => plan_err!("one query is needed here, for instance SELECT x, y FROM t"),
    }
}

/// Where the statements of `sql` stand, without the semicolons between them.
///
/// The text of each is kept as it is. Printing what the parser understood would lose parts: the
/// options of `CREATE EXTERNAL TABLE`, for one.
fn split(sql: &str, dialect: &dyn Dialect) -> Result<Vec<Range<usize>>> {
    let tokens =
        Tokenizer::new(dialect, sql).tokenize_with_location().map_err(ParserError::from)?;
    let semicolons = tokens.iter().filter(|token| token.token == Token::SemiColon);
    let semicolons: HashSet<(u64, u64)> =
        semicolons.map(|token| (token.span.start.line, token.span.start.column)).collect();

    let mut statements = Vec::new();
    let mut start = 0;
    let (mut line, mut column) = (1, 1);
    for (at, character) in sql.char_indices() {
        if character == ';' && semicolons.contains(&(line, column)) {
            statements.push(start..at);
            start = at + 1;
        }
        (line, column) = if character == '\n' { (line + 1, 1) } else { (line, column + 1) };
    }
    statements.push(start..sql.len());
    Ok(statements)
}

/// A statement with blanks for the text before it, so that errors name the line and the column of
/// the whole text.
fn in_place(before: &str, statement: &str) -> String {
    let lines = before.matches('\n').count();
    let columns = before.chars().rev().take_while(|character| *character != '\n').count();
    format!("{}{}{statement}", "\n".repeat(lines), " ".repeat(columns))
}

fn is_of_arrays(table: &CreateExternalTable) -> bool {
    let ours = [TetTableFactory::FILE_TYPE, TileDbTableFactory::FILE_TYPE];
    ours.iter().any(|file_type| table.file_type.eq_ignore_ascii_case(file_type))
}

/// `--maxrows` is for tables that people look at. datafusion-cli also stops to *collect* rows there,
/// which would cut the other formats short without a word.
fn all_rows_unless_table(options: &PrintOptions) -> PrintOptions {
    let mut options = options.clone();
    if !matches!(options.format, PrintFormat::Table | PrintFormat::Automatic) {
        options.maxrows = MaxRows::Unlimited;
    }
    options
}

/// Creates a table without datafusion-cli, which knows the options of its own formats only.
async fn create_table(
    ctx: &SessionContext,
    table: CreateExternalTable,
    print: &PrintOptions,
    start: Instant,
) -> Result<()> {
    execute(ctx, Statement::CreateExternalTable(table)).await?;
    let config = ctx.copied_config();
    let nothing = Arc::new(Schema::empty());
    print.print_batches(nothing, &[], start, 0, &config.options().format)
}

/// Plans a statement, and does what it says unless that is left to the frame.
pub(crate) async fn execute(ctx: &SessionContext, statement: Statement) -> Result<DataFrame> {
    let plan = Box::pin(ctx.state().statement_to_plan(statement)).await?;
    if let LogicalPlan::Ddl(DdlStatement::CreateExternalTable(table)) = &plan {
        for location in &table.locations {
            store::register(location, &table.options, &ctx.runtime_env()).map_err(to_datafusion)?;
        }
    }
    Box::pin(ctx.execute_logical_plan(plan)).await
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::GenericDialect;

    use super::*;

    fn pieces(sql: &str) -> Vec<&str> {
        split(sql, &GenericDialect {}).unwrap().into_iter().map(|range| sql[range].trim()).collect()
    }

    fn parse(sql: &str) -> Statement {
        DFParser::parse_sql(sql).unwrap().pop_front().unwrap()
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

    #[test]
    fn tables_of_ours_are_known_in_any_case() {
        for (file_type, ours) in
            [("TET", true), ("tet", true), ("TileDB", true), ("CSV", false), ("tetra", false)]
        {
            let sql = format!("CREATE EXTERNAL TABLE t STORED AS {file_type} LOCATION 'x'");
            let Statement::CreateExternalTable(table) = parse(&sql) else { panic!("{sql}") };
            assert_eq!(is_of_arrays(&table), ours, "{sql}");
        }
    }
}
