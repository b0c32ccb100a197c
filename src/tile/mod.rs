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
mod open_folder;
mod runs;
mod seen;
mod slice;
mod version;
mod write;

pub(crate) use absent::leave_out_absent;
pub use cells::Tile;
pub use drive::drive;
#[cfg(feature = "zarr")]
pub(crate) use drive::drive_documents;
#[cfg(any(feature = "zarr", feature = "hdf5"))]
pub(crate) use drive::{Documents, ReservesMemory};
pub use layers::CellFormat;
pub(crate) use objects::MOST_OF_DOCUMENT;
pub use objects::{LaterObjects, Objects, Request};
pub use open_folder::OpenFolder;
pub(crate) use slice::Slice;
pub use version::ObjectVersion;
pub use write::{WriteSession, write_all};
