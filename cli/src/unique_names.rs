//! Gives unnamed columns unique names where DataFusion would refuse equal ones.
//!
//! `SELECT count(*), count(*)` has equal names. So has `SELECT time, CAST(time AS DATE)`, because names do
//! not show casts. Only the planner can tell which names clash. So a statement is changed only after the
//! planner has refused it, and all other statements keep their names.
//!
//! Aggregates and group keys can also clash inside the plan, where aliases do not help. There, casts become
//! `arrow_cast`, which names do show.
//!
//! | statement | becomes |
//! |---|---|
//! | `SELECT count(*), count(*)` | `SELECT count(*), count(*) AS "count(*)_2"` |
//! | `SELECT sum(x::INT), sum(x)` | `SELECT sum(arrow_cast(x, 'Int32')) AS "sum(x::INT)", sum(x)` |

use std::collections::{BTreeMap, HashSet};

use datafusion::common::SchemaError;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{CastKind, Expr, Ident, Select, SelectItem};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;
use gridfusion::provider::{StatementEditor, edit_expression, edit_statement};

/// Plans a statement. If names clash, plans it again with new names for unnamed columns.
///
/// # Errors
/// The errors of the planner.
pub(crate) async fn plan(ctx: &SessionContext, mut statement: Statement) -> Result<LogicalPlan> {
    let state = ctx.state();
    match Box::pin(state.statement_to_plan(statement.clone())).await {
        Err(error) if is_clash(&error) => {
            name_apart(&mut statement);
            Box::pin(state.statement_to_plan(statement)).await
        }
        outcome => outcome,
    }
}

/// Whether the planner refused two expressions with the same name.
pub(crate) fn is_clash(error: &DataFusionError) -> bool {
    match error.find_root() {
        // Only the text identifies this error of a `SELECT`. The tests below fail if the text changes.
        DataFusionError::Plan(message) => message.contains("require unique expression names"),
        _ => is_clash_inside(error),
    }
}

/// Whether two expressions inside a plan have the same name. Equal columns of a new table do not count: the
/// error for them names no expression.
pub(crate) fn is_clash_inside(error: &DataFusionError) -> bool {
    let DataFusionError::SchemaError(cause, _) = error.find_root() else { return false };
    matches!(&**cause, SchemaError::DuplicateUnqualifiedField { name } if name.contains('('))
}

/// Rewrites casts so that names show them, and names the unnamed columns that contain casts. Returns `None`
/// if the statement has no casts.
pub(crate) async fn with_casts_shown(
    ctx: &SessionContext,
    mut statement: Statement,
) -> Option<Statement> {
    let mut casts = Casts::default();
    edit_statement(&mut statement.clone(), &mut casts);
    for (sql_type, arrow_type) in &mut casts.types {
        let query = format!("SELECT CAST(NULL AS {sql_type})");
        let plan = Box::pin(ctx.state().create_logical_plan(&query)).await.ok()?;
        *arrow_type = Some(plan.schema().field(0).data_type().to_string());
    }
    if casts.types.is_empty() {
        return None;
    }
    edit_statement(&mut statement, &mut Namer { chosen: Chosen::WithCasts, has_named: false });
    edit_statement(&mut statement, &mut casts);
    Some(statement)
}

/// Names the unnamed columns of a statement in which names clash. Names that users gave stay as they are.
fn name_apart(statement: &mut Statement) {
    for chosen in [Chosen::Alike, Chosen::All] {
        let mut namer = Namer { chosen, has_named: false };
        edit_statement(statement, &mut namer);
        if namer.has_named {
            return;
        }
    }
}

/// Which expressions get names.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Chosen {
    /// Expressions with the same text as another item of their `SELECT`.
    Alike,
    /// Expressions that contain casts.
    WithCasts,
    /// All expressions of a `SELECT` with several items. Names may be equal where texts differ, as for
    /// `EXISTS`.
    All,
}

/// Gives names in every `SELECT` of a statement.
struct Namer {
    chosen: Chosen,
    has_named: bool,
}

impl StatementEditor for Namer {
    fn select(&mut self, select: &mut Select) {
        let items: Vec<Option<Item>> = select.projection.iter().map(Item::try_new).collect();
        let has_wildcard = items.iter().any(Option::is_none);
        let mut given = HashSet::new();
        for (at, item) in select.projection.iter_mut().enumerate() {
            let (SelectItem::UnnamedExpr(expr), Some(this)) = (&*item, &items[at]) else {
                continue;
            };
            let is_chosen = match self.chosen {
                Chosen::Alike => this.is_in_the_way(at, &items, has_wildcard),
                Chosen::WithCasts => this.has_casts,
                Chosen::All => !this.is_column && items.len() > 1,
            };
            if !is_chosen {
                continue;
            }
            // The name that the planner would give, or the text with a number if that is taken.
            let text = if this.is_column { this.name.clone() } else { expr.to_string() };
            let name = first_free(&text, |name| {
                let mut others = items.iter().enumerate().filter(|(place, _)| *place != at);
                let is_name = |item: &Item| item.name == name || item.name == name.to_lowercase();
                given.contains(name) || others.any(|(_, item)| item.as_ref().is_some_and(is_name))
            });
            let alias = Ident::with_quote('"', &name);
            given.insert(name);
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
            self.has_named = true;
        }
    }
}

