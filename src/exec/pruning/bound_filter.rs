//! [`BoundFilter`]: a filter as a physical expression over the columns that it uses.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::DFSchema;
use datafusion::error::Result;
use datafusion::logical_expr::Expr;
use datafusion::physical_expr::PhysicalExprRef;

use crate::array::{ColumnSource, GridArray};

/// Returns the position of a column in the schema, and its source; `None` if there is no such column.
pub(super) fn find(array: &GridArray, name: &str) -> Option<(usize, ColumnSource)> {
    let at = array.schema().index_of(name).ok()?;
    Some((at, array.columns()[at]))
}

/// A filter as a physical expression, over the columns that it uses.
pub(super) struct BoundFilter {
    /// The sources of these columns, in the order of the array's schema.
    pub(super) columns: Vec<ColumnSource>,
    /// The fields of these columns.
    pub(super) schema: SchemaRef,
    pub(super) predicate: PhysicalExprRef,
}

impl BoundFilter {
    pub(super) fn try_new(filter: &Expr, array: &GridArray, session: &dyn Session) -> Result<Self> {
        let needed: BTreeSet<usize> = filter
            .column_refs()
            .iter()
            .filter_map(|column| Some(find(array, column.name())?.0))
            .collect();
        let columns = needed.iter().map(|&at| array.columns()[at]).collect();
        let fields: Vec<_> =
            needed.iter().map(|&at| Arc::clone(&array.schema().fields()[at])).collect();
        let schema = Arc::new(Schema::new(fields));
        let names = DFSchema::try_from(Arc::clone(&schema))?;
        let predicate = session.create_physical_expr(filter.clone(), &names)?;
        Ok(Self { columns, schema, predicate })
    }
}
