//! [`LabelledGrid`]: the cells of an array's grid, with the labels that its table shows.

use arrow::array::{ArrayRef, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::FieldRef;
use datafusion::error::Result;
use gridfusion_spatial::{CurvilinearGrid, Grid, NearestCell};

/// One axis: the column of the array's table, and its label per row or column of the grid.
#[derive(Debug, Clone)]
pub(crate) struct LabelledAxis {
    pub(crate) field: FieldRef,
    pub(crate) labels: ArrayRef,
}

impl LabelledAxis {
    /// Returns the labels at these indices, bit by bit as they are; NULL for NULL.
    pub(super) fn at(&self, indices: &UInt32Array) -> Result<ArrayRef> {
        Ok(take(&self.labels, indices, None)?)
    }
}

/// The grid of an array along two of its dimensions.
#[derive(Debug)]
pub(crate) struct LabelledGrid {
    /// The name of the array, for `EXPLAIN` and messages.
    pub(crate) name: String,
    pub(crate) y: LabelledAxis,
    pub(crate) x: LabelledAxis,
    pub(crate) cells: GridCells,
    /// The metres of one unit of distance; `None` if the coordinates are no lengths. Distances on the sphere are metres.
    pub(crate) metres: Option<f64>,
}

/// The places of cells.
#[derive(Debug)]
pub(crate) enum GridCells {
    /// With coordinates per axis.
    Rectilinear(Grid),
    /// With a latitude and a longitude per cell.
    Curvilinear(CurvilinearGrid),
}

impl LabelledGrid {
    /// Returns the cell nearest to a point, at most `within` metres away, with its distance in metres, or in units if these are
    /// no lengths.
    pub(super) fn nearest(&self, y: f64, x: f64, within: f64) -> Option<NearestCell> {
        let metres = self.metres.unwrap_or(1.0);
        let mut cell = match &self.cells {
            GridCells::Rectilinear(grid) => grid.nearest(y, x, within / metres),
            GridCells::Curvilinear(grid) => grid.nearest(y, x, within),
        }?;
        cell.distance *= metres;
        Some(cell)
    }

    /// Returns the number of cells.
    pub(crate) fn cells(&self) -> usize {
        self.y.labels.len().saturating_mul(self.x.labels.len())
    }

    /// Returns the part of `EXPLAIN` that names the grid.
    pub(super) fn shown(&self) -> String {
        let (y, x) = (self.y.field.name(), self.x.field.name());
        let (rows, columns) = (self.y.labels.len(), self.x.labels.len());
        let kind = match self.cells {
            GridCells::Rectilinear(_) => "",
            GridCells::Curvilinear(_) => " curvilinear",
        };
        format!("grid={} [{y}={rows}, {x}={columns}]{kind}", self.name)
    }
}
