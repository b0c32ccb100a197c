//! The cells of curvilinear grids, `lat (y, x)` and `lon (y, x)`, as quadrilaterals.
//!
//! ```text
//!   corners of cells ──────────────▶ Mesh: Cell, Cell, … ──▶ blocks, an index with boxes
//!   centres ──▶ inferred corners ──▶          │                    │
//!                                             ▼                    ▼
//!   Region ─────────────────────────▶ a Window per block, halved down to cells ──▶ CoveredCell
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `inferred` | corners halfway between centres |
//! | `mesh` | the corners of all cells, and their labels |
//! | `cell` | the outline of one cell, its convex pieces and its area |
//! | `bounds` | boxes, and turns of longitudes |
//! | `blocks` | the index of cells by boxes |
//! | `window` | the part of a region in a box |
//! | `convex` | convex polygons and cuts through them |
//! | `coverage` | covered cells, row by row |
//! | `cases` | tests of cells of all shapes, by hand |

mod blocks;
mod bounds;
mod cell;
mod convex;
mod coverage;
mod inferred;
mod mesh;
mod window;

use std::sync::Arc;

use gridfusion_core::{Error, Result};

pub use coverage::CurvilinearCoverage;

use crate::axis::LONGITUDES;
use crate::coverage::{CoverageRule, check_degrees};
use crate::region::Region;
use inferred::Centres;
use mesh::{Corners, Mesh};

/// Latitudes beyond a pole by this are the pole, because single precision rounds them.
const LATITUDE_ROUNDING: f64 = 1e-5;

/// The cells of a curvilinear grid. Clones share them.
///
/// A cell is a quadrilateral, whose edges are straight lines between longitudes and latitudes, as those
/// of a [`Region`]. The way from one corner to the next is never longer than half a turn. Two cells with
/// the same two corners share an edge, so that they neither overlap nor leave a gap.
///
/// - A cell around a pole is all that lies between its edges and the pole. Edges to a corner at a pole
///   follow meridians, whatever longitude the corner has.
/// - A cell is missing, and never covered, if a corner is NaN, if it has no area, or if its edges cross.
///
/// ```
/// use gridfusion_spatial::{CoverageRule, CurvilinearCells, Region};
///
/// // Two cells, which are squares turned by 45°.
/// let lat = [0.0, 1.0, 2.0, 1.0, 1.0, 2.0, 3.0, 2.0];
/// let lon = [0.0, 1.0, 0.0, -1.0, 1.0, 2.0, 1.0, 0.0];
/// let cells = CurvilinearCells::try_new(&lat, &lon, 2, None)?;
/// let region = Region::from_wkt("POLYGON ((0 0, 2 0, 2 4, 0 4, 0 0))")?;
/// let found: Vec<_> = cells.coverage(&region, CoverageRule::Coverage)?.collect();
/// assert_eq!(found.iter().map(|it| it.column).collect::<Vec<_>>(), [0, 1]);
/// assert_eq!(found.iter().map(|it| it.fraction).collect::<Vec<_>>(), [0.5, 1.0]);
/// # Ok::<_, gridfusion_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct CurvilinearCells {
    mesh: Arc<Mesh>,
}

impl CurvilinearCells {
    /// Returns the cells with these corners: four for each cell, one after another around it, as in
    /// bounds of the CF conventions. Cells are in row-major order, in rows of `columns` cells.
    ///
    /// `centres` are the latitudes and the longitudes of the cells' labels, for the rule `Centre`. A cell
    /// without a label, or with one that is not inside, is judged by the mean of its corners.
    ///
    /// ```
    /// use gridfusion_spatial::CurvilinearCells;
    ///
    /// let lat = [50.0, 51.0, 51.0, 50.0];
    /// let lon = [10.0, 10.0, 11.0, 11.0];
    /// let cells = CurvilinearCells::try_new(&lat, &lon, 1, Some([&[50.5], &[10.5]]))?;
    /// assert_eq!((cells.rows(), cells.columns()), (1, 1));
    ///
    /// let error = CurvilinearCells::try_new(&lat[..3], &lon, 1, None).unwrap_err();
    /// assert!(error.to_string().starts_with("3 latitudes and 4 longitudes of corners"));
    /// # Ok::<_, gridfusion_core::Error>(())
    /// ```
    pub fn try_new(
        lat_corners: &[f64],
        lon_corners: &[f64],
        columns: usize,
        centres: Option<[&[f64]; 2]>,
    ) -> Result<Self> {
        let count = lat_corners.len() / 4;
        if lat_corners.len() != lon_corners.len() || !lat_corners.len().is_multiple_of(4) {
            return Err(Error::usage(format!(
                "{} latitudes and {} longitudes of corners are not four of each for every cell",
                lat_corners.len(),
                lon_corners.len(),
            )));
        }
        let size = size(count, count, columns)?;
        let corners = places(lat_corners, lon_corners, |it| {
            format!("corner {} of the {}", it % 4, name(it / 4, columns))
        })?;
        let labels = match centres {
            None => Vec::new(),
            Some([lat, lon]) if lat.len() == count && lon.len() == count => {
                places(lat, lon, |it| format!("the centre of the {}", name(it, columns)))?
            }
            Some([lat, lon]) => {
                return Err(Error::usage(format!(
                    "{} latitudes and {} longitudes of centres are not one of each for the {count} cells with corners",
                    lat.len(),
                    lon.len(),
                )));
            }
        };
        Self::from_mesh(
            Mesh::new(size, Corners::OfCells(corners), labels),
            "give the four corners of each cell one after another around it",
        )
    }

