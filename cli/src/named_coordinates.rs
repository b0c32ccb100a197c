//! Coordinates that are columns only where a statement names them.
//!
//! ```text
//!   SELECT avg(t2m) FROM 'wrf.nc' WHERE lat > 60          there is no column lat
//!   SELECT avg(t2m) FROM read_array('wrf.nc', coordinates => true) AS "wrf.nc" WHERE lat > 60
//! ```
//!
//! A table by its path has coordinates of at most one dimension, because others are many values. A statement that names another
//! column is planned again with all coordinates of its tables.

use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    FunctionArg, Ident, ObjectName, ObjectNamePart, SetExpr, Statement as SqlStatement, TableAlias,
    TableFactor,
};
use gridfusion::provider::{StatementEditor, edit_statement};
use gridfusion::shown_location;

use crate::statement::parse;

/// Whether an error tells that no table of a statement has a column.
pub(crate) fn is_missing_column(error: &DataFusionError) -> bool {
    let DataFusionError::SchemaError(cause, _) = error.find_root() else { return false };
    matches!(**cause, SchemaError::FieldNotFound { .. })
}

/// Returns the statement with all coordinates of the tables that it names by their paths or reads by a function. `None` if there
/// are no such tables, or if each sets the option.
pub(crate) fn with_coordinates(
    ctx: &SessionContext,
    mut statement: Statement,
) -> Option<Statement> {
    let mut tables = Tables { ctx, has_changed: false };
    edit_statement(&mut statement, &mut tables);
    tables.has_changed.then_some(statement)
}

struct Tables<'a> {
    ctx: &'a SessionContext,
    has_changed: bool,
}

impl StatementEditor for Tables<'_> {
    fn table(&mut self, table: &mut TableFactor) {
        let TableFactor::Table { name, alias, args, .. } = table else { return };
        match args {
            None => {
                let Some(path) = quoted_path(name) else { return };
                let literal = |text: &str| format!("'{}'", text.replace('\'', "''"));
                let place = match path.rsplit_once('#') {
                    Some((file, dataset)) => [literal(file), literal(dataset)].join(", "),
                    None => literal(&path),
                };
                let Some(mut read) = self.read(&place) else { return };
                if let TableFactor::Table { alias: own, .. } = &mut read {
                    *own = alias.take().or_else(|| Some(shown_alias(&path)));
                }
                *table = read;
            }
            Some(args) => {
                let is_reader = matches!(
                    name.0.as_slice(),
                    [ObjectNamePart::Identifier(name)] if name.value.to_lowercase().starts_with("read_")
                );
                let is_set = args.args.iter().any(|it| match it {
                    FunctionArg::Named { name, .. } => name.value == "coordinates",
                    _ => false,
                });
                let Some(TableFactor::Table { args: Some(own), .. }) = self.read("''") else {
                    return;
                };
                let option = own.args.into_iter().nth(1);
                let Some(option) = option.filter(|_| is_reader && !is_set) else { return };
                args.args.push(option);
            }
        }
        self.has_changed = true;
    }
}

impl Tables<'_> {
    /// Returns a call that reads a place with all coordinates.
    fn read(&self, place: &str) -> Option<TableFactor> {
        let text = format!("SELECT * FROM read_array({place}, coordinates => true)");
        let Statement::Statement(statement) = parse(self.ctx, &text).ok()?.pop_front()? else {
            return None;
        };
        let SqlStatement::Query(query) = *statement else { return None };
        let SetExpr::Select(mut select) = *query.body else { return None };
        Some(select.from.pop()?.relation)
    }
}

/// Returns the path that a statement has in place of the name of a table.
fn quoted_path(name: &ObjectName) -> Option<String> {
    match name.0.as_slice() {
        [ObjectNamePart::Identifier(name)] if name.quote_style == Some('\'') => {
            Some(name.value.clone())
        }
        _ => None,
    }
}

/// Returns the name that the table has in plans.
fn shown_alias(path: &str) -> TableAlias {
    TableAlias {
        explicit: true,
        name: Ident::with_quote('"', shown_location(path)),
        columns: vec![],
        at: None,
    }
}
