//! Tables that a statement names by URLs: their names never hold a password or a signature.
//!
//! ```text
//!   FROM 'https://h/a.tet?sig=1'    the table is opened by the whole URL
//!                                   and planned under the name https://h/a.tet
//! ```
//!
//! Headers of results, plans, definitions and messages are made from the name in the plan.

use datafusion::common::TableReference;
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlanBuilder;
use datafusion::logical_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, ObjectName, ObjectNamePart, Select, SelectItem, SelectItemQualifiedWildcardKind,
    TableAlias, TableFactor,
};

use super::statement_editor::{StatementEditor, edit_statement};
use crate::error::shown_location;

/// A planner that names tables without the secrets of their URLs.
#[derive(Debug)]
pub(super) struct ShownNames;

impl RelationPlanner for ShownNames {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let original = |relation| Ok(RelationPlanning::Original(Box::new(relation)));
        let TableFactor::Table { name, alias, args: None, .. } = &relation else {
            return original(relation);
        };
        let table = context.object_name_to_table_reference(name.clone())?;
        let Some(shown) = shown_name(&table) else { return original(relation) };
        // A name that only the statement knows, such as that of `WITH`, has no source.
        let Ok(source) = context.context_provider().get_table_source(table) else {
            return original(relation);
        };
        let plan = LogicalPlanBuilder::scan(shown, source, None)?.build()?;
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias.clone()))))
    }
}

/// Returns the name of a table without the secrets in it; `None` if it has none.
fn shown_name(table: &TableReference) -> Option<TableReference> {
    let shown = shown_location(table.table());
    if shown == table.table() {
        return None;
    }
    Some(match (table.catalog(), table.schema()) {
        (Some(catalog), Some(schema)) => TableReference::full(catalog, schema, shown),
        (None, Some(schema)) => TableReference::partial(schema, shown),
        _ => TableReference::bare(shown),
    })
}

/// Lets the columns of tables that a statement names by URLs with secrets be qualified by these URLs: replaces each
/// qualifier by the name that the table has in the plan.
///
/// Two URLs that differ only in what is not shown get different names.
pub fn qualify_by_shown_names(statement: &mut Statement) {
    let mut names = Names::default();
    edit_statement(statement, &mut Tables(&mut names));
    if !names.0.is_empty() {
        edit_statement(statement, &mut Qualifiers(&names));
    }
}

/// URLs with secrets, and the names of their tables.
#[derive(Default)]
struct Names(Vec<(String, String)>);

impl Names {
    fn of(&self, url: &str) -> Option<&str> {
        self.0.iter().find(|(it, _)| it == url).map(|(_, shown)| shown.as_str())
    }

    /// Returns the name of the table at a URL; `None` if the URL has no secrets.
    fn add(&mut self, url: &str) -> Option<String> {
        let plain = shown_location(url);
        if plain == url {
            return None;
        }
        if let Some(shown) = self.of(url) {
            return Some(shown.to_owned());
        }
        let numbered = (2_u64..).map(|number| format!("{plain} ({number})"));
        let is_free = |name: &String| self.0.iter().all(|(_, shown)| shown != name);
        let shown = std::iter::once(plain.clone()).chain(numbered).find(is_free)?;
        self.0.push((url.to_owned(), shown.clone()));
        Some(shown)
    }
}

/// Collects the tables of a statement. A table whose name is taken gets an alias.
struct Tables<'a>(&'a mut Names);

impl StatementEditor for Tables<'_> {
    fn table(&mut self, table: &mut TableFactor) {
        if let TableFactor::Table { name, alias, args: None, .. } = table
            && let Some(ObjectNamePart::Identifier(url)) = name.0.last()
            && let Some(shown) = self.0.add(&url.value)
            && alias.is_none()
            && shown != shown_location(&url.value)
        {
            let name = Ident::with_quote('"', shown);
            *alias = Some(TableAlias { explicit: true, name, columns: vec![], at: None });
        }
    }
}

/// Replaces the qualifiers of columns.
struct Qualifiers<'a>(&'a Names);

impl Qualifiers<'_> {
    fn replace(&self, part: &mut Ident) {
        if let Some(shown) = self.0.of(&part.value) {
            shown.clone_into(&mut part.value);
        }
    }

    fn replace_all(&self, name: &mut ObjectName) {
        for part in &mut name.0 {
            if let ObjectNamePart::Identifier(part) = part {
                self.replace(part);
            }
        }
    }
}

impl StatementEditor for Qualifiers<'_> {
    fn select(&mut self, select: &mut Select) {
        for item in &mut select.projection {
            if let SelectItem::QualifiedWildcard(
                SelectItemQualifiedWildcardKind::ObjectName(name),
                _,
            ) = item
            {
                self.replace_all(name);
            }
        }
    }

    fn expression(&mut self, expr: &mut Expr) {
        match expr {
            Expr::CompoundIdentifier(parts) => {
                let qualifiers = parts.len().saturating_sub(1);
                parts.iter_mut().take(qualifiers).for_each(|part| self.replace(part));
            }
            Expr::CompoundFieldAccess { root, .. } => {
                if let Expr::Identifier(part) = &mut **root {
                    self.replace(part);
                }
            }
            Expr::QualifiedWildcard(name, _) => self.replace_all(name),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::parser::DFParser;

    use super::*;

    #[test]
    fn qualifiers_are_the_names_of_tables() {
        for (sql, expected) in [
            (
                "SELECT \"https://h/a?s=1\".x, \"https://h/a?s=1\".* FROM 'https://h/a?s=1'",
                "SELECT \"https://h/a\".x, \"https://h/a\".* FROM 'https://h/a?s=1'",
            ),
            (
                "SELECT count(\"https://m:p@h/a\".x) FROM 'https://m:p@h/a' WHERE y = 'https://m:p@h/a'",
                "SELECT count(\"https://h/a\".x) FROM 'https://m:p@h/a' WHERE y = 'https://m:p@h/a'",
            ),
            (
                "SELECT \"https://h/a?f=2\".x FROM 'https://h/a?f=1' JOIN 'https://h/a?f=2' USING (x)",
                "SELECT \"https://h/a (2)\".x FROM 'https://h/a?f=1' JOIN 'https://h/a?f=2' AS \"https://h/a (2)\" USING(x)",
            ),
            ("SELECT a.x FROM 'https://h/a?s=1' AS a", "SELECT a.x FROM 'https://h/a?s=1' AS a"),
            ("SELECT \"a?b\".x FROM 'a?b'", "SELECT \"a?b\".x FROM 'a?b'"),
        ] {
            let mut statement = DFParser::parse_sql(sql).unwrap().pop_front().unwrap();
            qualify_by_shown_names(&mut statement);
            assert_eq!(statement.to_string(), expected);
        }
    }
}
