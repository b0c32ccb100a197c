//! [`ProductPlan`]: aggregates as sums of products of a function of the cell and a function of the row.
//!
//! ```text
//!   weighted_avg(value, weight)      cell  value                 row  weight
//!   sum(value * area) FILTER (u > 0) cell  value                 row  area, if u > 0
//!   avg(value), stddev(value)        cell  value                 row  1
//!   stddev(value * part)             cell  value                 row  part
//!   count(*)                         cell  1                     row  1
//! ```
//!
//! The weights of the rows are the entries of a sparse matrix, which does not change from chunk to chunk.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::{BinaryExpr, CastExpr, Literal};

use super::query::JoinQuery;
use crate::exec::columns::{columns_of, move_columns};
use crate::exec::lookup::GridLookup;
use crate::exec::matching::known_aggregate;
use crate::exec::reduce::{Aggregate, Call};
use crate::reduce::RequestedStats;

/// A function of a cell.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct CellTerm {
    /// The value over the columns of the scan; `None` for 1.
    pub(super) value: Option<PhysicalExprRef>,
    /// The condition for cells to count.
    pub(super) filter: Option<PhysicalExprRef>,
}

/// A function of a row of the other side.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct RowTerm {
    /// The weight over the columns of the other side; `None` for 1. Rows where it is NULL do not count.
    pub(super) weight: Option<PhysicalExprRef>,
    /// Whether the weight is 1 where it is not NULL, whatever its type.
    pub(super) is_count: bool,
    /// The condition for rows to count.
    pub(super) filter: Option<PhysicalExprRef>,
}

/// Aggregates as sums of products.
#[derive(Debug, Default)]
pub(super) struct ProductPlan {
    pub(super) cells: Vec<CellTerm>,
    pub(super) rows: Vec<RowTerm>,
    /// The cell term and the row term of each product. The first is that of all pairs.
    pub(super) products: Vec<(usize, usize)>,
    /// The statistics of each product that are requested, besides counts and sums.
    pub(super) requested: Vec<RequestedStats>,
    /// The aggregates, and the products that they are of.
    pub(super) calls: Vec<(Call, usize)>,
}

/// The side that an expression is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    /// Variables of the array.
    Cell,
    /// Columns of the other side, or none.
    Row,
}

/// The columns of both sides.
struct Sides<'a> {
    lookup: &'a GridLookup,
    scanned: usize,
}

impl ProductPlan {
    /// Takes the aggregates of a query apart; `None` if one is no sum of products.
    pub(super) fn try_new(query: &JoinQuery, lookup: &GridLookup) -> Option<Self> {
        if query.predicate.is_some() {
            return None;
        }
        let sides = Sides { lookup, scanned: lookup.scan.columns().len() };
        let predicate = lookup.predicate.as_ref();
        if predicate.is_some_and(|it| sides.of(it) != Some(Side::Cell)) {
            return None;
        }
        let mut plan = Self::default();
        plan.product(CellTerm { value: None, filter: predicate.cloned() }, RowTerm::default());
        for call in &query.aggregates {
            let (kind, mut cell, mut row) = sides.call(call)?;
            cell.filter = predicate.cloned();
            if let Some(filter) = &call.filter {
                match sides.of(filter)? {
                    Side::Row => row.filter = Some(sides.over_row(filter)?),
                    // Both conditions would have to be evaluated one behind the other.
                    Side::Cell if cell.filter.is_some() => return None,
                    Side::Cell => cell.filter = Some(Arc::clone(filter)),
                }
            }
            let product = plan.product(cell, row);
            plan.requested[product] = plan.requested[product].or(kind.requested());
            plan.calls.push((kind, product));
        }
        Some(plan)
    }

    /// Returns the number of a product.
    fn product(&mut self, cell: CellTerm, row: RowTerm) -> usize {
        let product = (at_or_push(&mut self.cells, cell), at_or_push(&mut self.rows, row));
        let product = at_or_push(&mut self.products, product);
        self.requested.resize(self.products.len(), RequestedStats::default());
        product
    }
}

/// Returns the position of an element, which is appended if it is not there.
fn at_or_push<T: PartialEq>(list: &mut Vec<T>, element: T) -> usize {
    list.iter().position(|it| *it == element).unwrap_or_else(|| {
        list.push(element);
        list.len() - 1
    })
}

