//! The columns that a query computes per cell of a box, as steps.
//!
//! ```text
//!   SELECT time, lat, lon, t2m * cos(radians(lat)) AS w
//!
//!   step 0   t2m                cells     read part by part
//!   step 1   cos(radians(lat))  labels    computed once per label, repeated in each batch
//!   step 2   #0 * #1            cells     computed batch by batch, in `compute.rs`
//! ```

use std::mem;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::{FieldRef, Schema};
use datafusion::common::internal_datafusion_err;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::{Column, LambdaExpr};
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr_common::physical_expr::is_volatile;
use gridfusion::array::{ColumnSource, GridArray};
use gridfusion::grid::Selection;

use super::box_reader::is_number;

/// The labels up to which an expression is computed for all labels of an axis.
const MOST_LABELS: usize = 1 << 20;

/// A column of a scan, or of a projection above.
#[derive(Debug)]
pub(super) enum BoxColumn {
    Source(ColumnSource),
    /// An expression over the columns before this one.
    Computed(PhysicalExprRef),
}

/// Returns an expression with other numbers of columns; `None` if its values are not those of its cell alone.
pub(super) fn renumbered(
    expr: &PhysicalExprRef,
    number: impl Fn(usize) -> Option<usize>,
) -> Option<PhysicalExprRef> {
    if is_volatile(expr) {
        return None;
    }
    let mut is_known = true;
    let expr = Arc::clone(expr).transform(|node| {
        is_known &= !node.is::<LambdaExpr>();
        let Some(column) = node.downcast_ref::<Column>() else { return Ok(Transformed::no(node)) };
        let at = number(column.index());
        is_known &= at.is_some();
        Ok(Transformed::yes(Arc::new(Column::new(column.name(), at.unwrap_or_default())) as _))
    });
    expr.data().ok().filter(|_| is_known)
}

/// How a column comes to be.
#[derive(Debug)]
pub(super) enum Step {
    /// Labels along an axis.
    Labels(usize, ArrayRef),
    /// The cells of a variable.
    Cells(usize),
    /// An expression over the columns of the steps before.
    Expr(PhysicalExprRef),
}

/// Computes columns of a box.
#[derive(Debug)]
pub(super) struct Computed {
    pub(super) fields: Vec<FieldRef>,
    pub(super) steps: Vec<Step>,
    /// Per column of the query that is computed, the step that makes it.
    pub(super) outputs: Vec<(usize, usize)>,
}

impl Computed {
    /// Makes the steps that the computed columns among `shown` need. A variable that they need and the query shows too is read once, here.
    /// `None` if they need values that are neither numbers nor times, or labels of another type than their column.
    ///
    /// # Errors
    /// If labels cannot be made.
    pub(super) fn try_new(
        array: &GridArray,
        selection: &Selection,
        columns: &[(FieldRef, BoxColumn)],
        shown: &[usize],
    ) -> Result<Option<Self>> {
        let is_computed = |at: &usize| matches!(columns[*at].1, BoxColumn::Computed(_));
        let mut all = Self { fields: vec![], steps: vec![], outputs: vec![] };
        if !shown.iter().any(is_computed) {
            return Ok(Some(all));
        }
        let mut step_of = vec![];
        for (field, column) in columns {
            let step = match column {
                BoxColumn::Source(source) => match (source.axis(), array.labels_of(*source)) {
                    (Some(axis), Some(labels)) => {
                        let labels = labels.select(&selection.axes()[axis], 0)?;
                        if labels.data_type() != field.data_type() {
                            return Ok(None);
                        }
                        Step::Labels(axis, labels)
                    }
                    _ => Step::Cells(source.value().ok_or_else(|| {
                        internal_datafusion_err!("the column \"{}\" without labels", field.name())
                    })?),
                },
                BoxColumn::Computed(expr) => {
                    let expr = all.with_labels_computed(expr, &step_of)?;
                    if let Some(column) = expr.downcast_ref::<Column>() {
                        step_of.push(column.index());
                        continue;
                    }
                    Step::Expr(expr)
                }
            };
            step_of.push(all.push(field, step));
        }
        let mut is_needed = vec![false; all.steps.len()];
        for at in shown.iter().filter(|at| is_computed(at)) {
            is_needed[step_of[*at]] = true;
        }
        for (at, step) in all.steps.iter().enumerate().rev() {
            if let (true, Step::Expr(expr)) = (is_needed[at], step) {
                collect_columns(expr).iter().for_each(|it| is_needed[it.index()] = true);
            }
        }
        let is_cells = |step: usize| matches!(all.steps[step], Step::Cells(_));
        let outputs = shown.iter().enumerate().map(|(at, column)| (at, step_of[*column], column));
        let outputs = outputs
            .filter(|(_, step, column)| is_computed(column) || is_needed[*step] && is_cells(*step));
        all.outputs = outputs.map(|(at, step, _)| (at, step)).collect();
        let is_readable = |at: usize| !is_cells(at) || is_number(all.fields[at].data_type());
        if (0..all.steps.len()).any(|at| is_needed[at] && !is_readable(at)) {
            return Ok(None);
        }
        all.only(&is_needed).map(Some)
    }

