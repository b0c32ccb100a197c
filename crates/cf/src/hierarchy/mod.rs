//! The common model of Zarr, NetCDF and HDF5: groups of variables with named dimensions and attributes.
//!
//! ```text
//!   /                  attributes of the root group
//!   ├─ time (time)     a variable: dimensions, type of its cells, chunk shape, fill value, attributes
//!   ├─ t2m (time, lat, lon)
//!   └─ forecast/
//!      └─ t2m (time, lat, lon)      its path is `forecast/t2m`
//! ```
//!
//! A machine of each format reads metadata into a [`Hierarchy`]. The meaning of attributes (labels, missing values,
//! packing, times) is the same for all of these formats, and `conventions` finds it. This module depends
//! on no format.

mod attribute;
mod cell_type;
mod multiples;
mod record;
mod variable;

pub(crate) use attribute::attribute_text;
pub use attribute::{Attribute, Attributes};
pub use cell_type::CellType;
pub use multiples::{Multiples, numpy_unit};
pub use record::{Record, RecordField};
pub use variable::{Axis, Hierarchy, Unreadable, Variable};
