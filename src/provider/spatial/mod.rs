//! `grid_coverage(array, polygons, …)` and `grid_points(array, points, …)`: the cells of an array's grid that rows of polygons and
//! points are in.
//!
//! ```text
//!   'air.nc', a registered array ──▶ grid ──▶ LabelledGrid ──┐
//!                                                            ├──▶ CoverageTable, PointsTable ──scan──▶ nodes of exec::spatial
//!   a table, a file, a query     ──▶ rows ──▶ SourceRows ────┘
//! ```
//!
//! Planning reads the labels of the grid, and the schema of the rows. The cells are computed when the plan runs.
//!
//! | file | contents |
//! |---|---|
//! | `function` | the two functions |
//! | `arguments` | their arguments and options |
//! | `rows`, `features` | polygons and points: tables, files, queries; GeoJSON files |
//! | `grid`, `roles`, `variables` | the grid of an array; which axes are latitudes and longitudes; bounds and coordinates |
//! | `times` | the times of points, and the dimension of times |
//! | `coverage`, `points` | the tables that the functions return |

mod arguments;
mod coverage;
mod features;
mod function;
mod grid;
mod points;
mod roles;
mod rows;
mod times;
mod variables;

pub(super) use features::{is_features, table as features_table};
pub(crate) use function::SpatialFunction;
#[cfg(feature = "codec")]
pub(crate) use grid::{Purpose, labelled_grid};
