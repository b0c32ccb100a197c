//! The cells that polygons cover and points are in, as plan nodes over the rows of polygons and points; functions on the sphere.
//!
//! ```text
//!   polygons ──▶ GridCoverageExec ──▶ own columns, lat, lon, coverage, area_m2            a row per polygon and cell
//!   points   ──▶ GridPointsExec   ──▶ own columns, cell_lat, cell_lon, [cell_time], …     a row per point, or per neighbour
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `labelled_grid` | the grid of an array, with the labels that its table shows |
//! | `coverage`, `geometries` | the node for polygons, and regions from cells of a column |
//! | `points`, `times` | the node for points, and the labels at their times |
//! | `functions` | `haversine` and `cell_area` |

mod coverage;
mod functions;
mod geometries;
mod labelled_grid;
mod points;
mod times;

pub(crate) use coverage::{CoverageColumn, CoverageWork, GridCoverageExec};
pub(crate) use functions::{cell_area_udf, haversine_udf};
pub(crate) use geometries::Geometries;
#[cfg(feature = "codec")]
pub(crate) use labelled_grid::Edges;
pub(crate) use labelled_grid::{
    GridCells, GridCoordinates, GridOptions, LabelledAxis, LabelledGrid,
};
pub(crate) use points::{GridPointsExec, PointCells, PointColumn, PointInputs, PointWork};
pub(crate) use times::{TimeLabels, TimeMethod, unit_of};
