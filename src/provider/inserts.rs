//! `INSERT INTO` the table of an array: its rows are written into the store that the table reads.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{ScalarValue, not_impl_err, plan_err};
use datafusion::config::ConfigOptions;
use datafusion::datasource::source_as_provider;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::expr::{Alias, Cast};
use datafusion::logical_expr::{DmlStatement, Expr, LogicalPlan, Projection, Values, WriteOp};
use datafusion::optimizer::AnalyzerRule;
use datafusion::physical_plan::ExecutionPlan;

use super::declared_table::DeclaredTable;
use super::opener::ArrayOpener;
use super::table::GridTable;
use crate::array::{ColumnSource, GridArray};
use crate::exec::{AfterWrite, AppendPlace, append_plan, finds_arrays_by_name};
use crate::options::{ArrayOptions, OptionValue};

/// Returns the plan that appends rows to the store of a table, and opens the table again. `op` tells what becomes of cells that are there.
///
/// # Errors
/// If the table is no single place of a form that is appended to.
pub(super) async fn insert_plan(
    table: &GridTable,
    session: &dyn Session,
    input: Arc<dyn ExecutionPlan>,
    op: InsertOp,
) -> Result<Arc<dyn ExecutionPlan>> {
    let places = table.origin().map(|it| (it.is_many || !it.side_by_side.is_empty(), &*it.places));
    let Some((false, [place])) = places else {
        return not_impl_err!(
            "INSERT INTO a table of several files, or of an array that a program opened; rows go into one store"
        );
    };
    let opener = ArrayOpener::from_session(session);
    if let Some(format) = opener.formats().get(&place.format) {
        format.check_takes_rows(&opener.place(&place.location)?).await?;
    }
    if finds_arrays_by_name(&place.format)
        && let Some(origin) = table.origin()
    {
        check_names(&origin.options, &table.array())?;
    }
    let group = table.origin().map(|it| group_of(&it.options)).transpose()?.flatten();
    let read = versions(&table.array());
    // Objects that changed are noticed where they are read. Fragments never change, so only new ones tell.
    if op != InsertOp::Append && !finds_arrays_by_name(&place.format) {
        renew(table, &opener).await?;
        if versions(&table.array()) != read {
            return plan_err!(
                "the array has changed since the table was opened; the table is up to date now, so run the statement again"
            );
        }
    }
    let snapshot = if op == InsertOp::Append { vec![] } else { read };
    let after = Arc::new(OpenedAgain(table.clone()));
    let (location, format) = (place.location.as_str(), place.format.as_str());
    let place = AppendPlace { location, format, group, snapshot };
    append_plan(input, session, place, op, after).await
}

/// Reads the array of a table anew if another program has changed it. Rows that are computed from it are those of the array as it is.
///
/// # Errors
/// If the array cannot be opened.
pub(super) async fn renew(table: &GridTable, opener: &ArrayOpener) -> Result<()> {
    let Some(origin) = table.origin() else { return Ok(()) };
    let opened = opener.reopen(origin).await?;
    if let Some(grid) = opened.as_grid() {
        table.replace(grid.array());
    }
    Ok(())
}

/// Returns what tells the array of a table from those before and after it.
fn versions(array: &GridArray) -> Vec<String> {
    array.versions().into_iter().map(|it| it.version).collect()
}

/// Returns the group that a table is of; `None` for the root of its store.
fn group_of(options: &ArrayOptions) -> Result<Option<String>> {
    let Some(group) = options.get("group").map(OptionValue::to_string) else { return Ok(None) };
    let group = group.trim_matches('/');
    match group.contains(['*', '?', '[']) {
        true => not_impl_err!("INSERT INTO a table of several groups; rows go into one"),
        false => Ok((!group.is_empty()).then(|| group.to_owned())),
    }
}

