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
    FunctionArg, Ident, ObjectNamePart, SetExpr, Statement as SqlStatement, TableAlias,
    TableFactor, TableFunctionArgs,
};
use gridfusion::provider::{StatementEditor, edit_statement};
use gridfusion::{GridTable, shown_location};

use crate::requests::gridfusion_config;
use crate::statement::parse;

/// The option that adds coordinates.
const OPTION: &str = "coordinates";

/// Whether an error tells that no table of a statement has a column.
pub(crate) fn is_missing_column(error: &DataFusionError) -> bool {
    let DataFusionError::SchemaError(cause, _) = error.find_root() else { return false };
    matches!(**cause, SchemaError::FieldNotFound { .. })
}

/// Returns the statement with all coordinates of the tables that it names by their paths or reads by a function. `None` if there
/// are no such tables of a format that has coordinates, or if the option is set.
pub(crate) async fn with_coordinates(
    ctx: &SessionContext,
    mut statement: Statement,
) -> Option<Statement> {
    let config = gridfusion_config(ctx);
    if config.tables.get(OPTION).is_some() {
        return None;
    }
    let formats = config.formats.iter();
    let knowing = formats.filter(|it| it.options().iter().any(|option| option.name == OPTION));
    let knowing: Vec<&str> = knowing.map(|format| format.name()).collect();
    let mut paths = vec![];
    for table in ctx.state().resolve_table_references(&statement).ok()? {
        let Ok(provider) = ctx.table_provider(table.clone()).await else { continue };
        let grid = provider.downcast_ref::<GridTable>();
        let format = grid.and_then(GridTable::origin).and_then(|it| it.format.as_deref());
        if format.is_some_and(|format| knowing.contains(&format)) {
            paths.push(table.table().to_owned());
        }
    }
    let mut tables = Tables { ctx, paths, knowing, has_changed: false };
    edit_statement(&mut statement, &mut tables);
    tables.has_changed.then_some(statement)
}

struct Tables<'a> {
    ctx: &'a SessionContext,
    /// The paths of tables that have coordinates.
    paths: Vec<String>,
    /// The formats that have coordinates.
    knowing: Vec<&'a str>,
    has_changed: bool,
}

impl StatementEditor for Tables<'_> {
    fn table(&mut self, table: &mut TableFactor) {
        let TableFactor::Table { name, alias, args, .. } = table else { return };
        let [ObjectNamePart::Identifier(name)] = name.0.as_slice() else { return };
        let changed = match args {
            None => self.path(name, alias).map(|read| *table = read),
            Some(args) => self.option(name, args).map(|option| args.args.push(option)),
        };
        self.has_changed |= changed.is_some();
    }
}

impl Tables<'_> {
    /// Returns a call in place of a path.
    fn path(&self, path: &Ident, alias: &mut Option<TableAlias>) -> Option<TableFactor> {
        if path.quote_style != Some('\'') || !self.paths.contains(&path.value) {
            return None;
        }
        let literal = |text: &str| format!("'{}'", text.replace('\'', "''"));
        let place = match path.value.rsplit_once('#') {
            Some((file, dataset)) => [literal(file), literal(dataset)].join(", "),
            None => literal(&path.value),
        };
        let mut read = self.read(&place)?;
        if let TableFactor::Table { alias: own, .. } = &mut read {
            *own = alias.take().or_else(|| Some(shown_alias(&path.value)));
        }
        Some(read)
    }

    /// Returns the option for a function that reads a format with coordinates, unless it is given.
    fn option(&self, function: &Ident, args: &TableFunctionArgs) -> Option<FunctionArg> {
        let name = function.value.to_lowercase();
        let format = name.strip_prefix("read_")?;
        let is_set = args.args.iter().any(|it| match it {
            FunctionArg::Named { name, .. } => name.value.eq_ignore_ascii_case(OPTION),
            _ => false,
        });
        if is_set || format != "array" && !self.knowing.contains(&format) {
            return None;
        }
        match self.read("''")? {
            TableFactor::Table { args: Some(own), .. } => own.args.into_iter().nth(1),
            _ => None,
        }
    }

    /// Returns a call that reads a place with all coordinates.
    fn read(&self, place: &str) -> Option<TableFactor> {
        let text = format!("SELECT * FROM read_array({place}, {OPTION} => true)");
        let Statement::Statement(statement) = parse(self.ctx, &text).ok()?.pop_front()? else {
            return None;
        };
        let SqlStatement::Query(query) = *statement else { return None };
        let SetExpr::Select(mut select) = *query.body else { return None };
        Some(select.from.pop()?.relation)
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
