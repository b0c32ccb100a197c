//! Array schemas: dimensions, attributes and cell orders.
//!
//! ```text
//!   array_schema.rs   a file of __schema, which contains the next three
//!   domain.rs         its dimensions: ranges of coordinates, and their tiles
//!   attribute.rs      its attributes: types, fill values and filters
//!   label.rs          its dimension labels
//!   enumeration.rs    a file of __schema/__enumerations
//! ```

mod array_schema;
mod attribute;
mod domain;
mod enumeration;
mod label;

pub use array_schema::{ArrayKind, ArraySchema, CellOrder};
pub(super) use array_schema::{OLDEST_VERSION, integers, read_ranges, too_old};
pub use attribute::{Attribute, ValuesPerCell};
pub use domain::{CoordinateRange, DimensionDomain, DimensionSchema};
pub(super) use domain::{TileAxis, float, integer, integer_of};
pub use enumeration::Enumeration;
pub use label::{DimensionLabel, DimensionLabelOrder};
