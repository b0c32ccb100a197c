//! TileDB arrays, groups and folders of arrays.

mod chunks;
mod columns;
mod describe;
mod described;
mod fact_rows;
mod format;
mod group;
mod members;
mod reader;
mod reading;
mod verify;
mod view;

pub(crate) use format::TileDb;
pub use reader::TileDbReader;
pub use verify::verify;
pub use view::TileDbView;
