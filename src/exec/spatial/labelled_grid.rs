//! [`LabelledGrid`]: the cells of an array's grid, with the labels that its table shows.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, FieldRef, Float64Type};
use datafusion::error::Result;
use gridfusion_spatial::{Axis, AxisKind, CurvilinearCells, CurvilinearGrid, Grid, NearestCell};

use crate::array::GridArray;
use crate::error::{Error, Result as GridResult};
use crate::source::TableOrigin;

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

    /// Leaves out a last longitude that repeats the first, such as 180 after -180.
    ///
    /// # Errors
    /// `Usage` if labels are no numbers.
    pub(crate) fn without_cyclic_label(self) -> GridResult<Self> {
        let labels = self.numbers()?;
        match labels.as_slice() {
            [first, _, .., last] if ((last - first).abs() - 360.0).abs() < 1e-4 => {
                let labels = self.labels.slice(0, labels.len() - 1);
                Ok(Self { labels, ..self })
            }
            _ => Ok(self),
        }
    }

    /// Returns the labels as numbers.
    fn numbers(&self) -> GridResult<Vec<f64>> {
        let name = self.field.name();
        let labels = cast(&self.labels, &DataType::Float64).map_err(|error| {
            Error::usage(format!("the labels of \"{name}\" are no numbers: {error}"))
        })?;
        match labels.null_count() {
            0 => Ok(labels.as_primitive::<Float64Type>().values().to_vec()),
            _ => Err(Error::usage(format!("\"{name}\" has a label that is NULL"))),
        }
    }

    /// Returns the cells along the axis.
    fn cells(&self, kind: AxisKind, edges: Option<&Edges>) -> GridResult<Axis> {
        let axis = Axis::new(kind, &self.numbers()?, edges.map(|it| &**it));
        axis.map_err(|error| error.about(&format!("dimension \"{}\"", self.field.name())))
    }
}

/// The two edges of each cell along an axis.
pub(crate) type Edges = Arc<[[f64; 2]]>;

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
    /// The array with the coordinates; `None` if these are few, or the program opened the array itself.
    #[cfg_attr(
        not(feature = "codec"),
        allow(dead_code, reason = "only plans that travel need it")
    )]
    pub(crate) coordinates: Option<GridCoordinates>,
}

/// The array with a latitude and a longitude per cell, from which another process makes the grid again.
#[derive(Debug)]
#[cfg_attr(not(feature = "codec"), allow(dead_code, reason = "only plans that travel need it"))]
pub(crate) struct GridCoordinates {
    pub(crate) array: Arc<GridArray>,
    pub(crate) origin: TableOrigin,
    pub(crate) options: GridOptions,
}

/// Which grid of an array is meant, as options tell.
#[derive(Debug, Clone, Default)]
pub(crate) struct GridOptions {
    /// The name of the dimension of rows, or of a latitude per cell.
    pub(crate) y: Option<String>,
    /// The name of the dimension of columns, or of a longitude per cell.
    pub(crate) x: Option<String>,
    /// Whether edges lie in the middle between labels, whatever bounds the file has.
    pub(crate) has_midpoints: bool,
}

impl GridOptions {
    /// Whether the axes are named, which tells that the rows have the same coordinates.
    pub(crate) fn are_named(&self) -> bool {
        self.y.is_some() && self.x.is_some()
    }
}

/// The places of cells.
#[derive(Debug)]
pub(crate) enum GridCells {
    /// With coordinates per axis.
    Rectilinear {
        grid: Grid,
        /// The edges of rows and columns that do not lie in the middle between labels.
        #[cfg_attr(
            not(feature = "codec"),
            allow(dead_code, reason = "only plans that travel need it")
        )]
        edges: [Option<Edges>; 2],
    },
    /// With a latitude and a longitude per cell, for points.
    Curvilinear(CurvilinearGrid),
    /// With four corners per cell, for polygons.
    Quadrilaterals(CurvilinearCells),
}

impl LabelledGrid {
    /// Makes a grid with coordinates per axis: latitudes and longitudes, or those of a plane whose units are so many metres.
    ///
    /// # Errors
    /// `Usage` if the labels make no axes.
    pub(crate) fn rectilinear(
        name: String,
        [y, x]: [LabelledAxis; 2],
        edges: [Option<Edges>; 2],
        kinds: [AxisKind; 2],
        metres: Option<f64>,
    ) -> GridResult<Self> {
        let rows = y.cells(kinds[0], edges[0].as_ref())?;
        let columns = x.cells(kinds[1], edges[1].as_ref())?;
        let cells = GridCells::Rectilinear { grid: Grid::new(rows, columns)?, edges };
        Ok(Self { name, y, x, cells, metres, coordinates: None })
    }

    /// Makes a grid with a latitude and a longitude per cell.
    ///
    /// # Errors
    /// `Usage` if there are not as many as cells, or latitudes beyond the poles.
    pub(crate) fn curvilinear(
        name: String,
        [y, x]: [LabelledAxis; 2],
        lat: &[f64],
        lon: &[f64],
    ) -> GridResult<Self> {
        let cells = y.labels.len().saturating_mul(x.labels.len());
        if lat.len() != cells {
            let found = lat.len();
            return Err(Error::usage(format!("{found} latitudes for {cells} cells of a grid")));
        }
        let grid = CurvilinearGrid::new(lat, lon, x.labels.len())?;
        Ok(Self::on_sphere(name, [y, x], GridCells::Curvilinear(grid)))
    }

    /// Makes a grid with four corners per cell.
    pub(crate) fn quadrilaterals(
        name: String,
        axes: [LabelledAxis; 2],
        cells: CurvilinearCells,
    ) -> Self {
        Self::on_sphere(name, axes, GridCells::Quadrilaterals(cells))
    }

    fn on_sphere(name: String, [y, x]: [LabelledAxis; 2], cells: GridCells) -> Self {
        Self { name, y, x, cells, metres: Some(1.0), coordinates: None }
    }

    /// Returns the grid with the array that has its coordinates.
    pub(crate) fn with_coordinates(self, coordinates: Option<GridCoordinates>) -> Self {
        Self { coordinates, ..self }
    }

    /// Returns the cell nearest to a point, at most `within` metres away, with its distance in metres, or in units if these are
    /// no lengths.
    pub(super) fn nearest(&self, y: f64, x: f64, within: f64) -> Option<NearestCell> {
        let metres = self.metres.unwrap_or(1.0);
        let mut cell = match &self.cells {
            GridCells::Rectilinear { grid, .. } => grid.nearest(y, x, within / metres),
            GridCells::Curvilinear(grid) => grid.nearest(y, x, within),
            // Points have no use for corners.
            GridCells::Quadrilaterals(_) => None,
        }?;
        cell.distance *= metres;
        Some(cell)
    }

    /// Whether the coordinates are latitudes and longitudes, and not those of a plane.
    pub(crate) fn is_geographic(&self) -> bool {
        match &self.cells {
            GridCells::Rectilinear { grid, .. } => grid.is_geographic(),
            GridCells::Curvilinear(_) | GridCells::Quadrilaterals(_) => true,
        }
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
            GridCells::Rectilinear { .. } => "",
            GridCells::Curvilinear(_) | GridCells::Quadrilaterals(_) => " curvilinear",
        };
        format!("grid={} [{y}={rows}, {x}={columns}]{kind}", self.name)
    }
}
