//! Finds faults that do not stop a reader, for `verify`: in the footer, row by row of the index, map by map
//! of
//! the zone maps.

mod footer;
mod index;
mod limits;
mod zones;

pub use footer::{CheckFooter, CheckedFooter};
pub use index::{CheckIndex, CheckedRow, RowField};
pub use zones::{CheckZoneMaps, CheckedZoneMaps, ZoneFault};
