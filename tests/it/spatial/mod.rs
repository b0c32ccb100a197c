//! Polygons and points over grids, in SQL.

mod coverage;
mod functions;
mod inputs;
mod points;
mod sent;
mod store;