impl Sides<'_> {
    /// Returns the side that an expression is over; `None` for both sides, and for dimensions.
    fn of(&self, expr: &PhysicalExprRef) -> Option<Side> {
        let columns = columns_of([expr]);
        let of_scan = self.lookup.scan.columns();
        let is_variable =
            |column: &usize| of_scan.get(*column).is_some_and(|it| it.value().is_some());
        if columns.iter().all(|column| *column >= self.scanned) {
            return Some(Side::Row);
        }
        columns.iter().all(is_variable).then_some(Side::Cell)
    }

    fn over_row(&self, expr: &PhysicalExprRef) -> Option<PhysicalExprRef> {
        move_columns(expr, &|at| at.checked_sub(self.scanned)).ok()
    }

    fn is_double(&self, expr: &PhysicalExprRef) -> bool {
        matches!(expr.data_type(&self.lookup.schema), Ok(DataType::Float64))
    }

    /// Takes an aggregate apart, without its filter.
    fn call(&self, call: &Aggregate) -> Option<(Call, CellTerm, RowTerm)> {
        let function = &call.function;
        if function.is_distinct() {
            return None;
        }
        let doubles = *function.field().data_type() == DataType::Float64;
        match (known_aggregate(function.fun())?, call.args.as_slice()) {
            ("count", [arg]) => {
                let is_known =
                    arg.downcast_ref::<Literal>().is_some_and(|it| !it.value().is_null());
                if is_known {
                    return Some((Call::Count, CellTerm::default(), RowTerm::default()));
                }
                if let Some((cell, row)) = self.product(arg) {
                    return Some((Call::Count, cell, row));
                }
                match self.of(arg)? {
                    Side::Cell => {
                        // A number is as NULL as a double.
                        let (cell, _) = self.double(arg)?;
                        Some((Call::Count, cell, RowTerm::default()))
                    }
                    Side::Row => {
                        let weight = Some(self.over_row(arg)?);
                        let row = RowTerm { weight, is_count: true, filter: None };
                        Some((Call::Count, CellTerm::default(), row))
                    }
                }
            }
            (name @ ("min" | "max"), [arg]) if self.of(arg)? == Side::Cell => {
                let (cell, is_exact) = self.double(arg)?;
                let call = if name == "min" { Call::Min } else { Call::Max };
                is_exact.then(|| (call, cell, RowTerm::default()))
            }
            (name @ ("var" | "var_pop" | "stddev" | "stddev_pop"), [arg]) => {
                let (sample, root) = (!name.ends_with("_pop"), name.starts_with("stddev"));
                let (cell, row) = self.product(arg)?;
                Some((Call::Variance { sample, root }, cell, row))
            }
            ("sum", [arg]) if doubles => {
                self.product(arg).map(|(cell, row)| (Call::Sum, cell, row))
            }
            ("avg", [arg]) if doubles => {
                self.product(arg).map(|(cell, row)| (Call::Average, cell, row))
            }
            ("weighted_avg", [value, weight]) => {
                let sides = (self.of(value)?, self.of(weight)?);
                let fits = sides == (Side::Cell, Side::Row);
                if !fits || !self.is_double(value) || !self.is_double(weight) {
                    return None;
                }
                let (cell, row) = (self.cell(value), self.row(weight)?);
                Some((Call::WeightedAverage, cell, row))
            }
            _ => None,
        }
    }

    /// Takes a double apart that is of one side, or a product of two sides.
    fn product(&self, arg: &PhysicalExprRef) -> Option<(CellTerm, RowTerm)> {
        if !self.is_double(arg) {
            return None;
        }
        match self.of(arg) {
            Some(Side::Cell) => return Some((self.cell(arg), RowTerm::default())),
            Some(Side::Row) => return Some((CellTerm::default(), self.row(arg)?)),
            None => {}
        }
        let product = arg.downcast_ref::<BinaryExpr>()?;
        let (left, right) = (product.left(), product.right());
        let is_product = *product.op() == Operator::Multiply;
        if !is_product || !self.is_double(left) || !self.is_double(right) {
            return None;
        }
        match (self.of(left)?, self.of(right)?) {
            (Side::Cell, Side::Row) => Some((self.cell(left), self.row(right)?)),
            (Side::Row, Side::Cell) => Some((self.cell(right), self.row(left)?)),
            _ => None,
        }
    }

    /// Returns numbers as doubles, and whether no two become one; `None` for values that are no numbers.
    fn double(&self, value: &PhysicalExprRef) -> Option<(CellTerm, bool)> {
        use DataType::{Float32, Float64, Int8, Int16, Int32, UInt8, UInt16, UInt32};
        let data_type = value.data_type(&self.lookup.schema).ok()?;
        if data_type == Float64 {
            return Some((self.cell(value), true));
        }
        let is_exact =
            matches!(data_type, Float32 | Int8 | Int16 | Int32 | UInt8 | UInt16 | UInt32);
        let double: PhysicalExprRef = Arc::new(CastExpr::new(Arc::clone(value), Float64, None));
        (data_type.is_integer() || is_exact).then(|| (self.cell(&double), is_exact))
    }

    fn cell(&self, value: &PhysicalExprRef) -> CellTerm {
        CellTerm { value: Some(Arc::clone(value)), filter: None }
    }

    fn row(&self, weight: &PhysicalExprRef) -> Option<RowTerm> {
        Some(RowTerm { weight: Some(self.over_row(weight)?), is_count: false, filter: None })
    }
}
