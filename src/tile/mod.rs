//! Tiles: the decoded cells of one value of one chunk, and how stored bytes become them.
//!
//! ```text
//!   Objects ──fetch──▶ payloads ──layers: decode, lay over one another──▶ Tile
//!   (drive feeds a format's machines)            └ runs: copy by runs of cells
//! ```

pub(crate) mod layers;
mod objects;
mod runs;
mod tile;

pub use layers::CellFormat;
pub(crate) use objects::{AT_ONCE, object_of};
pub use objects::{Objects, drive};
pub use tile::Tile;
