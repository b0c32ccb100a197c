//! [`SingleLabelRule`]: compares labels of single precision in singles.

use datafusion::common::DFSchema;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{DmlStatement, Join, LogicalPlan, WriteOp};
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::utils::NamePreserver;

use super::columns::Columns;
use super::comparisons::Comparisons;
use super::shown::single;
use super::unions;
use crate::array::is_single_label;
use crate::exec::mended::with_names;

/// An analyzer rule that compares labels of single precision with other numbers in single precision.
///
/// It belongs before DataFusion's `TypeCoercion`, which would compare them in doubles.
/// [`with_gridfusion`](crate::GridfusionSessionStateBuilderExt::with_gridfusion) puts it there. In a session without this
/// rule, `lat = 50.1` finds no label that is the single 50.1, but `lat = CAST(50.1 AS FLOAT)` does.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct SingleLabelRule;

impl AnalyzerRule for SingleLabelRule {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let mut has_labels = false;
        plan.apply_with_subqueries(|plan| {
            let target = merged(plan)?.unwrap_or_else(DFSchema::empty);
            let mut fields = plan.schema().fields().iter().chain(target.fields());
            has_labels |= fields.any(|field| is_single_label(field));
            Ok(TreeNodeRecursion::Continue)
        })?;
        if !has_labels {
            return Ok(plan);
        }
        plan.transform_up_with_subqueries(in_singles).map(|plan| plan.data)
    }

    fn name(&self) -> &str {
        "single_labels"
    }
}

/// Rewrites the comparisons of a node.
fn in_singles(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let mut columns = Columns::below(&plan);
    let mut schema = merge_schema(&plan.inputs());
    if let Some(target) = merged(&plan)? {
        columns = columns.with_schema(&target);
        schema.merge(&target);
    }
    if let LogicalPlan::TableScan(scan) = &plan {
        let source = scan.source.schema();
        schema.merge(&DFSchema::try_from_qualified_schema(scan.table_name.clone(), &source)?);
    }
    let comparisons = Comparisons { columns: &columns, schema: &schema };
    let names = NamePreserver::new(&plan);
    let rewritten =
        plan.map_expressions(|expr| with_names(&names, expr, &|it| comparisons.in_singles(it)))?;
    rewritten.transform_data(|plan| match plan {
        LogicalPlan::Join(join) => keys_in_singles(join).map(Transformed::yes),
        LogicalPlan::Union(union) => unions::as_shown(union),
        plan => Ok(Transformed::no(plan)),
    })
}

/// Returns the columns of the table that a `MERGE` changes, which is no input of the plan.
fn merged(plan: &LogicalPlan) -> Result<Option<DFSchema>> {
    match plan {
        LogicalPlan::Dml(DmlStatement {
            table_name, target, op: WriteOp::MergeInto(_), ..
        }) => DFSchema::try_from_qualified_schema(table_name.clone(), &target.schema()).map(Some),
        _ => Ok(None),
    }
}

/// Rewrites the keys of a join. They stay keys, so that joins of labels stay joins by index.
fn keys_in_singles(mut join: Join) -> Result<LogicalPlan> {
    let (of_left, of_right) = (join.left.schema(), join.right.schema());
    let columns = Columns::below(&LogicalPlan::Join(join.clone()));
    let pairs = join.on.into_iter().map(|(left, right)| {
        let has_label = columns.is_label(&left, of_left) || columns.is_label(&right, of_right);
        match has_label {
            true => Ok((single(left, of_left)?, single(right, of_right)?)),
            false => Ok((left, right)),
        }
    });
    join.on = pairs.collect::<Result<_>>()?;
    Ok(LogicalPlan::Join(join))
}
