//! [`CopiedArray`]: an array whose cells become those of a new one.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::sorts::sort::SortExec;

use super::super::dimensions::DimensionColumn;
use super::super::labels::Labels;
use super::super::new_store::have_one_width;
use super::sections::{ReadCosts, section_bytes};
use crate::array::ColumnSource;
use crate::exec::GridScanExec;
use crate::exec::columns::{columns_of, over_columns};
use crate::exec::matching::{Over, ScanBelow, ScanCells, values_of_labels};

/// The cells of a scan and expressions over them, each with its place in a new array.
#[derive(Debug)]
pub(in crate::exec::write::array) struct CopiedArray {
    /// Shows each cell of its selection.
    pub(super) scan: GridScanExec,
    /// Per dimension of the new array, the axis of the scanned one. Other axes have one index.
    pub(super) axes: Vec<usize>,
    /// Per dimension, its labels in order.
    pub(in crate::exec::write::array) labels: Vec<ArrayRef>,
    /// Per dimension, the place among `labels` of each selected index.
    pub(in crate::exec::write::array) places: Vec<Vec<u64>>,
    /// The variables, over `columns`.
    pub(super) variables: Vec<PhysicalExprRef>,
    /// The columns of the array that the variables need.
    pub(super) columns: Vec<ColumnSource>,
    /// The schema of `columns`.
    pub(super) schema: SchemaRef,
}

impl CopiedArray {
    /// Finds the array below a plan whose columns are these dimensions and variables. `None` if its rows are not all cells of a box, each
    /// with other labels, or if they are better sorted.
    ///
    /// # Errors
    /// Internal errors only.
    pub(in crate::exec::write::array) fn find(
        plan: &Arc<dyn ExecutionPlan>,
        dimensions: &[DimensionColumn],
        variables: &[usize],
    ) -> Result<Option<Self>> {
        let Some(below) = ScanBelow::find(&without_sorts(plan)?, ScanCells::Selected)? else {
            return Ok(None);
        };
        let (scan, operators) = (&below.scan, &below.operators);
        let schema = plan.schema();
        // Nothing bounds the bytes of texts before they are read. Rows of them go to the disk.
        let fits = |column: &usize| {
            !scan.is_limited() || have_one_width(schema.field(*column).data_type())
        };
        let is_whole = scan.whole_box().is_some_and(|it| it.cells() > 0);
        let all_fit = variables.iter().all(fits);
        if operators.predicate.is_some()
            || operators.columns.iter().any(is_volatile)
            || !is_whole
            || !all_fit
        {
            return Ok(None);
        }
        let mut this = Self::of_variables(scan, &operators.columns, variables)?;
        for dimension in dimensions {
            let name = schema.field(dimension.column).name();
            if !this.add_dimension(name, &operators.columns[dimension.column], dimension)? {
                return Ok(None);
            }
        }
        let counts = scan.plan().selection().axes().iter().map(|axis| axis.count());
        let is_placed = |(axis, count)| count == 1 || this.axes.contains(&axis);
        let is_complete = counts.enumerate().all(is_placed);
        Ok((is_complete && this.costs().are_worthwhile(section_bytes(scan))).then_some(this))
    }

    /// Returns the variables of a new array without dimensions.
    fn of_variables(
        scan: &GridScanExec,
        columns: &[PhysicalExprRef],
        variables: &[usize],
    ) -> Result<Self> {
        let variables: Vec<_> = variables.iter().map(|at| &columns[*at]).collect();
        let used = columns_of(variables.iter().copied());
        let variables = variables.into_iter().map(|it| over_columns(it, &used));
        let sources = scan.columns();
        let fields: Vec<_> =
            used.iter().map(|at| Arc::clone(&scan.schema_ref().fields()[*at])).collect();
        Ok(Self {
            scan: scan.clone(),
            axes: vec![],
            labels: vec![],
            places: vec![],
            variables: variables.collect::<Result<_>>()?,
            columns: used.iter().map(|at| sources[*at]).collect(),
            schema: Arc::new(Schema::new(fields)),
        })
    }

    /// Adds a dimension. Returns false if its labels are not those of an axis, each of another value.
    fn add_dimension(
        &mut self,
        name: &str,
        expr: &PhysicalExprRef,
        dimension: &DimensionColumn,
    ) -> Result<bool> {
        let Over::Axis(axis) = Over::new(expr, &self.scan) else { return Ok(false) };
        let values = values_of_labels(&self.scan, axis, std::slice::from_ref(expr));
        let Some(values) = values.and_then(|it| it.into_iter().next()) else { return Ok(false) };
        let mut labels = Labels::try_new(name, values.data_type(), dimension.order)?;
        // Labels that are NULL have their error when rows are read.
        let is_numbered = labels.runs(&values).is_ok() && labels.len() == values.len();
        if self.axes.contains(&axis) || !is_numbered {
            return Ok(false);
        }
        // Each label is another one than those before, so its number is its position.
        let (labels, places) = labels.in_order()?;
        self.axes.push(axis);
        self.labels.push(labels);
        self.places.push(places);
        Ok(true)
    }

    /// Returns the number of cells.
    pub(in crate::exec::write::array) fn cells(&self) -> u64 {
        self.scan.plan().selection().cells()
    }

    fn costs(&self) -> ReadCosts {
        /// The bytes of a text, as far as they are known.
        const TEXT: usize = 16;
        let array = self.scan.array();
        let width = |it: &PhysicalExprRef| {
            let data_type = it.data_type(&self.schema).ok();
            data_type.and_then(|it| it.primitive_width()).unwrap_or(TEXT) as u64
        };
        let first = self.axes.first().copied().unwrap_or(0);
        let len = array.grid().shape()[first];
        ReadCosts {
            cells: self.cells(),
            rows: self.places.first().map_or(1, Vec::len) as u64,
            cell_bytes: self.variables.iter().map(width).sum(),
            chunk_len: len.div_ceil(array.grid().chunks_per_axis()[first].max(1)),
        }
    }
}

/// Returns a plan of the same rows in any order.
fn without_sorts(plan: &Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let sorted = Arc::clone(plan).transform_down(|node| {
        let sort = node.downcast_ref::<SortExec>().filter(|sort| sort.fetch().is_none());
        Ok(match sort {
            Some(sort) => Transformed::yes(Arc::clone(sort.input())),
            None => Transformed::no(node),
        })
    });
    sorted.data()
}
