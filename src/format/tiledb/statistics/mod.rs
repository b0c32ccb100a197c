//! Reads the tile statistics of fragments, rejects those that cannot be true, and makes statistics of chunks.

mod figures;
mod zones;

pub(super) use figures::Figures;
pub use figures::NotedFigures;
pub use zones::{ReadZones, TileZones};
pub(super) use zones::{figure_locations, has_figures};
