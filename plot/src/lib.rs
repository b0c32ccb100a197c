//! Pictures of rows: heat maps, lines, points and bars, as PNG or SVG.
//!
//! ```text
//!   record batches ──▶ Columns ──▶ facet: panels ──▶ plan: shape, axes, key ──▶ layout: frames
//!      + titles                                                                       │
//!   PNG, SVG ◀── paint ◀── scene: marks ◀── cells, quads, contours, points, lines, coast ◀──────┘
//! ```
//!
//! All steps except the last compute marks with positions in pixels, and plotters paints the marks.
//! The crate depends on Arrow, but not on a query engine: the caller runs the query, passes its rows,
//! and writes the bytes of the picture. Fonts are part of the crate.
//!
//! ```
//! use std::sync::Arc;
//!
//! use arrow::array::{ArrayRef, Float64Array, RecordBatch};
//! use gridfusion_plot::{ColumnsBuilder, Format, Picture, Spec, Title};
//!
//! let column = |values: [f64; 2]| Arc::new(Float64Array::from_iter_values(values)) as ArrayRef;
//! let columns = [("lat", column([50.0, 60.0])), ("temperature", column([9.5, 4.0]))];
//! let rows = RecordBatch::try_from_iter(columns)?;
//! let titles = ["lat", "temperature"].map(Title::new);
//! let mut columns = ColumnsBuilder::new(&rows.schema(), titles, Format::Svg)?;
//! columns.append(&rows)?;
//! let picture = Picture::draw(&columns.finish()?, &Spec::new(800, 500))?;
//! assert!(picture.encode(Format::Svg)?.starts_with(b"<svg"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod axis;
mod bounds;
mod calendar;
mod calendar_units;
mod cells;
mod coast;
mod colors;
mod column;
mod contour;
mod error;
mod facet;
mod frame;
mod heading;
mod invisible;
mod key;
mod lattice;
mod layout;
mod lines;
mod map;
mod paint;
mod picture;
mod plan;
mod points;
mod polygon;
mod quads;
mod role;
mod scene;
mod segments;
mod settings;
mod shape;
mod spec;
mod stroke;
#[cfg(test)]
mod tests;
mod thinned;
mod ticks;
mod title;

pub use calendar_units::CalendarUnits;
pub use column::{Columns, ColumnsBuilder};
pub use error::{Error, Result};
pub use invisible::is_invisible;
pub use picture::Picture;
pub use role::Role;
pub use settings::{AxisSettings, ColorMap, ColorSettings, Contours, Limits, Scale};
pub use spec::{Format, PlotKind, Spec};
pub use title::Title;
