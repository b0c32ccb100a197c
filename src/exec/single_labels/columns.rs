//! Which expressions show labels of single precision: columns with the mark, and what is computed of these alone.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, DFSchemaRef, JoinType};
use datafusion::error::Result;
use datafusion::logical_expr::utils::grouping_set_to_exprlist;
use datafusion::logical_expr::{Distinct, Expr, ExprSchemable, LogicalPlan};

use crate::array::is_single_label;

/// The columns that an expression may use, and which of them show labels of single precision.
pub(super) struct Columns(Vec<(DFSchemaRef, Vec<bool>)>);

/// The origin of the floating-point numbers of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    Constants,
    Labels,
    Others,
}

impl Columns {
    /// Returns the columns below a node.
    pub(super) fn below(plan: &LogicalPlan) -> Self {
        let inputs = plan.inputs().into_iter();
        Self(inputs.map(|input| (Arc::clone(input.schema()), labels_of(input))).collect())
    }

    /// Adds the columns of a schema.
    pub(super) fn with_schema(mut self, schema: &DFSchema) -> Self {
        self.0.push((DFSchemaRef::new(schema.clone()), marked(schema)));
        self
    }

    /// Returns the columns of a schema.
    pub(super) fn from_schema(schema: &DFSchema) -> Self {
        Self(vec![]).with_schema(schema)
    }

    /// Whether an expression over columns of `schema` is a label, or is a single that is computed of labels alone, such as
    /// `round(lat, 1)` or `max(lat)`.
    pub(super) fn is_label(&self, expr: &Expr, schema: &DFSchema) -> bool {
        let is_single = matches!(expr.get_type(schema), Ok(DataType::Float32));
        is_single && self.is_of_labels(expr)
    }

    /// Whether all floating-point numbers of an expression are labels, or computed of labels.
    pub(super) fn is_of_labels(&self, expr: &Expr) -> bool {
        self.origin(expr) == Origin::Labels
    }

    fn origin(&self, expr: &Expr) -> Origin {
        let all = |exprs: &mut dyn Iterator<Item = &Expr>| {
            exprs.map(|expr| self.origin(expr)).max().unwrap_or(Origin::Constants)
        };
        match expr {
            Expr::Column(column) => self.of_column(column),
            Expr::OuterReferenceColumn(field, _) => of_field(field, is_single_label(field)),
            Expr::ScalarSubquery(it) => match labels_of(&it.subquery).first() {
                Some(true) => Origin::Labels,
                _ => Origin::Others,
            },
            Expr::AggregateFunction(it) => all(&mut it.params.args.iter().take(1)),
            Expr::WindowFunction(it) => all(&mut it.params.args.iter().take(1)),
            Expr::Case(it) => {
                let then = it.when_then_expr.iter().map(|(_, then)| &**then);
                all(&mut then.chain(it.else_expr.as_deref()))
            }
            Expr::Exists(_) | Expr::InSubquery(_) | Expr::SetComparison(_) => Origin::Others,
            _ => {
                let mut origin = Origin::Constants;
                let visited = expr.apply_children(|child| {
                    origin = origin.max(self.origin(child));
                    Ok(TreeNodeRecursion::Continue)
                });
                visited.map_or(Origin::Others, |_| origin)
            }
        }
    }

    fn of_column(&self, column: &Column) -> Origin {
        let find = |(schema, labels): &(DFSchemaRef, Vec<bool>)| {
            let at = schema.maybe_index_of_column(column)?;
            Some(of_field(schema.field(at), labels.get(at).copied().unwrap_or_default()))
        };
        self.0.iter().find_map(find).unwrap_or(Origin::Others)
    }
}

fn of_field(field: &Field, is_label: bool) -> Origin {
    match field.data_type() {
        _ if is_label => Origin::Labels,
        // The places of `round(lat, places)` do not matter.
        data_type if data_type.is_floating() || data_type.is_decimal() => Origin::Others,
        _ => Origin::Constants,
    }
}

/// Whether the first column of a plan shows labels of single precision.
pub(super) fn begins_with_labels(plan: &LogicalPlan) -> bool {
    labels_of(plan).first() == Some(&true)
}

fn marked(schema: &DFSchema) -> Vec<bool> {
    schema.fields().iter().map(|field| is_single_label(field)).collect()
}

/// Returns for each column of a plan whether it shows labels of single precision.
pub(super) fn labels_of(plan: &LogicalPlan) -> Vec<bool> {
    let mut labels = marked(plan.schema());
    // Functions drop the metadata of their arguments.
    let computed = computed_labels(plan).unwrap_or_default();
    for ((is_label, is_computed), field) in
        labels.iter_mut().zip(computed).zip(plan.schema().fields())
    {
        *is_label |= is_computed && *field.data_type() == DataType::Float32;
    }
    labels
}

/// Returns for each column of a node whether it shows labels of its inputs; nothing for a node that makes its own.
fn computed_labels(plan: &LogicalPlan) -> Result<Vec<bool>> {
    let below = || Columns::below(plan);
    let of_exprs = |exprs: Vec<&Expr>, input: &LogicalPlan| -> Vec<bool> {
        let below = below();
        exprs.into_iter().map(|expr| below.is_label(expr, input.schema())).collect()
    };
    Ok(match plan {
        LogicalPlan::Projection(it) => of_exprs(it.expr.iter().collect(), &it.input),
        LogicalPlan::Window(it) => {
            let mut labels = labels_of(&it.input);
            labels.extend(of_exprs(it.window_expr.iter().collect(), &it.input));
            labels
        }
        LogicalPlan::Aggregate(it) => {
            let mut labels = of_exprs(grouping_set_to_exprlist(&it.group_expr)?, &it.input);
            // Between the two may be the column of grouping sets.
            labels.resize(it.schema.fields().len().saturating_sub(it.aggr_expr.len()), false);
            labels.extend(of_exprs(it.aggr_expr.iter().collect(), &it.input));
            labels
        }
        LogicalPlan::Distinct(Distinct::On(it)) => {
            of_exprs(it.select_expr.iter().collect(), &it.input)
        }
        LogicalPlan::Join(it) => {
            use JoinType::{RightAnti, RightMark, RightSemi};
            let is_right = matches!(it.join_type, RightSemi | RightAnti | RightMark);
            let mut labels = if is_right { vec![] } else { labels_of(&it.left) };
            // Joins that return one side have no more columns.
            labels.extend(labels_of(&it.right));
            labels
        }
        LogicalPlan::Union(it) => {
            let mut labels = vec![false; it.schema.fields().len()];
            for input in &it.inputs {
                labels.iter_mut().zip(labels_of(input)).for_each(|(any, it)| *any |= it);
            }
            labels
        }
        LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::Limit(_)
        | LogicalPlan::Repartition(_)
        | LogicalPlan::RecursiveQuery(_)
        | LogicalPlan::Distinct(Distinct::All(_)) => {
            plan.inputs().first().map(|input| labels_of(input)).unwrap_or_default()
        }
        _ => vec![],
    })
}
