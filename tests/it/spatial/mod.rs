//! Polygons and points over grids, in SQL.

mod bounds;
mod coverage;
mod curvilinear;
mod functions;
mod inputs;
mod planes;
mod points;
mod sent;
mod store;
