//! [`UpdatesRule`]: `UPDATE` of the table of an array writes the cells that it sets, as `INSERT` writes rows.
//!
//! ```text
//!   Update air                       Insert air (replace)
//!     Projection time, lat, …   ──▶    Projection time, lat, t2m       labels, and what is set
//!       Filter, …                        Projection time, lat, …
//!                                          Filter, …
//! ```
//!
//! DataFusion would hand over the conditions of an `UPDATE` without those that name other tables, and the array would change everywhere.

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, TableReference, plan_err};
use datafusion::config::ConfigOptions;
use datafusion::datasource::source_as_provider;
use datafusion::error::Result;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::expr::{Alias, Cast};
use datafusion::logical_expr::{
    DmlStatement, Expr, ExprSchemable, LogicalPlan, Projection, Subquery, WriteOp,
};
use datafusion::optimizer::AnalyzerRule;

use super::declared_table::DeclaredTable;
use super::exact_cast::{exactly, rounded};
use super::inserts::is_of_array;
use super::table::GridTable;

/// An analyzer rule, before the coercion of types.
#[derive(Debug)]
pub(super) struct UpdatesRule;

impl AnalyzerRule for UpdatesRule {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let inserts = plan.transform_down(|node| match node {
            LogicalPlan::Dml(dml) if dml.op == WriteOp::Update && is_of_array(&dml) => {
                Ok(Transformed::yes(LogicalPlan::Dml(as_insert(dml)?)))
            }
            node => Ok(Transformed::no(node)),
        })?;
        Ok(inserts.data)
    }

    fn name(&self) -> &'static str {
        "gridfusion_updates"
    }
}

/// Returns the statement that writes the cells.
fn as_insert(dml: DmlStatement) -> Result<DmlStatement> {
    let table = grid_table(&dml)?;
    let LogicalPlan::Projection(all) = dml.input.as_ref() else {
        return plan_err!("an UPDATE of this form; write it as MERGE INTO");
    };
    let (of_table, _) = all.input.schema().qualified_field(0);
    let array = table.array();
    let is_label = |name: &str| array.dims().iter().any(|dim| dim.name() == name);
    let (mut values, mut written) = (vec![], vec![]);
    for expr in &all.expr {
        let Expr::Alias(Alias { expr: value, name, .. }) = expr else {
            return plan_err!("a column without a name in UPDATE");
        };
        let is_set = !is_column(value, of_table, name);
        if is_set && is_label(name) {
            return plan_err!(
                "\"{name}\" is a label, which tells where a cell is; SET sets variables"
            );
        }
        if is_set || is_label(name) {
            written.push(Expr::Column(Column::from_name(name)));
        }
        values.push(match is_set {
            true => assigned(value, name, all, &table)?.alias(name),
            false => expr.clone(),
        });
    }
    if written.len() == array.dims().len() {
        return plan_err!("UPDATE sets each variable to what it is");
    }
    let values = Projection::try_new(values, Arc::clone(&all.input))?;
    let rows = Projection::try_new(written, Arc::new(LogicalPlan::Projection(values)))?;
    let (op, rows) = (WriteOp::Insert(InsertOp::Replace), Arc::new(LogicalPlan::Projection(rows)));
    Ok(DmlStatement::new(dml.table_name, dml.target, op, rows))
}

/// Returns the table of the array that a statement changes.
fn grid_table(dml: &DmlStatement) -> Result<GridTable> {
    let provider = source_as_provider(&dml.target)?;
    if let Some(table) = provider.downcast_ref::<GridTable>() {
        return Ok(table.clone());
    }
    let declared = provider.downcast_ref::<DeclaredTable>().and_then(DeclaredTable::opened);
    match declared {
        Some(table) => Ok(table),
        None => plan_err!("the table has no rows yet; INSERT INTO makes its array"),
    }
}

/// Whether an expression is a column of the table that changes, as it is.
fn is_column(expr: &Expr, table: Option<&TableReference>, name: &str) -> bool {
    matches!(expr, Expr::Column(it) if it.name == name && it.relation.as_ref() == table)
}

/// Returns the value of a column. DataFusion casts it to the type of the column, a subquery within. Floats are rounded as those of a
/// computation are, and not to infinity. A value that another type lacks is an error.
fn assigned(value: &Expr, name: &str, all: &Projection, table: &GridTable) -> Result<Expr> {
    let value = match value {
        Expr::Cast(Cast { expr, .. }) => expr.as_ref().clone(),
        Expr::ScalarSubquery(subquery) => Expr::ScalarSubquery(without_cast(subquery)?),
        value => return Ok(value.clone()),
    };
    let (schema, columns) = (all.input.schema(), table.schema());
    let (from, field) = (value.get_type(schema)?, columns.field_with_name(name)?);
    match from.is_floating() && field.data_type().is_floating() && from != *field.data_type() {
        true => Ok(rounded(value, field)),
        false => exactly(value, field, schema),
    }
}

/// Returns a subquery without the cast of its only column.
fn without_cast(subquery: &Subquery) -> Result<Subquery> {
    let LogicalPlan::Projection(Projection { expr, input, .. }) = subquery.subquery.as_ref() else {
        return Ok(subquery.clone());
    };
    let plain = expr.iter().map(|expr| match expr.clone().unalias() {
        Expr::Cast(Cast { expr, .. }) => *expr,
        _ => expr.clone(),
    });
    let plain = Projection::try_new(plain.collect(), Arc::clone(input))?;
    Ok(Subquery { subquery: Arc::new(LogicalPlan::Projection(plain)), ..subquery.clone() })
}
