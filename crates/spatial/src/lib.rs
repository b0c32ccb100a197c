#![doc = include_str!("../README.md")]

mod axis;
mod coverage;
mod curved;
mod grid;
mod points;
mod region;
mod sphere;

pub use axis::{Axis, AxisKind};
pub use coverage::{Coverage, CoverageRule, CoveredCell};
pub use curved::{CurvilinearCells, CurvilinearCoverage};
pub use grid::Grid;
pub use points::{CurvilinearGrid, NearestCell, Neighbours, TimeAxis};
pub use region::{Crs, Feature, Property, Region, geoparquet_column};
pub use sphere::{EARTH_RADIUS, cell_area, haversine};
