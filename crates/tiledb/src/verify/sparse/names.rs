//! The names of the checks of sparse fragments.

/// The check of R-trees, and of the rectangles that they have of tiles.
pub(in crate::verify) const RTREE: &str = "rtree";
/// The check that coordinates lie in the domain.
pub(super) const COORDINATES: &str = "coordinates";
/// The check that cells follow one another in the global order.
pub(super) const CELL_ORDER: &str = "cell_order";
/// The check that no two cells have the same coordinates.
pub(super) const DUPLICATES: &str = "duplicates";
/// The check of the times of writing and of deletion.
pub(super) const CELL_TIMES: &str = "cell_times";

/// The checks of decoded coordinates and times, in the order of the report.
pub(in crate::verify) const CHECKS: [&str; 5] =
    [RTREE, COORDINATES, CELL_ORDER, DUPLICATES, CELL_TIMES];
