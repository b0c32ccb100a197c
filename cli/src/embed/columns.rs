//! The meaning of a query's columns: dimensions of arrays, keys of groups, and attributes.

use std::collections::BTreeMap;

use datafusion::arrow::array::ArrayRef;
use datafusion::datasource::source_as_provider;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan};
use gridfusion::array::{ColumnSource, LabelOrder, Labels, NUMBER_ATTRIBUTES};
use gridfusion::{GridTable, SparseTable};

use crate::plot::titles::Trace;

/// The attributes that stay true for an aggregate with the unit of its argument.
const KEPT: [&str; 4] = ["calendar", "long_name", "standard_name", "units"];

/// The attributes that tell how numbers count time.
const OF_TIMES: [&str; 2] = ["calendar", "units"];

/// The meaning of a column of a query.
#[derive(Debug, Clone, Default)]
pub struct ColumnFacts {
    /// The order of the labels in the array, if the column shows labels of a dimension.
    pub dimension: Option<LabelsOrder>,
    /// Whether the column is a key of the topmost `GROUP BY`.
    pub is_key: bool,
    /// The attributes of the dimension or variable that the column shows. An aggregate with the same unit has some of them.
    /// [`NUMBER_ATTRIBUTES`] among them tells which are numbers.
    pub attributes: BTreeMap<String, String>,
}

/// The order of the labels of a dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelsOrder {
    /// Each label is greater than the one before.
    Ascending,
    /// Each label is less than the one before.
    Descending,
    /// Neither, as [`source_labels`] has them.
    Other,
}

/// Returns the meaning of each column of a query.
pub fn column_facts(plan: &LogicalPlan) -> Vec<ColumnFacts> {
    (0..plan.schema().fields().len()).map(|at| facts(plan, at)).collect()
}

fn facts(plan: &LogicalPlan, at: usize) -> ColumnFacts {
    let is_key = is_key(plan, at);
    let Some(trace) = Trace::from_plan(plan, at) else {
        return ColumnFacts { is_key, ..ColumnFacts::default() };
    };
    // A number that was a time, or the other way round, counts from another moment, in another unit.
    let shown = plan.schema().field(at).data_type();
    let are_numbers = shown.is_numeric() && trace.field.data_type().is_numeric();
    let counts_otherwise = trace.is_cast && !are_numbers;
    let is_kept = |key: &str| {
        let is_mark = key.starts_with("gridfusion.") && key != NUMBER_ATTRIBUTES;
        let is_left_out = is_mark || counts_otherwise && OF_TIMES.contains(&key);
        !is_left_out && (trace.aggregate.is_none() || KEPT.contains(&key))
    };
    let attributes = trace.field.metadata().iter().filter(|(key, _)| is_kept(key));
    let attributes = attributes.map(|(key, value)| (key.clone(), value.clone())).collect();
    ColumnFacts { dimension: order(&trace), is_key, attributes }
}

fn order(trace: &Trace<'_>) -> Option<LabelsOrder> {
    if !shows_table(trace) {
        return None;
    }
    let provider = source_as_provider(&trace.scan.source).ok()?;
    if let Some(sparse) = provider.downcast_ref::<SparseTable>() {
        let at = sparse.array().schema().index_of(trace.field.name()).ok()?;
        return (at < sparse.array().rank()).then_some(LabelsOrder::Ascending);
    }
    with_labels(trace, |labels| match labels.order() {
        LabelOrder::Ascending => LabelsOrder::Ascending,
        LabelOrder::Descending => LabelsOrder::Descending,
        _ => LabelsOrder::Other,
    })
}

/// Whether a column shows values of the table column as they are.
fn shows_table(trace: &Trace<'_>) -> bool {
    trace.aggregate.is_none() && !trace.is_cast
}

/// Calls `f` with the labels that a column shows, if it is the dimension of an array.
fn with_labels<T>(trace: &Trace<'_>, f: impl FnOnce(&Labels) -> T) -> Option<T> {
    if !shows_table(trace) {
        return None;
    }
    let provider = source_as_provider(&trace.scan.source).ok()?;
    let array = provider.downcast_ref::<GridTable>()?.array();
    let at = array.schema().index_of(trace.field.name()).ok()?;
    match array.columns().get(at)? {
        ColumnSource::Label(axis) => Some(f(array.dims().get(*axis)?.labels())),
        _ => None,
    }
}

/// Returns all labels of the dimension that a column shows, in the order of the array; `None` for other columns.
///
/// # Errors
/// If the labels cannot be made.
pub fn source_labels(plan: &LogicalPlan, at: usize) -> Result<Option<ArrayRef>> {
    let Some(trace) = Trace::from_plan(plan, at) else { return Ok(None) };
    let labels = with_labels(&trace, |labels| labels.slice(0..labels.len()));
    Ok(labels.transpose()?)
}

/// Whether a column is a key of the topmost `GROUP BY`, perhaps under another name.
fn is_key(plan: &LogicalPlan, at: usize) -> bool {
    match plan {
        LogicalPlan::Aggregate(node) => {
            let is_grouping_set = matches!(node.group_expr[..], [Expr::GroupingSet(_)]);
            !is_grouping_set && at < node.group_expr.len()
        }
        LogicalPlan::Projection(node) => {
            let mut expr = node.expr.get(at);
            while let Some(Expr::Alias(alias)) = expr {
                expr = Some(alias.expr.as_ref());
            }
            let Some(Expr::Column(column)) = expr else { return false };
            let below = node.input.schema().maybe_index_of_column(column);
            below.is_some_and(|below| is_key(&node.input, below))
        }
        LogicalPlan::Filter(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::Limit(_)
        | LogicalPlan::SubqueryAlias(_) => {
            plan.inputs().first().is_some_and(|input| is_key(input, at))
        }
        _ => false,
    }
}
