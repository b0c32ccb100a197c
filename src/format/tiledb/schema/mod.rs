//! Array schemas: dimensions, attributes and cell orders.

mod array_schema;
mod attribute;
mod domain;
mod enumeration;
mod label;

pub use array_schema::{ArrayKind, ArraySchema, CellOrder};
pub(super) use array_schema::{OLDEST_VERSION, read_ranges, too_old};
pub use attribute::{Attribute, ValuesPerCell};
pub use domain::{DimensionDomain, DimensionSchema};
pub(super) use domain::{TileAxis, float, integer, integer_of};
pub use enumeration::Enumeration;
pub use label::{DimensionLabel, DimensionLabelOrder};
