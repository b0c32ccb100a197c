//! [`KeptMetadata`]: `min(time)` and `max(time)` keep their metadata if statistics answer them.

use std::sync::Arc;

use datafusion::common::tree_node::TransformedResult;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::expr::FieldMetadata;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::Literal;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};

use crate::core::array::CountedTimes;
use crate::exec::rules::walk::up;

/// DataFusion's rule `aggregate_statistics`, which replaces aggregates by literals without metadata.
#[derive(Debug)]
pub(in crate::exec) struct KeptMetadata(
    pub(in crate::exec) Arc<dyn PhysicalOptimizerRule + Send + Sync>,
);

impl PhysicalOptimizerRule for KeptMetadata {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        up(self.0.optimize(plan, config)?, |node| {
            node.downcast_ref::<ProjectionExec>()
                .map(with_metadata)
                .transpose()
                .map(Option::flatten)
        })
        .data()
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

/// Returns a projection of such literals, with the metadata of the aggregates, which its input has. `None` for other operators.
fn with_metadata(projection: &ProjectionExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let (input, exprs) = (projection.input(), projection.expr());
    let schema = input.schema();
    let counts = schema.fields().iter().any(|field| CountedTimes::from_field(field).is_some());
    if !counts
        || input.downcast_ref::<PlaceholderRowExec>().is_none()
        || exprs.len() != schema.fields().len()
    {
        return Ok(None);
    }
    let exprs = exprs.iter().zip(schema.fields()).map(|(expr, field)| {
        let literal = expr.expr.downcast_ref::<Literal>();
        let expr_of_field = literal.filter(|_| CountedTimes::from_field(field).is_some());
        let kept = expr_of_field.map(|literal| {
            let metadata = FieldMetadata::from(field.metadata());
            Arc::new(Literal::new_with_metadata(literal.value().clone(), Some(metadata)))
                as PhysicalExprRef
        });
        let alias = expr.alias.clone();
        ProjectionExpr { expr: kept.unwrap_or_else(|| Arc::clone(&expr.expr)), alias }
    });
    let exprs: Vec<ProjectionExpr> = exprs.collect();
    Ok(Some(Arc::new(ProjectionExec::try_new(exprs, Arc::clone(input))?)))
}
