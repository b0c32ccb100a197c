//! `MERGE INTO` the table of an array: rows of a source get the labels of the cells that they match, or new ones, and are written as those of
//! `INSERT` are.
//!
//! ```text
//!   source ──┐                       CASE WHEN matched THEN … WHEN not matched THEN … END
//!            ├─ LEFT JOIN ON … ──▶ one column per label and per variable that a clause sets ──▶ append_plan
//!   target ──┘
//! ```

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{
    Column, DFSchema, JoinType, ScalarValue, TableReference, not_impl_err, plan_err,
};
use datafusion::datasource::{TableType, provider_as_source};
use datafusion::error::Result;
use datafusion::logical_expr::dml::{
    InsertOp, MergeIntoAction, MergeIntoClause, MergeIntoClauseKind,
};
use datafusion::logical_expr::{Expr, LogicalPlanBuilder, lit, when};
use datafusion::physical_expr::expressions::Column as PhysicalColumn;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};

use super::exact_cast::exactly;
use super::inserts::{insert_plan, renew};
use super::merged_types::as_asked;
use super::opener::ArrayOpener;
use super::table::GridTable;
use crate::exec::finds_arrays_by_name;

/// The names of both sides of the join. Columns of the source have numbers, because their names may repeat.
const TARGET: &str = "#target";
const SOURCE: &str = "#source";
/// The column of the target that is NULL for rows without a match.
const MATCHED: &str = "#matched";

/// Returns the plan that merges the rows of `source` into the array of a table.
///
/// # Errors
/// For clauses that delete cells or move them, and as [`insert_plan`].
pub(super) async fn merge_plan(
    table: &GridTable,
    session: &dyn Session,
    source: Arc<dyn ExecutionPlan>,
    schema: &DFSchema,
    on: Expr,
    clauses: Vec<MergeIntoClause>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let is_known = table
        .origin()
        .is_some_and(|it| it.places.iter().all(|place| finds_arrays_by_name(&place.format)));
    if !is_known {
        renew(table, &ArrayOpener::from_session(session)).await?;
    }
    let merge = Merge { table, schema };
    let clauses = clauses.into_iter().map(|clause| merge.clause(clause));
    let clauses = clauses.collect::<Result<Vec<_>>>()?;
    let on = merge.of_sides(on)?;

    let of_target =
        LogicalPlanBuilder::scan(TARGET, provider_as_source(Arc::new(table.clone())), None)?;
    let columns = of_target.schema().columns().into_iter().map(Expr::Column);
    let columns: Vec<Expr> = columns.chain([lit(true).alias(MATCHED)]).collect();
    let of_target = of_target.project(columns)?.build()?;
    let of_source = provider_as_source(Arc::new(SourceRows::try_new(source)?));
    let joined = LogicalPlanBuilder::scan(SOURCE, of_source, None)?;
    let joined = joined.join_on(of_target, JoinType::Left, [on])?;

    let written = merge.written(&clauses);
    let schema = Arc::clone(joined.schema());
    let values = written.iter().map(|name| merge.value(name, &clauses, &schema));
    let values = values.collect::<Result<Vec<_>>>()?;
    let applies = clauses.iter().map(|it| it.applies.clone());
    let applies = applies.reduce(Expr::or).unwrap_or_else(|| lit(false));
    let rows = joined.filter(applies)?.project(values)?.build()?;
    let rows = session.create_physical_plan(&rows).await?;
    insert_plan(table, session, rows, InsertOp::Replace).await
}

/// A clause: the rows that it applies to, and the values of columns.
struct Clause {
    applies: Expr,
    is_matched: bool,
    values: Vec<(String, Expr)>,
}

struct Merge<'a> {
    table: &'a GridTable,
    /// The columns of the target, and then those of the source.
    schema: &'a DFSchema,
}