/// A select item, with the facts that decide its name.
struct Item {
    /// Roughly the planner's name: the text without casts and filters, or the last part of a column.
    name: String,
    /// Whether the item is a plain column.
    is_column: bool,
    /// Whether the item is a column or a cast of one.
    is_of_column: bool,
    /// The whole text of the expression, in lower case, or its alias.
    text: String,
    has_casts: bool,
    is_named: bool,
}

impl Item {
    /// Collects the facts about an item; `None` for wildcards, which stand for several items.
    fn try_new(item: &SelectItem) -> Option<Self> {
        match item {
            SelectItem::UnnamedExpr(expr) => {
                let mut plain = expr.clone();
                let mut bare = Bare { has_casts: false };
                edit_expression(&mut plain, &mut bare);
                let has_casts = bare.has_casts;
                let is_of_column = column(&plain).is_some();
                let name = column(&plain).unwrap_or_else(|| plain.to_string().to_lowercase());
                let text = expr.to_string().to_lowercase();
                Some(Self {
                    name,
                    is_column: column(expr).is_some(),
                    is_of_column,
                    text,
                    is_named: false,
                    has_casts,
                })
            }
            SelectItem::ExprWithAlias { alias, .. } => {
                let name = alias.value.clone();
                let text = name.clone();
                Some(Self {
                    name,
                    is_column: false,
                    is_of_column: false,
                    text,
                    has_casts: false,
                    is_named: true,
                })
            }
            _ => None,
        }
    }

    /// Whether this item, at position `at` and without an alias, needs another name.
    fn is_in_the_way(&self, at: usize, items: &[Option<Self>], has_wildcard: bool) -> bool {
        if has_wildcard && self.is_of_column && !self.is_column {
            return true;
        }
        let mut others = items.iter().enumerate().filter_map(|(place, item)| {
            item.as_ref()
                .filter(|item| place != at && item.name == self.name)
                .map(|item| (place, item))
        });
        others.any(|(place, other)| match (self.is_column, other.is_column) {
            // Columns of different tables differ by the table's name.
            (true, true) => place < at && self.text == other.text,
            (true, false) => other.is_named,
            (false, true) => true,
            (false, false) => place < at || other.is_named,
        })
    }
}

/// Returns the last part of a column's name; `None` for other expressions.
fn column(expr: &Expr) -> Option<String> {
    let part = match expr {
        Expr::Identifier(part) => part,
        Expr::CompoundIdentifier(parts) => parts.last()?,
        _ => return None,
    };
    Some(match part.quote_style {
        Some(_) => part.value.clone(),
        None => part.value.to_lowercase(),
    })
}

/// Removes the parts of an expression that its name may not show: casts, parentheses, and a function's
/// `FILTER` and `OVER`. The planner's names leave these two out for aliases of functions, such as `mean`.
struct Bare {
    has_casts: bool,
}

impl StatementEditor for Bare {
    fn expression_behind_parts(&mut self, expr: &mut Expr) {
        self.has_casts |= matches!(expr, Expr::Cast { .. });
        if let Expr::Cast { expr: inner, .. } | Expr::Nested(inner) = expr {
            *expr = (**inner).clone();
        }
        if let Expr::Function(function) = expr {
            (function.filter, function.over) = (None, None);
        }
    }
}

/// Collects the SQL types of casts. When their Arrow types are known, replaces the casts by `arrow_cast`.
#[derive(Default)]
struct Casts {
    /// Arrow types by SQL types; `None` until they are known.
    types: BTreeMap<String, Option<String>>,
}

impl StatementEditor for Casts {
    fn expression_behind_parts(&mut self, expr: &mut Expr) {
        let Expr::Cast {
            kind: CastKind::Cast | CastKind::DoubleColon, expr: inner, data_type, ..
        } = expr
        else {
            return;
        };
        let known = self.types.entry(data_type.to_string()).or_default();
        if let Some(arrow_type) = known {
            let text = format!("arrow_cast({inner}, '{arrow_type}')");
            let parsed = Parser::new(&GenericDialect {}).try_with_sql(&text);
            if let Ok(shown) = parsed.and_then(|mut parser| parser.parse_expr()) {
                *expr = shown;
            }
        }
    }
}

