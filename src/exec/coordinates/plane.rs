//! [`Plane`]: the selected cells of some axes, on which expressions are evaluated; and their columns.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanBufferBuilder, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow::buffer::BooleanBuffer;
use arrow::compute::take;
use arrow::datatypes::SchemaRef;
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_expr::PhysicalExprRef;

use super::Coordinate;
use super::cells::{known_cells, read_cells, strides};
use crate::array::{ColumnSource, GridArray};
use crate::exec::pruning::labels::satisfied;
use crate::grid::{AxisSelection, Selection};

/// The number of cells that are evaluated at once.
const CELLS_PER_BATCH: u64 = 1 << 16;

/// The selected cells of some axes, row-major.
#[derive(Debug, Clone)]
pub(in crate::exec) struct Plane {
    /// The axes, ascending.
    pub(in crate::exec) axes: Vec<usize>,
    /// The selected indices of each.
    pub(in crate::exec) selection: Vec<AxisSelection>,
}

impl Plane {
    /// Returns the cells that `selection`, which is over all axes, has on `axes`.
    pub(in crate::exec) fn new(axes: Vec<usize>, selection: &Selection) -> Self {
        let selection = axes.iter().map(|axis| selection.axes()[*axis].clone()).collect();
        Self { axes, selection }
    }

    /// Returns the number of selected indices of each axis.
    pub(in crate::exec) fn lens(&self) -> Vec<u64> {
        self.selection.iter().map(AxisSelection::count).collect()
    }

    /// Cuts the plane along its first axis into parts of about a batch.
    fn parts(&self) -> Vec<Self> {
        let Some((first, inner)) = self.selection.split_first() else { return vec![self.clone()] };
        let per_index: u64 = inner.iter().map(AxisSelection::count).product();
        let step = (CELLS_PER_BATCH / per_index.max(1)).max(1);
        let starts = (0..first.count()).step_by(step as usize);
        let part = |start: u64| {
            let mut part = self.clone();
            part.selection[0] = first.slice(start..(start + step).min(first.count()));
            part
        };
        starts.map(part).collect()
    }

    /// Returns, for each cell, the sum of its indices times the strides of their axes.
    fn places(&self, strides: impl Iterator<Item = u64>) -> Vec<u64> {
        let indices = |axis: &AxisSelection| -> Vec<u64> {
            axis.ranges().iter().cloned().flatten().collect()
        };
        offsets(self.selection.iter().map(indices).zip(strides))
    }
}

/// Returns the sums of an index of each axis times its stride, for all combinations, row-major.
pub(super) fn offsets(axes: impl Iterator<Item = (Vec<u64>, u64)>) -> Vec<u64> {
    let mut all = vec![0];
    for (indices, stride) in axes {
        let mut longer = Vec::with_capacity(all.len() * indices.len());
        for outer in all {
            longer.extend(indices.iter().map(|index| outer + index * stride));
        }
        all = longer;
    }
    all
}

/// Columns of an array that are over the axes of a plane, or over some of them.
#[derive(Debug)]
pub(in crate::exec) struct PlaneColumns<'a> {
    array: &'a Arc<GridArray>,
    /// The fields of the columns.
    schema: SchemaRef,
    columns: Vec<ColumnSource>,
    /// The cells of each column of a variable.
    cells: Vec<Option<ArrayRef>>,
}

impl<'a> PlaneColumns<'a> {
    /// Reads the variables among `columns`, for the cells of `selection`.
    ///
    /// # Errors
    /// If a chunk cannot be read.
    pub(in crate::exec) async fn read(
        array: &'a Arc<GridArray>,
        columns: Vec<ColumnSource>,
        schema: SchemaRef,
        selection: &Selection,
        context: &Arc<TaskContext>,
    ) -> Result<Self> {
        let mut cells = Vec::with_capacity(columns.len());
        for column in &columns {
            cells.push(match column {
                ColumnSource::Value(value) => {
                    Some(read_cells(array, *value, selection, Arc::clone(context)).await?)
                }
                _ => None,
            });
        }
        Ok(Self { array, schema, columns, cells })
    }

    /// As [`PlaneColumns::read`], for synchronous code.
    ///
    /// # Errors
    /// As there.
    pub(in crate::exec) fn of_rule(
        array: &'a Arc<GridArray>,
        columns: Vec<ColumnSource>,
        schema: SchemaRef,
        selection: &Selection,
    ) -> Result<Self> {
        let of = |column: &ColumnSource| match column {
            ColumnSource::Value(value) => known_cells(array, *value, selection).map(Some),
            _ => Ok(None),
        };
        let cells = columns.iter().map(of).collect::<Result<_>>()?;
        Ok(Self { array, schema, columns, cells })
    }

    /// Returns the columns over the cells of a plane, in batches.
    pub(in crate::exec) fn batches(
        &self,
        plane: &Plane,
    ) -> impl Iterator<Item = Result<RecordBatch>> {
        plane.parts().into_iter().map(move |part| {
            let rows: u64 = part.lens().iter().product();
            let columns = self.columns.iter().zip(&self.cells);
            let columns =
                columns.map(|(column, cells)| self.column(&part, *column, cells.as_ref()));
            let columns = columns.collect::<Result<Vec<_>>>()?;
            let options = RecordBatchOptions::new().with_row_count(Some(rows as usize));
            let schema = SchemaRef::clone(&self.schema);
            Ok(RecordBatch::try_new_with_options(schema, columns, &options)?)
        })
    }

    fn column(
        &self,
        plane: &Plane,
        column: ColumnSource,
        cells: Option<&ArrayRef>,
    ) -> Result<ArrayRef> {
        if let (ColumnSource::Value(value), Some(cells)) = (column, cells) {
            let own = Coordinate::new(self.array, value).axes;
            let own_strides = strides(own.iter().map(|axis| self.array.grid().shape()[*axis]));
            let stride =
                |axis: &usize| own.iter().position(|it| it == axis).map_or(0, |at| own_strides[at]);
            let places = plane.places(plane.axes.iter().map(stride));
            return Ok(take(cells, &UInt64Array::from(places), None)?);
        }
        let Some(labels) = self.array.labels_of(column) else {
            return internal_err!("a column that is not there");
        };
        let of_axis = |axis: &usize| u64::from(Some(*axis) == column.axis());
        let places = plane.places(plane.axes.iter().map(of_axis));
        Ok(labels.at(places.into_iter().map(Some))?)
    }

    /// Returns the cells of a plane for which `predicate` is true, neither false nor NULL.
    ///
    /// # Errors
    /// If the predicate fails on a cell, or is not a condition.
    pub(in crate::exec) fn satisfied(
        &self,
        plane: &Plane,
        predicate: &PhysicalExprRef,
    ) -> Result<BooleanBuffer> {
        let cells: u64 = plane.lens().iter().product();
        let mut keep = BooleanBufferBuilder::new(cells as usize);
        for batch in self.batches(plane) {
            keep.append_buffer(&satisfied(predicate, &batch?)?);
        }
        Ok(keep.finish())
    }
}