    /// Returns the cells around these centres, with corners halfway between them.
    ///
    /// The corners are those of `cf_xarray` and xESMF: means of four centres, extrapolated at the border.
    /// A grid whose last column is beside its first has no border there. Where centres are NaN, corners
    /// come from those present. A cell is missing if its centre is, or if too few are around it.
    ///
    /// ```
    /// use gridfusion_spatial::CurvilinearCells;
    ///
    /// // 2 rows and 3 columns, across the date line.
    /// let lat = [0.5, 0.5, 0.5, 1.5, 1.5, 1.5];
    /// let lon = [179.5, -179.5, -178.5, 179.5, -179.5, -178.5];
    /// let cells = CurvilinearCells::from_centres(&lat, &lon, 3)?;
    /// let expected = gridfusion_spatial::cell_area([0.0, 1.0], [179.0, 180.0]);
    /// assert!((cells.cell_area(0, 0) / expected - 1.0).abs() < 1e-12);
    ///
    /// let error = CurvilinearCells::from_centres(&[0.5, 0.5], &[1.0, 2.0], 2).unwrap_err();
    /// assert!(error.to_string().contains("need a variable of bounds"));
    /// # Ok::<_, gridfusion_core::Error>(())
    /// ```
    pub fn from_centres(lat: &[f64], lon: &[f64], columns: usize) -> Result<Self> {
        let size = size(lat.len(), lon.len(), columns)?;
        if size.contains(&1) {
            let [rows, columns] = size;
            return Err(Error::usage(format!(
                "the grid has {rows} rows and {columns} columns: without neighbours on both axes, the corners of its cells need a variable of bounds"
            )));
        }
        let labels = places(lat, lon, |it| format!("the {}", name(it, columns)))?;
        let corners = match size {
            [0, _] => Vec::new(),
            _ => Centres::new(&labels, columns).corners(),
        };
        let mesh = Mesh::new(size, Corners::Shared(corners), labels);
        Self::from_mesh(mesh, "neighbours in rows and columns are no neighbours on the globe")
    }

    fn from_mesh(mesh: Mesh, hint: &str) -> Result<Self> {
        let cells = mesh.rows * mesh.columns;
        if 2 * mesh.crossed > cells {
            return Err(Error::usage(format!(
                "the edges of {} of the grid's {cells} cells cross: {hint}",
                mesh.crossed
            )));
        }
        if mesh.is_without_cells() {
            return Err(Error::usage(format!(
                "none of the grid's {cells} cells has an area: {hint}"
            )));
        }
        Ok(Self { mesh: Arc::new(mesh) })
    }

    /// Returns the number of rows.
    ///
    /// ```
    /// use gridfusion_spatial::CurvilinearCells;
    ///
    /// assert_eq!(CurvilinearCells::from_centres(&[], &[], 0)?.rows(), 0);
    /// # Ok::<_, gridfusion_core::Error>(())
    /// ```
    pub fn rows(&self) -> usize {
        self.mesh.rows
    }

    /// Returns the number of columns.
    ///
    /// ```
    /// use gridfusion_spatial::CurvilinearCells;
    ///
    /// let cells = CurvilinearCells::from_centres(&[0.0, 0.0, 1.0, 1.0], &[0.0, 1.0, 0.0, 1.0], 2)?;
    /// assert_eq!(cells.columns(), 2);
    /// # Ok::<_, gridfusion_core::Error>(())
    /// ```
    pub fn columns(&self) -> usize {
        self.mesh.columns
    }

