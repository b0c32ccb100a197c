//! Reads the tile statistics of fragments, rejects those that cannot be true, and makes statistics of chunks.
//!
//! ```text
//!   tile_statistics.rs   one fragment: least, greatest, sum and NULL count of each of its tiles
//!   zones.rs             the array: the statistics of a chunk, if those of a tile describe just its cells
//! ```
//!
//! The scan skips chunks by these statistics, so a wrong one loses rows. In case of doubt, a chunk has
//! none, and is read. `crates/tiledb/FORMAT.md`, section 9, lists the cases.

mod tile_statistics;
mod zones;

pub use tile_statistics::StoredStatistics;
pub(super) use tile_statistics::TileStatistics;
pub use zones::{ReadZones, TileZones};
pub(super) use zones::{has_statistics, statistics_locations, stored_statistics_locations};
