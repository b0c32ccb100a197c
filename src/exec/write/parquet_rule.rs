//! [`ParquetTypesRule`]: casts the columns of a `COPY` to types that Parquet has.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::expr::FieldMetadata;
use datafusion::logical_expr::{
    Expr, Limit, LogicalPlan, LogicalPlanBuilder, Projection, Sort, cast,
};
use datafusion::optimizer::AnalyzerRule;

use super::parquet_types::parquet_type;

/// Casts the columns of a `COPY` to Parquet whose types the file would store as plain integers ([`parquet_type`]).
///
/// A time that does not fit into milliseconds is an error of the cast.
#[derive(Debug)]
pub struct ParquetTypesRule;

impl AnalyzerRule for ParquetTypesRule {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let copies = plan.transform_down(|node| match node {
            LogicalPlan::Copy(mut copy)
                if copy.file_type.get_ext().eq_ignore_ascii_case("parquet") =>
            {
                let Some(input) = readable(&copy.input)? else {
                    return Ok(Transformed::no(LogicalPlan::Copy(copy)));
                };
                copy.input = Arc::new(input);
                Ok(Transformed::yes(LogicalPlan::Copy(copy)))
            }
            node => Ok(Transformed::no(node)),
        })?;
        Ok(copies.data)
    }

    fn name(&self) -> &'static str {
        "gridfusion_parquet_types"
    }
}

/// Returns the rows with types that Parquet has; `None` if they have them already.
///
/// Casts go below a sort, which orders their results as it orders the columns: above it, DataFusion 55 may leave out keys of the sort.
fn readable(input: &LogicalPlan) -> Result<Option<LogicalPlan>> {
    let schema = input.schema();
    if schema.fields().iter().all(|field| parquet_type(field.data_type()).is_none()) {
        return Ok(None);
    }
    let below = match input {
        LogicalPlan::Sort(Sort { input, .. }) | LogicalPlan::Limit(Limit { input, .. }) => {
            Some(input)
        }
        LogicalPlan::Projection(Projection { input, expr, .. }) => {
            let are_columns = expr.iter().all(|it| matches!(it, Expr::Column(_)));
            let is_sorted = matches!(&**input, LogicalPlan::Sort(_) | LogicalPlan::Limit(_));
            Some(input).filter(|_| are_columns && is_sorted)
        }
        _ => None,
    };
    if let Some(below) = below
        && let Some(cast) = readable(below)?
    {
        return input.with_new_exprs(input.expressions(), vec![cast]).map(Some);
    }
    let column = |at: usize| {
        let (relation, field) = schema.qualified_field(at);
        let column = Expr::Column((relation, field).into());
        match parquet_type(field.data_type()) {
            None => column,
            Some(data_type) => cast(column, data_type).alias_qualified_with_metadata(
                relation.cloned(),
                field.name(),
                Some(FieldMetadata::from(field.metadata())),
            ),
        }
    };
    let columns: Vec<Expr> = (0..schema.fields().len()).map(column).collect();
    LogicalPlanBuilder::from(input.clone()).project(columns)?.build().map(Some)
}
