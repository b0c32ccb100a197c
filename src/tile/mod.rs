//! Fetching and decoding of chunks into tiles, and writing of arrays. A tile holds the decoded cells of
//! one variable of one chunk.
//!
//! ```text
//!   Objects ──fetch──▶ payloads ──layers: decode, newer override older──▶ Tile
//!   (drive feeds a format's machines)            └ runs: copy by runs of cells
//!
//!   Writer ──write: put, append, publish──▶ WritableFolder
//! ```

mod absent;
mod cells;
mod drive;
pub(crate) mod layers;
mod objects;
mod runs;
mod slice;
mod version;
mod write;

pub(crate) use absent::leave_out_absent;
pub use cells::Tile;
pub use drive::drive;
pub use layers::CellFormat;
pub use objects::{LaterObjects, Objects, OpenFolder, Request};
pub(crate) use slice::Slice;
pub use version::ObjectVersion;
pub use write::{WriteSession, write_all};
