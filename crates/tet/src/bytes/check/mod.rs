//! Finds faults that do not stop a reader, for `verify`: in the footer, in each row of the index, and in each
//! zone map.

mod footer;
mod index;
mod limits;
mod zones;

pub use footer::{CheckFooter, CheckedFooter};
pub use index::{CheckIndex, CheckedRow, RowField};
pub use zones::{CheckZoneMaps, CheckedZoneMaps, ZoneFault};
