//! Sort keys whose order DataFusion cannot derive, as columns.
//!
//! DataFusion derives the order of `sqrt(x)` from that of `x`. For some expressions this fails, and then it does not see that rows are
//! sorted by just that expression, and refuses its own plan. It sees that rows are sorted by a column:
//!
//! ```text
//!   Window  PARTITION BY sqrt(x)      ──▶      Window  PARTITION BY key
//!     t                                          Projection  t.*, sqrt(x) AS key
//! ```

use std::mem;
use std::sync::Arc;

use arrow::compute::SortOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema};
use datafusion::error::Result;
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{
    Aggregate, Expr, LogicalPlan, LogicalPlanBuilder, Sort, SortExpr, Window, col,
};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalSortExpr, create_physical_expr};

/// Computes such keys of a window, a sort or an aggregate below it.
pub(super) fn rewrite(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let (input, exprs): (_, Vec<&Expr>) = match &plan {
        LogicalPlan::Window(window) => (&window.input, window.window_expr.iter().collect()),
        LogicalPlan::Aggregate(aggregate) => {
            (&aggregate.input, aggregate.aggr_expr.iter().collect())
        }
        LogicalPlan::Sort(sort) => (&sort.input, sort.expr.iter().map(|key| &key.expr).collect()),
        _ => return Ok(Transformed::no(plan)),
    };
    let is_sort = matches!(plan, LogicalPlan::Sort(_));
    let mut keys = Keys::default();
    for expr in exprs {
        match is_sort {
            true => keys.add(expr, input.schema()),
            false => keys.add_of(expr, input.schema())?,
        }
    }
    if keys.0.is_empty() {
        return Ok(Transformed::no(plan));
    }
    let shown: Vec<Expr> = plan.schema().columns().into_iter().map(Expr::from).collect();
    let input = Arc::new(keys.below(input)?);
    let names = NamePreserver::new_for_projection();
    let replaced = |exprs: Vec<Expr>| {
        let replaced = exprs.into_iter().map(|expr| {
            let name = names.save(&expr);
            Ok(name.restore(expr.transform_up(|expr| Ok(keys.replaced(expr)))?.data))
        });
        replaced.collect::<Result<Vec<_>>>()
    };
    let plan = match plan {
        LogicalPlan::Window(window) => {
            LogicalPlan::Window(Window::try_new(replaced(window.window_expr)?, input)?)
        }
        LogicalPlan::Aggregate(aggregate) => {
            let calls = replaced(aggregate.aggr_expr)?;
            LogicalPlan::Aggregate(Aggregate::try_new(input, aggregate.group_expr, calls)?)
        }
        LogicalPlan::Sort(Sort { expr, fetch, .. }) => {
            let expr = expr.into_iter().map(|key| SortExpr { expr: keys.of(key.expr), ..key });
            LogicalPlan::Sort(Sort { expr: expr.collect(), input, fetch })
        }
        plan => plan,
    };
    Ok(Transformed::yes(LogicalPlanBuilder::from(plan).project(shown)?.build()?))
}

/// The keys that become columns, in the order of these.
#[derive(Default)]
struct Keys(Vec<Expr>);

impl Keys {
    /// Adds the keys of the windows and aggregates in an expression.
    fn add_of(&mut self, expr: &Expr, schema: &DFSchema) -> Result<()> {
        expr.apply(|expr| {
            let (partition_by, order_by): (&[Expr], &[SortExpr]) = match expr {
                Expr::WindowFunction(call) => (&call.params.partition_by, &call.params.order_by),
                Expr::AggregateFunction(call) => (&[], &call.params.order_by),
                _ => (&[], &[]),
            };
            let keys = partition_by.iter().chain(order_by.iter().map(|key| &key.expr));
            keys.for_each(|key| self.add(key, schema));
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(())
    }

    fn add(&mut self, key: &Expr, schema: &DFSchema) {
        let is_plain = matches!(key, Expr::Column(_) | Expr::Literal(..));
        if !is_plain && !self.0.contains(key) && !is_derived(key, schema) {
            self.0.push(key.clone());
        }
    }

    /// A projection with the columns.
    fn below(&self, input: &Arc<LogicalPlan>) -> Result<LogicalPlan> {
        let columns = input.schema().columns().into_iter().map(Expr::from);
        let keys = self.0.iter().enumerate().map(|(at, key)| key.clone().alias(name(at)));
        let columns: Vec<Expr> = columns.chain(keys).collect();
        LogicalPlanBuilder::from(Arc::clone(input)).project(columns)?.build()
    }

    /// The column in place of a key; another expression as it is.
    fn of(&self, expr: Expr) -> Expr {
        let at = self.0.iter().position(|key| *key == expr);
        at.map_or(expr, |at| col(Column::from_name(name(at))))
    }

    /// A window or an aggregate with columns as keys.
    fn replaced(&self, expr: Expr) -> Transformed<Expr> {
        let by_column = |key: SortExpr| SortExpr {
            expr: self.of(key.expr),
            asc: key.asc,
            nulls_first: key.nulls_first,
        };
        match expr {
            Expr::WindowFunction(mut call) => {
                let params = &mut call.params;
                params.partition_by =
                    mem::take(&mut params.partition_by).into_iter().map(|it| self.of(it)).collect();
                params.order_by =
                    mem::take(&mut params.order_by).into_iter().map(by_column).collect();
                Transformed::yes(Expr::WindowFunction(call))
            }
            Expr::AggregateFunction(mut call) => {
                let order_by = mem::take(&mut call.params.order_by);
                call.params.order_by = order_by.into_iter().map(by_column).collect();
                Transformed::yes(Expr::AggregateFunction(call))
            }
            expr => Transformed::no(expr),
        }
    }
}

fn name(at: usize) -> String {
    format!("__gridfusion_key_{at}")
}

/// Whether DataFusion sees that rows sorted by an expression are sorted by it.
fn is_derived(key: &Expr, schema: &DFSchema) -> bool {
    let (props, context) = (ExecutionProps::new(), PhysicalPlanningContext::default());
    let Ok(expr) = create_physical_expr(key, schema, &props, &context) else { return true };
    let key = PhysicalSortExpr::new(expr, SortOptions::default());
    let rows = Arc::new(schema.as_arrow().clone());
    let rows = EquivalenceProperties::new_with_orderings(rows, [[key.clone()]]);
    rows.ordering_satisfy([key]).unwrap_or(true)
}