    fn push(&mut self, field: &FieldRef, step: Step) -> usize {
        self.fields.push(Arc::clone(field));
        self.steps.push(step);
        self.steps.len() - 1
    }

    /// Returns an expression over the columns of steps. Largest parts of it along one axis become steps of their own.
    fn with_labels_computed(
        &mut self,
        expr: &PhysicalExprRef,
        step_of: &[usize],
    ) -> Result<PhysicalExprRef> {
        let expr = Arc::clone(expr).transform_down(|node| {
            let (name, step) = match node.downcast_ref::<Column>() {
                Some(column) => (column.name().to_owned(), step_of[column.index()]),
                None => match self.along_axis(&node, step_of) {
                    Some((axis, field, values)) => {
                        (field.name().clone(), self.push(&field, Step::Labels(axis, values)))
                    }
                    None => return Ok(Transformed::no(node)),
                },
            };
            let column = Arc::new(Column::new(&name, step)) as PhysicalExprRef;
            Ok(Transformed::new(column, true, TreeNodeRecursion::Jump))
        });
        expr.data()
    }

    /// Computes an expression for each label of its axis; `None` if it has no axis, or several. An expression that fails for a label is
    /// left to the cells too: it may be in a branch that none of them takes.
    fn along_axis(
        &self,
        expr: &PhysicalExprRef,
        step_of: &[usize],
    ) -> Option<(usize, FieldRef, ArrayRef)> {
        let columns = collect_columns(expr);
        let steps: Vec<usize> = columns.iter().map(|it| step_of[it.index()]).collect();
        let mut along = None;
        let mut labels = vec![];
        for step in &steps {
            let Step::Labels(axis, own) = &self.steps[*step] else { return None };
            if *along.get_or_insert(*axis) != *axis || own.len() > MOST_LABELS {
                return None;
            }
            labels.push(Arc::clone(own));
        }
        let len = labels.first()?.len();
        let expr = renumbered(expr, |at| steps.iter().position(|it| *it == step_of[at]))?;
        let fields = steps.iter().map(|step| Arc::clone(&self.fields[*step]));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let batch = RecordBatch::try_new(Arc::clone(&schema), labels).ok()?;
        let values = expr.evaluate(&batch).ok()?.into_array_of_size(len).ok()?;
        let field = expr.return_field(&schema).ok()?;
        (values.data_type() == field.data_type()).then_some((along?, field, values))
    }

    /// Keeps the steps that are needed.
    fn only(mut self, is_needed: &[bool]) -> Result<Self> {
        let place = |at: usize| is_needed[..at].iter().filter(|it| **it).count();
        let mut only = Self { fields: vec![], steps: vec![], outputs: vec![] };
        for (at, step) in mem::take(&mut self.steps).into_iter().enumerate() {
            if is_needed[at] {
                let step = match step {
                    Step::Expr(expr) => {
                        Step::Expr(renumbered(&expr, |at| Some(place(at))).ok_or_else(|| {
                            internal_datafusion_err!("{expr} does not tell its columns")
                        })?)
                    }
                    other => other,
                };
                only.push(&self.fields[at], step);
            }
        }
        only.outputs = self.outputs.iter().map(|(at, step)| (*at, place(*step))).collect();
        Ok(only)
    }

    /// Whether a column of the query is computed.
    pub(super) fn has(&self, column: usize) -> bool {
        self.outputs.iter().any(|(at, _)| *at == column)
    }

    /// The number of variables that are read.
    pub(super) fn variables(&self) -> usize {
        self.steps.iter().filter(|it| matches!(it, Step::Cells(_))).count()
    }
}
