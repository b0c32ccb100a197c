//! Explains columns that no table of a statement has.
//!
//! DataFusion's error repeats the table before each column, which may be a long path. Here a message names the table only where
//! columns of several tables are listed. A variable's own name and `value`, the column of one dataset, are easily confused, so the
//! message tells which of them a table has.

use std::collections::BTreeSet;

use datafusion::common::utils::quote_identifier;
use datafusion::common::{Column, SchemaError};
use datafusion::error::{DataFusionError, Result};
use datafusion::prelude::SessionContext;
use gridfusion::array::ColumnSource;
use gridfusion::{GridTable, shown_location};

use crate::alike::{closest, did_you_mean, list};
use crate::statement::parse;

/// Returns an error that tells which columns there are, if `error` is about a missing one. Returns other errors unchanged.
pub(crate) async fn with_columns(
    error: DataFusionError,
    ctx: &SessionContext,
    text: &str,
) -> DataFusionError {
    let DataFusionError::SchemaError(cause, _) = error.find_root() else { return error };
    let SchemaError::FieldNotFound { field, valid_fields } = &**cause else { return error };
    let names = Names::new(valid_fields);
    let missing = match &field.relation {
        Some(table) => format!("{}.{}", table.to_quoted_string(), quote_identifier(&field.name)),
        None => quote_identifier(&field.name).into_owned(),
    };
    let of_variable = Box::pin(of_variable(&field.name, ctx, text)).await;
    let hint = of_variable.ok().flatten().or_else(|| names.near(field));
    let what = hint.or_else(|| names.listed()).map_or(String::new(), |it| format!("; {it}"));
    DataFusionError::Plan(format!("there is no column {missing}{what}"))
}

/// The columns that a statement may name at the place of its mistake.
struct Names<'a> {
    columns: &'a [Column],
    /// Whether the columns are of several tables, so that their names need those of the tables.
    are_mixed: bool,
}

impl<'a> Names<'a> {
    fn new(columns: &'a [Column]) -> Self {
        let tables: BTreeSet<_> = columns.iter().map(|it| &it.relation).collect();
        Self { columns, are_mixed: tables.len() > 1 }
    }

    /// Returns a column as SQL needs it.
    fn written(&self, column: &Column) -> String {
        match self.are_mixed {
            true => column.quoted_flat_name(),
            false => quote_identifier(&column.name).into_owned(),
        }
    }

    /// Suggests a column whose name is nearly the missing one. Names that differ only in case come first.
    fn near(&self, missing: &Column) -> Option<String> {
        let name = &missing.name;
        let in_case = self.columns.iter().find(|it| it.name.eq_ignore_ascii_case(name));
        if let Some(column) = in_case.filter(|it| it.name != *name) {
            let written = self.written(column);
            return Some(format!(
                "did you mean {written}? Names with capital letters need double quotes"
            ));
        }
        let near = closest(name, self.columns.iter().map(|it| it.name.as_str()))?;
        let column = self.columns.iter().find(|it| it.name == near)?;
        Some(did_you_mean(&self.written(column)))
    }

    fn listed(&self) -> Option<String> {
        let names = self.columns.iter().map(|it| self.written(it));
        (!self.columns.is_empty()).then(|| list("columns", names))
    }
}

/// Returns the hint for a variable's name in the table of one dataset, or for `value` in another table.
async fn of_variable(missing: &str, ctx: &SessionContext, text: &str) -> Result<Option<String>> {
    for statement in parse(ctx, text)? {
        for table in ctx.state().resolve_table_references(&statement)? {
            let Ok(provider) = ctx.table_provider(table.clone()).await else { continue };
            let Some(grid) = provider.downcast_ref::<GridTable>() else { continue };
            let array = grid.array();
            let is_value = |it: &&ColumnSource| matches!(it, ColumnSource::Value(_));
            let mut values = array.columns().iter().zip(array.schema().fields());
            let value = values.find(|(source, _)| is_value(source)).map(|(_, it)| it.name());
            let is_only = array.columns().iter().filter(is_value).count() == 1;
            let Some(value) = value.filter(|_| is_only) else { continue };
            let own = array.name().rsplit('/').next().unwrap_or_default();
            if missing == own && value == "value" {
                let table = shown_location(table.table());
                return Ok(Some(format!("{own} is the column value of '{table}'")));
            }
            if missing == "value" {
                let value = quote_identifier(value);
                return Ok(Some(format!(
                    "the column of a variable has its name, here {value}; it is value in the table of one dataset, as in 'x.nc#t2m'"
                )));
            }
        }
    }
    Ok(None)
}
