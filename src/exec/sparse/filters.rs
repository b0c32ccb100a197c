//! The filters of a query over a sparse array, divided by where they are evaluated.
//!
//! ```text
//!   x BETWEEN 3 AND 9 AND t > '2024-01-01'     dimensions: before duplicates are removed
//!   value > 300 OR x = 4                       variables, too: after that
//! ```
//!
//! A predicate on coordinates removes all cells of the same coordinates alike, so it may come first. A
//! predicate on variables must come last: it could remove the newest cell, and bring back an older one.
//!
//! For the same reason, statistics cannot drop a tile that is merged. Deletions also come after: a deleted cell hides the
//! older ones.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::common::{Column, DFSchema, DFSchemaRef, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_expr::{PhysicalExprRef, conjunction};

use crate::array::SparseArray;
use crate::error::Error;
use crate::exec::columns::{columns_of, over_columns};
use crate::exec::pruning::is_immutable;
use crate::exec::pruning::labels::satisfied;

/// A predicate on the rows of a table.
#[derive(Debug, Clone)]
pub(crate) struct RowFilter {
    /// Over the columns of the table.
    pub(crate) predicate: PhysicalExprRef,
    /// The columns that it uses, ascending.
    pub(crate) columns: Vec<usize>,
    /// The same predicate over a batch of only these columns.
    narrow: PhysicalExprRef,
    /// The schema of that batch.
    schema: SchemaRef,
}

impl RowFilter {
    /// Makes a filter of a predicate over the columns of a table with this schema.
    pub(crate) fn new(predicate: PhysicalExprRef, table: &SchemaRef) -> Result<Self> {
        let columns = columns_of([&predicate]);
        let narrow = over_columns(&predicate, &columns)?;
        let schema = Arc::new(table.project(&columns)?);
        Ok(Self { predicate, columns, narrow, schema })
    }

    /// Returns the rows for which the predicate is true, neither false nor NULL. `values` are its columns.
    pub(crate) fn evaluate(&self, values: Vec<ArrayRef>, rows: usize) -> Result<BooleanBuffer> {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let schema = Arc::clone(&self.schema);
        let batch = RecordBatch::try_new_with_options(schema, values, &options)?;
        satisfied(&self.narrow, &batch)
    }
}

/// The filters of a query.
#[derive(Debug, Clone, Default)]
pub(crate) struct SparseFilters {
    /// The conjunction of the filters over dimensions.
    pub(crate) dimensions: Option<RowFilter>,
    /// The negation of each of these filters. Where one of them is false everywhere, the filter is true
    /// everywhere.
    pub(crate) negated: Vec<PhysicalExprRef>,
    /// The conjunction of all other filters.
    pub(crate) values: Option<RowFilter>,
}

/// Returns how a scan applies a filter, in DataFusion's terms.
pub(crate) fn pushdown(filter: &Expr) -> TableProviderFilterPushDown {
    match is_immutable(filter) {
        true => TableProviderFilterPushDown::Exact,
        false => TableProviderFilterPushDown::Unsupported,
    }
}

impl SparseFilters {
    /// Divides the filters of a query over `array`.
    ///
    /// # Errors
    /// If a filter cannot be evaluated on rows of the array.
    pub(crate) fn new(
        filters: &[Expr],
        array: &SparseArray,
        session: &dyn Session,
    ) -> Result<Self> {
        let names: DFSchemaRef = Arc::new(DFSchema::try_from(Arc::clone(array.schema()))?);
        let (mut over_dimensions, mut over_values) = (vec![], vec![]);
        for filter in filters.iter().flat_map(split_conjunction) {
            let is_dimension = |name: &str| {
                array.schema().index_of(name).is_ok_and(|column| column < array.rank())
            };
            match filter.column_refs().iter().all(|column| is_dimension(column.name())) {
                true => over_dimensions.push(filter),
                false => over_values.push(filter),
            }
        }
        let physical = |filter: Expr| session.create_physical_expr(filter, &names);
        let row_filter = |filters: &[&Expr]| {
            let all = filters.iter().map(|filter| physical((*filter).clone()));
            let all: Vec<PhysicalExprRef> = all.collect::<Result<_>>()?;
            let all = (!all.is_empty()).then(|| conjunction(all));
            all.map(|predicate| RowFilter::new(predicate, array.schema())).transpose()
        };
        let context = SimplifyContext::builder().with_schema(Arc::clone(&names)).build();
        let simplifier = ExprSimplifier::new(context);
        // Simplifying moves the negation to the comparisons, where bounds can decide it.
        let negated = |filter: &&Expr| {
            let negated = Expr::Not(Box::new((*filter).clone()));
            physical(simplifier.simplify(negated)?)
        };
        let limits = limits(array)?;
        over_dimensions.extend(&limits);
        Ok(Self {
            negated: over_dimensions.iter().map(negated).collect::<Result<_>>()?,
            dimensions: row_filter(&over_dimensions)?,
            values: row_filter(&over_values)?,
        })
    }
}

/// Returns filters for the only coordinates that the table shows; none if it shows all.
fn limits(array: &SparseArray) -> Result<Vec<Expr>> {
    let Some(limits) = array.source().limits()? else { return Ok(vec![]) };
    let mut filters = vec![];
    for (axis, (least, greatest)) in limits.least.iter().zip(&limits.greatest).enumerate() {
        let column = || Expr::Column(Column::from_name(array.schema().field(axis).name()));
        let low = ScalarValue::try_from_array(least, 0)?;
        let high = ScalarValue::try_from_array(greatest, 0)?;
        if low.is_null() || high.is_null() {
            let name = array.schema().field(axis).name();
            let message = format!("a current domain of \"{name}\" that its column cannot show");
            return Err(array.objects().named(Error::unsupported(message)).into());
        }
        filters.push(column().gt_eq(Expr::Literal(low, None)));
        filters.push(column().lt_eq(Expr::Literal(high, None)));
    }
    Ok(filters)
}
