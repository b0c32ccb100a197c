//! A rectilinear grid: rows along y, columns along x.
//!
//! Longitudes repeat every 360°. The columns of a geographic grid stand in a lattice side by side, as often
//! as longitudes are allowed. So walks need no arithmetic of circles. The columns of a regional
//! grid are followed by one more column for the rest of the circle:
//!
//! ```text
//!           -360          0           360
//!   lattice  │ 0 1 2 rest │ 0 1 2 rest │ 0 1 2 rest │     column = number % 4, `rest` is left out
//! ```

use std::sync::Arc;

use gridfusion_core::{Error, Result};

use crate::axis::{Axis, AxisKind, LONGITUDES, check_edges};
use crate::sphere::cell_area;

/// A rectilinear grid, in degrees or in a plane. Clones share the axes.
///
/// ```
/// use gridfusion_spatial::{Axis, AxisKind, CoverageRule, Grid, Region};
///
/// let lat = Axis::new(AxisKind::Latitude, &[0.5, 1.5], None)?;
/// let lon = Axis::new(AxisKind::Longitude, &[0.5, 1.5, 2.5], None)?;
/// let grid = Grid::new(lat, lon)?;
/// let region = Region::from_wkt("POLYGON ((1 0, 2.25 0, 2.25 1, 1 1, 1 0))")?;
/// let cells = grid.coverage(&region, CoverageRule::Coverage)?;
/// let cells: Vec<_> = cells.map(|it| (it.row, it.column, it.fraction)).collect();
/// assert_eq!(cells, [(0, 1, 1.0), (0, 2, 0.25)]);
/// # Ok::<_, gridfusion_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Grid {
    pub(crate) y: Arc<Axis>,
    pub(crate) x: Arc<Axis>,
    pub(crate) lattice: Arc<Lattice>,
}

/// The edges that walks cross, with infinity at both ends, and the columns between them.
#[derive(Debug, Clone)]
pub(crate) struct Lattice {
    pub(crate) x: Vec<f64>,
    pub(crate) y: Vec<f64>,
    /// The lattice's columns of one turn.
    pub(crate) period: usize,
}

impl Grid {
    /// Returns the grid of two axes: latitudes and longitudes, or two axes of a plane.
    pub fn new(y: Axis, x: Axis) -> Result<Self> {
        match (y.kind(), x.kind()) {
            (AxisKind::Latitude, AxisKind::Longitude) | (AxisKind::Plane, AxisKind::Plane) => {}
            (y, x) => {
                return Err(Error::usage(format!(
                    "rows along {y:?} and columns along {x:?} make no grid: give Latitude and Longitude, or Plane twice"
                )));
            }
        }
        if u32::try_from(y.len().max(x.len())).is_err() {
            return Err(Error::unsupported(format!(
                "a grid of {} by {} cells; an axis may have 4294967295",
                y.len(),
                x.len()
            )));
        }
        let lattice = Arc::new(Lattice::new(&y, &x)?);
        Ok(Self { y: Arc::new(y), x: Arc::new(x), lattice })
    }

    /// Returns the axis of the rows.
    pub fn y(&self) -> &Axis {
        &self.y
    }

    /// Returns the axis of the columns.
    pub fn x(&self) -> &Axis {
        &self.x
    }

    /// Whether the grid is one of latitudes and longitudes.
    pub fn is_geographic(&self) -> bool {
        self.x.kind() == AxisKind::Longitude
    }

    /// Returns the area of a cell: in square metres on the sphere, or in the square of the plane's units.
    ///
    /// # Panics
    ///
    /// Panics if the grid has no such row or column.
    pub fn cell_area(&self, row: usize, column: usize) -> f64 {
        let (y, x) = (self.y.cell(row), self.x.cell(column));
        if self.is_geographic() { cell_area(y, x) } else { (y[1] - y[0]) * (x[1] - x[0]) }
    }
}

impl Lattice {
    fn new(y: &Axis, x: &Axis) -> Result<Self> {
        let walls = |edges: Vec<f64>| {
            [f64::NEG_INFINITY].into_iter().chain(edges).chain([f64::INFINITY]).collect()
        };
        let rows = walls(y.edges().to_vec());
        let (Some(&first), AxisKind::Longitude) = (x.edges().first(), x.kind()) else {
            return Ok(Self { x: walls(x.edges().to_vec()), y: rows, period: x.len() });
        };
        // The last edge of a circle is the first of the next turn.
        let turn_edges = &x.edges()[..x.edges().len() - usize::from(x.is_circle())];
        let turns_start = ((LONGITUDES[0] - first) / 360.0).floor();
        let turns_end = ((LONGITUDES[1] - first) / 360.0).ceil();
        let count = (turns_end - turns_start) as usize;
        if turn_edges.len().checked_mul(count).is_none_or(|it| it >= u32::MAX as usize) {
            return Err(Error::unsupported(format!("a grid of {} columns of longitudes", x.len())));
        }
        let turns = (0..count).map(|it| 360.0 * (turns_start + it as f64));
        let mut columns: Vec<f64> =
            turns.flat_map(|turn| turn_edges.iter().map(move |it| it + turn)).collect();
        columns.push(first + 360.0 * turns_end);
        check_edges(AxisKind::Longitude, &columns)?;
        Ok(Self { x: walls(columns), y: rows, period: turn_edges.len() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn longitudes(labels: &[f64]) -> Grid {
        let y = Axis::new(AxisKind::Latitude, &[-45.0, 45.0], None).unwrap();
        Grid::new(y, Axis::new(AxisKind::Longitude, labels, None).unwrap()).unwrap()
    }

    #[test]
    fn columns_repeat() {
        let circle = longitudes(&[0.0, 90.0, 180.0, 270.0]).lattice;
        assert_eq!(circle.period, 4);
        assert_eq!(circle.x[1..4], [-405.0, -315.0, -225.0]);
        assert!(circle.x.is_sorted() && circle.x[circle.x.len() - 2] >= LONGITUDES[1]);
        let region = longitudes(&[10.0, 20.0]).lattice;
        assert_eq!(region.period, 3);
        assert_eq!(region.x[1..6], [-715.0, -705.0, -695.0, -355.0, -345.0]);
    }

    #[test]
    fn a_grid_needs_two_axes_of_a_kind() {
        let axis = |kind| Axis::new(kind, &[0.0, 1.0], None).unwrap();
        let error = Grid::new(axis(AxisKind::Longitude), axis(AxisKind::Latitude)).unwrap_err();
        assert!(error.to_string().starts_with("rows along Longitude and columns along Latitude"));
        let plane = Grid::new(axis(AxisKind::Plane), axis(AxisKind::Plane)).unwrap();
        assert_eq!((plane.cell_area(0, 1), plane.is_geographic()), (1.0, false));
    }

    #[test]
    fn areas_cover_the_globe() {
        let grid = longitudes(&[0.0, 90.0, 180.0, 270.0]);
        let sum: f64 = (0..8).map(|it| grid.cell_area(it / 4, it % 4)).sum();
        assert!((sum / cell_area([-90.0, 90.0], [0.0, 360.0]) - 1.0).abs() < 1e-15);
    }
}