    /// Returns the area of a cell on the sphere in square metres; NaN for one that is missing.
    ///
    /// The edges are straight between longitudes and latitudes. They are no great circles.
    ///
    /// ```
    /// use gridfusion_spatial::{CurvilinearCells, cell_area};
    ///
    /// let lat = [50.0, 50.0, 51.0, 51.0];
    /// let lon = [10.0, 11.0, 11.0, 10.0];
    /// let cells = CurvilinearCells::try_new(&lat, &lon, 1, None)?;
    /// let expected = cell_area([50.0, 51.0], [10.0, 11.0]);
    /// assert!((cells.cell_area(0, 0) / expected - 1.0).abs() < 1e-12);
    /// # Ok::<_, gridfusion_core::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// Panics if the grid has no such row or column.
    pub fn cell_area(&self, row: usize, column: usize) -> f64 {
        assert!(row < self.rows() && column < self.columns(), "no cell {row}, {column}");
        self.mesh.cell(row, column).map_or(f64::NAN, |it| it.area_on_sphere())
    }

    /// Returns the cells that the region covers, by a rule: each cell once, rows and columns ascending.
    ///
    /// Fractions are parts of the cell in the plane of longitudes and latitudes. They are exact up to the
    /// rounding of degrees, for cells down to a thousandth of a degree to `1e-9`. The time grows with
    /// the points of the region and the cells that it covers. Longitudes from -360 to 720 are
    /// understood, whatever those of the grid are. Cells that overlap are each covered.
    ///
    /// ```
    /// use gridfusion_spatial::{CoverageRule, CurvilinearCells, Region};
    ///
    /// let cells = CurvilinearCells::from_centres(&[0.5, 0.5, 1.5, 1.5], &[0.5, 1.5, 0.5, 1.5], 2)?;
    /// let region = Region::from_wkt("POLYGON ((360 0, 362 0, 360 2, 360 0))")?;
    /// for (rule, expected) in [
    ///     (CoverageRule::Coverage, vec![(0, 0, 1.0), (0, 1, 0.5), (1, 0, 0.5)]),
    ///     (CoverageRule::Touched, vec![(0, 0, 1.0), (0, 1, 1.0), (1, 0, 1.0)]),
    ///     (CoverageRule::Centre, vec![(0, 0, 1.0)]),
    /// ] {
    ///     let found = cells.coverage(&region, rule)?;
    ///     let found: Vec<_> = found.map(|it| (it.row, it.column, it.fraction)).collect();
    ///     assert_eq!(found, expected);
    /// }
    /// # Ok::<_, gridfusion_core::Error>(())
    /// ```
    pub fn coverage(&self, region: &Region, rule: CoverageRule) -> Result<CurvilinearCoverage> {
        check_degrees(region)?;
        region.check_turns()?;
        Ok(CurvilinearCoverage::new(Arc::clone(&self.mesh), region, rule))
    }
}

/// Returns the numbers of rows and columns, if the cells fill them.
pub(crate) fn size(lat: usize, lon: usize, columns: usize) -> Result<[u32; 2]> {
    if lat != lon || (columns == 0 && lat > 0) || !lat.is_multiple_of(columns.max(1)) {
        return Err(Error::usage(format!(
            "{lat} latitudes and {lon} longitudes do not fill rows of {columns} cells"
        )));
    }
    let too_many = |_| {
        Error::unsupported(format!("a curvilinear grid of {lat} cells; it may have 4294967295"))
    };
    u32::try_from(lat).map_err(too_many)?;
    let rows = u32::try_from(lat / columns.max(1)).map_err(too_many)?;
    // Without rows, the number of columns is of no use.
    Ok([rows, if rows == 0 { 0 } else { u32::try_from(columns).map_err(too_many)? }])
}

fn name(cell: usize, columns: usize) -> String {
    format!("cell in row {} and column {}", cell / columns, cell % columns)
}

/// Returns the longitudes and latitudes of places, if they can be any.
fn places(lat: &[f64], lon: &[f64], name: impl Fn(usize) -> String) -> Result<Vec<[f64; 2]>> {
    let [west, east] = LONGITUDES;
    let limits = [
        ("latitude", lat, [-90.0, 90.0], LATITUDE_ROUNDING),
        ("longitude", lon, [west, east], 0.0),
    ];
    for (kind, values, [low, high], rounding) in limits {
        let outside = |it: &f64| *it < low - rounding || *it > high + rounding;
        if let Some(index) = values.iter().position(outside) {
            return Err(Error::usage(format!(
                "the {kind} of {} is {}, outside {low} to {high}",
                name(index),
                values[index],
            )));
        }
    }
    Ok(lon.iter().zip(lat).map(|(lon, lat)| [*lon, *lat]).collect())
}

#[cfg(test)]
mod cases;
#[cfg(test)]
mod tests;
