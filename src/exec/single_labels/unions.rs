//! `UNION` of labels with doubles. Labels become the doubles that they are shown as, so both have one row for 50.1.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Union};

use super::columns::labels_of;
use super::shown::{makes_doubles, shown};

/// Shows the labels of columns that have doubles in other inputs.
pub(super) fn as_shown(union: Union) -> Result<Transformed<LogicalPlan>> {
    // `UNION BY NAME` declares the types of the first input for all.
    let typed = |input: &Arc<LogicalPlan>| input.as_ref().clone().recompute_schema().map(Arc::new);
    let typed = union.inputs.iter().map(typed).collect::<Result<Vec<_>>>()?;
    let is_of_doubles = |at: usize| {
        let mut fields = typed.iter().filter_map(|it| it.schema().fields().get(at));
        fields.any(|field| makes_doubles(field.data_type()))
    };
    let doubles: Vec<bool> = (0..union.schema.fields().len()).map(is_of_doubles).collect();
    if !doubles.contains(&true) {
        return Ok(Transformed::no(LogicalPlan::Union(union)));
    }
    let mut is_other = false;
    let mut inputs = Vec::with_capacity(typed.len());
    for input in typed {
        let labels = labels_of(&input);
        let is_shown = |at: usize| doubles.get(at) == Some(&true) && labels.get(at) == Some(&true);
        if !(0..labels.len()).any(is_shown) {
            inputs.push(input);
            continue;
        }
        is_other = true;
        let columns = input.schema().iter().enumerate().map(|(at, (table, field))| {
            let column = Expr::from((table, field));
            match is_shown(at) {
                true => shown(column).alias_qualified(table.cloned(), field.name()),
                false => column,
            }
        });
        let columns: Vec<Expr> = columns.collect();
        let input = LogicalPlanBuilder::from(Arc::clone(&input)).project(columns)?.build()?;
        inputs.push(Arc::new(input));
    }
    if !is_other {
        return Ok(Transformed::no(LogicalPlan::Union(union)));
    }
    Ok(Transformed::yes(LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?)))
}
