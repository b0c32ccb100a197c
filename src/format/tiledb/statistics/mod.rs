//! What fragments note about their tiles, how far it is believed, and what that says of chunks.

mod figures;
mod zones;

pub(super) use figures::Figures;
pub use figures::NotedFigures;
pub use zones::{ReadZones, TileZones};
pub(super) use zones::{figure_locations, has_figures};