impl Merge<'_> {
    /// The columns of the target, in the order of the statement's table.
    fn columns(&self) -> Vec<String> {
        let count = self.table.schema().fields().len();
        self.schema.fields().iter().take(count).map(|field| field.name().clone()).collect()
    }

    fn is_label(&self, name: &str) -> bool {
        self.table.array().dims().iter().any(|dim| dim.name() == name)
    }

    /// Returns an expression over the columns of both sides of the join.
    fn of_sides(&self, expr: Expr) -> Result<Expr> {
        let columns = self.columns();
        let side = |expr| match expr {
            Expr::Column(column) => {
                let at = self.schema.index_of_column(&column)?;
                let of_target = columns.get(at).map(|name| (TARGET, name.clone()));
                let (side, name) =
                    of_target.unwrap_or_else(|| (SOURCE, number(at - columns.len())));
                let side = Some(TableReference::bare(side));
                Ok(Transformed::yes(Expr::Column(Column::new(side, name))))
            }
            Expr::ScalarSubquery(_) | Expr::InSubquery(_) | Expr::Exists(_) => {
                not_impl_err!("subqueries in MERGE; write them into USING")
            }
            expr => Ok(Transformed::no(expr)),
        };
        Ok(expr.transform(side)?.data)
    }

    fn clause(&self, clause: MergeIntoClause) -> Result<Clause> {
        let matched = Expr::Column(Column::new(None::<TableReference>, MATCHED));
        let (matched, is_matched) = match clause.kind.canonical() {
            MergeIntoClauseKind::Matched => (matched.is_not_null(), true),
            MergeIntoClauseKind::NotMatchedBySource => {
                return not_impl_err!(
                    "WHEN NOT MATCHED BY SOURCE: MERGE leaves the cells that no row of the source matches"
                );
            }
            _ => (matched.is_null(), false),
        };
        let applies = match clause.predicate {
            Some(predicate) => matched.and(self.of_sides(predicate)?.is_true()),
            None => matched,
        };
        let values = match clause.action {
            MergeIntoAction::Update(values) => {
                if let Some((label, _)) = values.iter().find(|(name, _)| self.is_label(name)) {
                    return plan_err!(
                        "\"{label}\" is a label, which tells where a cell is; SET sets variables"
                    );
                }
                values
            }
            MergeIntoAction::Insert { columns, values } => {
                let columns = if columns.is_empty() { self.columns() } else { columns };
                let lacks = |name: &&String| self.is_label(name) && !columns.contains(name);
                if let Some(label) = self.columns().iter().find(lacks) {
                    return plan_err!("INSERT lacks the label \"{label}\"");
                }
                columns.into_iter().zip(values).collect()
            }
            MergeIntoAction::Delete => {
                return not_impl_err!(
                    "DELETE: a cell of an array stays; UPDATE sets its variables to NULL"
                );
            }
        };
        let values =
            values.into_iter().map(|(name, value)| Ok((name, self.of_sides(as_asked(value)?)?)));
        Ok(Clause { applies, is_matched, values: values.collect::<Result<_>>()? })
    }

    /// Returns the columns that are written: labels, and the variables that a clause sets. New cells have all variables.
    fn written(&self, clauses: &[Clause]) -> Vec<String> {
        let adds = clauses.iter().any(|clause| !clause.is_matched);
        let is_set = |name: &String| {
            clauses.iter().any(|clause| clause.values.iter().any(|(set, _)| set == name))
        };
        let mut columns = self.columns();
        columns.retain(|name| adds || self.is_label(name) || is_set(name));
        columns
    }

    /// Returns the value of a column: of the first clause that applies, which leaves other variables as they are.
    ///
    /// Each clause has its value in the type of the column: a common type of all might round some of them.
    fn value(&self, name: &str, clauses: &[Clause], schema: &DFSchema) -> Result<Expr> {
        let table = self.table.schema();
        let field = table.field_with_name(name)?;
        let there = Expr::Column(Column::new(Some(TARGET), name));
        let mut cases: Vec<(Expr, Expr)> = vec![];
        for clause in clauses {
            let set = clause.values.iter().find(|(set, _)| set == name);
            let value = match set {
                Some((_, value)) => exactly(value.clone(), field, schema)?,
                None if clause.is_matched => there.clone(),
                None => lit(ScalarValue::try_new_null(field.data_type())?),
            };
            cases.push((clause.applies.clone(), value));
        }
        let mut cases = cases.into_iter();
        let Some((applies, value)) = cases.next() else {
            return plan_err!("MERGE without a clause");
        };
        let mut all = when(applies, value);
        cases.for_each(|(applies, value)| {
            all.when(applies, value);
        });
        Ok(all.end()?.alias(name))
    }
}

/// The name of a column of the source.
fn number(at: usize) -> String {
    format!("#{at}")
}

/// The rows of a plan, as a table.
struct SourceRows {
    plan: Arc<dyn ExecutionPlan>,
    schema: SchemaRef,
}

impl SourceRows {
    fn try_new(plan: Arc<dyn ExecutionPlan>) -> Result<Self> {
        let own = plan.schema();
        let fields = own.fields().iter().enumerate();
        let fields = fields.map(|(at, field)| field.as_ref().clone().with_name(number(at)));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Ok(Self { plan, schema })
    }
}

impl fmt::Debug for SourceRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceRows").field("schema", &self.schema).finish_non_exhaustive()
    }
}

#[async_trait]
impl TableProvider for SourceRows {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let own = self.plan.schema();
        let all = || (0..own.fields().len()).collect();
        let columns = projection.cloned().unwrap_or_else(all).into_iter().map(|at| {
            let column = PhysicalColumn::new(own.field(at).name(), at);
            ProjectionExpr::new(Arc::new(column), number(at))
        });
        Ok(Arc::new(ProjectionExec::try_new(columns.collect::<Vec<_>>(), Arc::clone(&self.plan))?))
    }
}