/// Fails unless the columns of a table are the arrays of these names in its store or its group. Arrays of other groups may have
/// the same names.
fn check_names(options: &ArrayOptions, array: &GridArray) -> Result<()> {
    let Some(dataset) = options.get("dataset").map(OptionValue::to_string) else { return Ok(()) };
    let columns = array.columns().iter().zip(array.schema().fields());
    let variables = columns.filter(|(source, _)| matches!(source, ColumnSource::Value(_)));
    let variables: Vec<&str> = variables.map(|(_, field)| field.name().as_str()).collect();
    let is_of_root = |name: &str| variables.contains(&name) && !name.contains('/');
    match dataset.split(',').all(|name| is_of_root(name.trim())) {
        true => Ok(()),
        false => not_impl_err!(
            "INSERT INTO a table of the dataset '{dataset}'; rows go into the arrays of a whole store, by the names of their columns"
        ),
    }
}

/// A table that is opened again after rows are appended.
#[derive(Debug)]
struct OpenedAgain(GridTable);

#[async_trait]
impl AfterWrite for OpenedAgain {
    async fn written(&self, context: &TaskContext) -> Result<()> {
        renew(&self.0, &ArrayOpener::from_task(context)).await
    }
}

/// An analyzer rule that inserts values as they are: DataFusion casts them to the types of the table, which may round them. The writer
/// refuses values that the array cannot hold.
#[derive(Debug)]
pub(super) struct InsertedTypesRule;

impl AnalyzerRule for InsertedTypesRule {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let inserts = plan.transform_down(|node| match node {
            LogicalPlan::Dml(mut dml)
                if matches!(dml.op, WriteOp::Insert(_)) && is_of_array(&dml) =>
            {
                dml.input = Arc::new(without_casts(&dml.input)?);
                Ok(Transformed::yes(LogicalPlan::Dml(dml)))
            }
            node => Ok(Transformed::no(node)),
        })?;
        Ok(inserts.data)
    }

    fn name(&self) -> &'static str {
        "gridfusion_inserted_types"
    }
}

/// Whether a statement changes the table of an array.
pub(super) fn is_of_array(dml: &DmlStatement) -> bool {
    source_as_provider(&dml.target)
        .is_ok_and(|table| table.is::<GridTable>() || table.is::<DeclaredTable>())
}

/// Returns the rows without the casts that DataFusion has put around them.
fn without_casts(input: &LogicalPlan) -> Result<LogicalPlan> {
    let LogicalPlan::Projection(projection) = input else { return Ok(input.clone()) };
    if let LogicalPlan::Values(values) = projection.input.as_ref() {
        check_values(values)?;
    }
    let plain = |expr: &Expr| match expr {
        Expr::Alias(Alias { expr, name, .. }) => match expr.as_ref() {
            Expr::Cast(Cast { expr, .. }) if matches!(expr.as_ref(), Expr::Column(_)) => {
                expr.as_ref().clone().alias(name)
            }
            _ => Expr::clone(expr).alias(name),
        },
        expr => expr.clone(),
    };
    let exprs = projection.expr.iter().map(plain).collect();
    Projection::try_new(exprs, Arc::clone(&projection.input)).map(LogicalPlan::Projection)
}

/// Fails for a number in `VALUES` that its column rounds, unless both are floats.
fn check_values(values: &Values) -> Result<()> {
    for expr in values.values.iter().flatten() {
        let Expr::Cast(cast) = expr else { continue };
        let Expr::Literal(value, _) = cast.expr.as_ref() else { continue };
        let (from, to) = (value.data_type(), cast.field.data_type());
        let both_float = from.is_floating() && to.is_floating();
        if !from.is_numeric() || !to.is_numeric() || both_float {
            continue;
        }
        let back = value.cast_to(to).and_then(|cast: ScalarValue| cast.cast_to(&from));
        if back.as_ref().ok() != Some(value) {
            return plan_err!("{value} is no {to}, of which type the column is");
        }
    }
    Ok(())
}
