//! [`FirstCell`]: `first_value(e ORDER BY value)`, where the extreme of a variable is.
//!
//! ```text
//!   first_value(time ORDER BY t DESC) … GROUP BY lat, lon
//!     kernels    the greatest t of each group, and the number of its cell
//!     labels     the index of the cell along time, and the label there
//! ```
//!
//! `last_value` is `first_value` in the opposite order. Of equal values the cell counts that comes first in the array, chunk by
//! chunk, for both functions. Over rows, and where the final stage merges partitions, DataFusion takes the row that arrives first.
//!
//! NULL is first or last, as in SQL. Where it is first, a group with a NULL has the label of its first NULL.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, UInt64Array, new_null_array,
};
use arrow::compute::{cast, nullif, take};
use arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::common::internal_datafusion_err;
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExprRef;

use super::number::number_of;
use super::query::Aggregate;
use crate::exec::GridScanExec;
use crate::exec::columns::{columns_of, over_columns};
use crate::exec::matching::{known_aggregate, selected_labels};
use crate::plan::ScanPlan;
use crate::reduce::{CellNumber, GroupStats, RequestedCells};

/// An expression over labels, at the cell where a variable is least or greatest.
#[derive(Debug, Clone)]
pub(super) struct FirstCell {
    is_greatest: bool,
    /// Whether NULL comes before all values.
    nulls_first: bool,
    /// Whether cells without a value count. A condition on the variable leaves them out.
    counts_nulls: bool,
    /// The type of the variable in the order.
    order_type: DataType,
    /// The expression, over `columns`.
    expr: PhysicalExprRef,
    /// The type of the expression.
    data_type: DataType,
    schema: SchemaRef,
    /// The axis and the selected labels of each column.
    columns: Vec<(usize, ArrayRef)>,
    /// The plan over whose selection labels are.
    plan: Arc<ScanPlan>,
}

impl FirstCell {
    /// Translates `aggregate`, which has an order, and returns its variable too. `None` if it is another function, or if its order or
    /// its argument is not supported.
    pub(super) fn try_new(aggregate: &Aggregate, scan: &GridScanExec) -> Option<(Self, usize)> {
        let function = &aggregate.function;
        let is_last = match known_aggregate(function.fun())? {
            "first_value" => false,
            "last_value" => true,
            _ => return None,
        };
        let ([arg], [order]) = (aggregate.args.as_slice(), aggregate.order_by.as_slice()) else {
            return None;
        };
        let (value, order_type) = number_of(&order.expr, scan)?;
        if function.ignore_nulls() || !CellNumber::fit(scan.plan().grid()) {
            return None;
        }
        let needed = columns_of([arg]);
        let fields = needed.iter().map(|at| Arc::clone(&scan.schema_ref().fields()[*at]));
        let first = Self {
            is_greatest: order.options.descending != is_last,
            nulls_first: order.options.nulls_first != is_last,
            counts_nulls: true,
            order_type,
            expr: over_columns(arg, &needed).ok()?,
            data_type: function.field().data_type().clone(),
            schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())),
            columns: needed.iter().map(|at| selected_labels(scan, *at)).collect::<Option<_>>()?,
            plan: Arc::clone(scan.plan()),
        };
        Some((first, value))
    }

    /// Leaves out cells without a value.
    pub(super) fn without_nulls(self) -> Self {
        Self { counts_nulls: false, ..self }
    }

    /// Returns the cells that the call needs of a member.
    pub(super) fn requested(&self) -> RequestedCells {
        RequestedCells {
            least: !self.is_greatest,
            greatest: self.is_greatest,
            null: self.counts_nulls,
        }
    }

    /// Returns the column of final values if `whole`, and otherwise those of the partial state, which has the form of DataFusion's own
    /// function: the value, the variable, and whether there is a row.
    pub(super) fn columns(&self, stats: &GroupStats, whole: bool) -> Result<Vec<ArrayRef>> {
        let missing = || internal_datafusion_err!("the cells of extremes were not requested");
        let found = stats.cells.as_ref().ok_or_else(missing)?;
        let best = if self.is_greatest { &found.greatest } else { &found.least };
        let best = best.as_ref().ok_or_else(missing)?;
        let nulls = match self.counts_nulls {
            true => Some(found.nulls.as_ref().ok_or_else(missing)?),
            false => None,
        };
        let is_best = |place: usize| {
            let is_null = |nulls: &Vec<CellNumber>| nulls[place] != CellNumber::NONE;
            best.cells[place] != CellNumber::NONE
                && !(self.nulls_first && nulls.is_some_and(is_null))
        };
        let cell = |place: usize| match nulls {
            Some(nulls) if !is_best(place) => nulls[place],
            _ => best.cells[place],
        };
        let places = 0..best.cells.len();
        let cells: Vec<CellNumber> = places.clone().map(cell).collect();
        let values = self.at_cells(&cells)?;
        if whole {
            return Ok(vec![values]);
        }
        let numbers = places.map(|place| is_best(place).then_some(place as u64));
        let numbers = take(&best.values, &numbers.collect::<UInt64Array>(), None)?;
        let is_set = cells.iter().map(|cell| Some(*cell != CellNumber::NONE));
        let is_set: BooleanArray = is_set.collect();
        Ok(vec![values, cast(&numbers, &self.order_type)?, Arc::new(is_set)])
    }

    /// Returns the expression at each cell; NULL without one.
    fn at_cells(&self, cells: &[CellNumber]) -> Result<ArrayRef> {
        if self.columns.iter().any(|(_, labels)| labels.is_empty()) {
            return Ok(new_null_array(&self.data_type, cells.len()));
        }
        let (grid, selection) = (self.plan.grid(), self.plan.selection().axes());
        let ranks = |axis: usize| -> UInt64Array {
            let rank = |cell: &CellNumber| match *cell {
                CellNumber::NONE => 0,
                cell => selection[axis].count_before(cell.index(grid, axis)),
            };
            UInt64Array::from_iter_values(cells.iter().map(rank))
        };
        let values = match self.columns.as_slice() {
            // Once per label, if these are fewer.
            [(axis, labels), others @ ..]
                if labels.len() < cells.len() && others.iter().all(|(other, _)| other == axis) =>
            {
                let columns = self.columns.iter().map(|(_, labels)| Arc::clone(labels));
                take(&self.evaluated(columns.collect(), labels.len())?, &ranks(*axis), None)?
            }
            columns => {
                let column = |(axis, labels): &(usize, ArrayRef)| take(labels, &ranks(*axis), None);
                let columns = columns.iter().map(column).collect::<std::result::Result<_, _>>()?;
                self.evaluated(columns, cells.len())?
            }
        };
        if !cells.contains(&CellNumber::NONE) {
            return Ok(values);
        }
        let is_unset = cells.iter().map(|cell| Some(*cell == CellNumber::NONE));
        Ok(nullif(&values, &is_unset.collect::<BooleanArray>())?)
    }

    fn evaluated(&self, columns: Vec<ArrayRef>, rows: usize) -> Result<ArrayRef> {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?;
        self.expr.evaluate(&batch)?.into_array(rows)
    }
}
