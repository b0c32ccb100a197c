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
use gridfusion::extend::{Needs, Role};
use gridfusion::{ArrayOpener, GridTable, shown_location};

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
            if let Some(hint) = of_coordinate(missing, grid, ctx).await {
                return Ok(Some(hint));
            }
            let array = grid.array();
            let is_value = |it: &&ColumnSource| matches!(it, ColumnSource::Value(_));
            let columns = array.columns().iter().zip(array.schema().fields());
            let values: Vec<&String> =
                columns.filter(|(it, _)| is_value(it)).map(|(_, it)| it.name()).collect();
            let own = array.name().rsplit('/').next().unwrap_or_default();
            // Coordinates may be beside the column of the variable.
            let is_own = |it: &&&String| ["value", own, array.name()].contains(&it.as_str());
            let Some(&value) = values.iter().find(is_own) else { continue };
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

/// Returns the hint for a coordinate of the first file of a table that is no column of the table.
async fn of_coordinate(missing: &str, table: &GridTable, ctx: &SessionContext) -> Option<String> {
    let origin = table.origin()?;
    let opener = ArrayOpener::from_session(&ctx.state());
    let group =
        opener.group(origin.first_place()?, origin.format.as_deref(), &origin.options).await;
    let group = group.ok()?;
    // A table of a nested group has the coordinates of the groups around it.
    let dataset = origin.options.get("dataset").map(ToString::to_string).unwrap_or_default();
    let ends = dataset.match_indices('/').map(|(at, _)| at + 1).chain([0]).collect::<BTreeSet<_>>();
    for end in ends.into_iter().rev() {
        let name = format!("{}{missing}", &dataset[..end]);
        let Ok(found) = group.info(Some(&[name]), Needs::default()).await else { continue };
        let Some(it) = found.into_iter().find(|it| it.role == Some(Role::Helper)) else { continue };
        let named = format!("{} ({})", quote_identifier(missing), it.dimensions.join(", "));
        let has = |name: &String| table.array().dims().iter().any(|dim| dim.name() == name);
        return Some(match it.dimensions.iter().all(has) {
            true => format!(
                "{named} is no column by default: set coordinates => '{missing}' in the table function or OPTIONS"
            ),
            false => format!("{named} has other dimensions: it is the dataset {}", it.name),
        });
    }
    None
}
