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
pub mod layers;
mod objects;
mod open_folder;
mod request;
mod runs;
mod seen;
mod slice;
mod version;
mod write;

pub use absent::leave_out_absent;
pub use cells::Tile;
pub use drive::{Documents, ReservesMemory, drive, drive_documents};
pub use layers::CellFormat;
pub use objects::{MOST_OF_DOCUMENT, Objects};
pub use request::Request;
pub use slice::Slice;
pub use version::ObjectVersion;
pub use write::{WriteSession, removals, write_all};