/// Returns the text, with a number if it is taken.
fn first_free(text: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let numbered = (2_u64..).map(|number| format!("{text}_{number}"));
    let mut names = std::iter::once(text.to_owned()).chain(numbered);
    names.find(|name| !is_taken(name)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use datafusion::sql::parser::DFParser;

    use super::*;

    fn named(sql: &str) -> String {
        let mut statement = DFParser::parse_sql(sql).unwrap().pop_front().unwrap();
        name_apart(&mut statement);
        statement.to_string()
    }

    #[test]
    fn equal_texts_get_different_names() {
        for (sql, expected) in [
            ("SELECT count(*), COUNT(*)", "SELECT count(*), COUNT(*) AS \"COUNT(*)_2\""),
            (
                "SELECT time, CAST(time AS DATE)",
                "SELECT time, CAST(time AS DATE) AS \"CAST(time AS DATE)\"",
            ),
            ("SELECT time::DATE, t.time", "SELECT time::DATE AS \"time::DATE\", t.time"),
            ("SELECT *, (time)::DATE FROM t", "SELECT *, (time)::DATE AS \"(time)::DATE\" FROM t"),
            ("SELECT a, a", "SELECT a, a AS \"a_2\""),
            ("SELECT a.x, b.x, 1, 1", "SELECT a.x, b.x, 1, 1 AS \"1_2\""),
            ("SELECT x AS y, y, 2, 2", "SELECT x AS y, y AS \"y_2\", 2, 2 AS \"2_2\""),
            ("SELECT 1, 1, 1", "SELECT 1, 1 AS \"1_2\", 1 AS \"1_3\""),
            (
                "SELECT x FROM (SELECT max(a), max(CAST(a AS INT)) FROM t)",
                "SELECT x FROM (SELECT max(a), max(CAST(a AS INT)) AS \"max(CAST(a AS INT))\" FROM t)",
            ),
        ] {
            assert_eq!(named(sql), expected);
        }
    }

    #[test]
    fn all_are_named_if_none_reads_alike() {
        let expected = "SELECT k, EXISTS (SELECT 1) AS \"EXISTS (SELECT 1)\", \
                        EXISTS (SELECT 2) AS \"EXISTS (SELECT 2)\"";
        assert_eq!(named("SELECT k, EXISTS (SELECT 1), EXISTS (SELECT 2)"), expected);
    }

    #[tokio::test]
    async fn statements_are_planned_with_unique_names() {
        let ctx = SessionContext::new();
        ctx.sql("CREATE TABLE t AS SELECT 1 AS v, now() AS time").await.unwrap();
        for (sql, expected) in [
            ("SELECT count(*), count(*) FROM t", &["count(*)", "count(*)_2"][..]),
            ("SELECT time, CAST(time AS DATE) FROM t", &["time", "CAST(time AS DATE)"]),
            ("SELECT mean(v), avg(v) FROM t", &["mean(t.v)", "avg(t.v)"]),
            (
                "SELECT mean(v), mean(v) FILTER (WHERE v > 1) FROM t",
                &["mean(t.v)", "mean(v) FILTER (WHERE v > 1)"],
            ),
            (
                "SELECT avg(v), avg(v) FILTER (WHERE v > 1) FROM t",
                &["avg(t.v)", "avg(t.v) FILTER (WHERE t.v > Int64(1))"],
            ),
            ("SELECT v, v FROM t ORDER BY v", &["v", "v_2"]),
            ("SELECT *, v::TEXT FROM t", &["v", "time", "v::TEXT"]),
            ("WITH a AS (SELECT max(v), max(v) FROM t) SELECT * FROM a", &["max(t.v)", "max(v)_2"]),
            ("SELECT 1, 1 UNION ALL SELECT 2, 2", &["Int64(1)", "1_2"]),
            ("SELECT (SELECT 1), (SELECT 1)", &["Int64(1)", "(SELECT 1)_2"]),
            ("SELECT max(v), min(v) FROM t", &["max(t.v)", "min(t.v)"]),
        ] {
            let statement = DFParser::parse_sql(sql).unwrap().pop_front().unwrap();
            let plan = plan(&ctx, statement).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
            let names: Vec<_> = plan.schema().fields().iter().map(|field| field.name()).collect();
            assert_eq!(names, expected, "{sql}");
            ctx.execute_logical_plan(plan).await.unwrap().collect().await.unwrap();
        }
    }

    #[tokio::test]
    async fn casts_of_aggregates_and_keys_are_shown() {
        let ctx = SessionContext::new();
        ctx.sql("CREATE TABLE t AS VALUES (1, 2), (3, 4)").await.unwrap();
        for (sql, expected) in [
            (
                "SELECT min(column1), min(column1::DOUBLE) AS m FROM t",
                "SELECT min(column1), min(arrow_cast(column1, 'Float64')) AS m FROM t",
            ),
            (
                "SELECT column1, CAST(column1 AS TEXT) FROM t GROUP BY column1, CAST(column1 AS TEXT)",
                "SELECT column1, arrow_cast(column1, 'Utf8View') AS \"CAST(column1 AS TEXT)\" FROM t \
                 GROUP BY column1, arrow_cast(column1, 'Utf8View')",
            ),
        ] {
            let statement = DFParser::parse_sql(sql).unwrap().pop_front().unwrap();
            let shown = with_casts_shown(&ctx, statement).await.unwrap();
            assert_eq!(shown.to_string(), expected);
            let plan = plan(&ctx, shown).await.unwrap();
            ctx.execute_logical_plan(plan).await.unwrap().collect().await.unwrap();
        }
        let statement = DFParser::parse_sql("SELECT 1, 1").unwrap().pop_front().unwrap();
        assert!(with_casts_shown(&ctx, statement).await.is_none());
    }
}
