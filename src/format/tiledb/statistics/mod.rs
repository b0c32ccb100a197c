//! Reads the tile statistics of fragments, rejects those that cannot be true, and makes statistics of chunks.

mod tile_statistics;
mod zones;

pub use tile_statistics::StoredStatistics;
pub(super) use tile_statistics::TileStatistics;
pub use zones::{ReadZones, TileZones};
pub(super) use zones::{has_statistics, statistics_locations};
