//! Decides which zone maps of a `.tet` file queries may use.
//!
//! Most writers count NaN and the declared fill value as NULL. An exception is the reference's
//! `TetWriterSession::commit_with_fill`: it does not know the fill value and counts it as a value.
//!
//! A chunk with the cells `-9, 4, 5`, of which -9 is the fill value, may have either map:
//!
//! | writer | NULLs | bounds | used |
//! |---|---|---|---|
//! | knows the fill value | 1 | 4 … 5 | yes |
//! | does not | 0 | -9 … 5 | no: -9 lies within the bounds, so it may have been counted |
//!
//! If the fill value lies outside the bounds, no cell was counted wrongly. See crates/tet/FORMAT.md, section
//! 10.

use crate::bytes::ZoneMaps;
use gridfusion_core::array::ReadOptions;
use gridfusion_core::format::{ElementType, Zone, ZoneBound, Zones};
use gridfusion_core::grid::ChunkGrid;

/// The zone maps of a dataset whose NULL counts and bounds are right for its table.
#[derive(Debug)]
pub(crate) struct TrustedZones {
    maps: ZoneMaps,
    grid: ChunkGrid,
    element: ElementType,
    /// The element that stands for NULL.
    fill: Option<ZoneBound>,
    /// Whether the table shows as NULL what writers count as NULL. Otherwise only maps without NULLs
    /// are used: bounds leave out NULLs, which would then be ordinary values.
    same_nulls: bool,
}

impl TrustedZones {
    pub(crate) fn new(
        maps: ZoneMaps,
        grid: ChunkGrid,
        element: ElementType,
        fill: Option<ZoneBound>,
        options: &ReadOptions,
    ) -> Self {
        let same_nulls = options.nan_as_null && options.fill_as_null;
        Self { maps, grid, element, fill, same_nulls }
    }

    /// Whether the map of a chunk may count the fill value as a value.
    fn may_count_fill(&self, chunk: u64, zone: &Zone) -> bool {
        let Some(fill) = &self.fill else { return false };
        match &zone.bounds {
            Some(bounds) => self.element.is_within(fill, bounds),
            // A map without bounds may hide a fill value, unless all cells are NULL.
            None => {
                let extents = self.grid.extents(&self.grid.chunk_coordinates(chunk));
                zone.null_count < extents.iter().product::<u64>()
            }
        }
    }
}

impl Zones for TrustedZones {
    fn zone(&self, chunk: u64) -> Option<Zone> {
        let zone = self.maps.zone(chunk)?;
        let same = self.same_nulls || zone.null_count == 0;
        (same && !self.may_count_fill(chunk, &zone)).then_some(zone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gridfusion_core::format::bound;

    /// Whether the zone map of a chunk of four cells is used; `fill` declares -9 as the fill value.
    fn is_used(nulls: u64, bounds: Option<(i16, i16)>, fill: bool, options: &ReadOptions) -> bool {
        let element = |value: i16| bound(&value.to_le_bytes());
        let bounds = bounds.map(|(least, greatest)| (element(least), element(greatest)));
        let zone = Zone::new(nulls, bounds);
        let maps = ZoneMaps::sorted(vec![(0, zone)]);
        let grid = ChunkGrid::new(&[4], &[4]).unwrap();
        let fill = fill.then(|| element(-9));
        TrustedZones::new(maps, grid, ElementType::I16, fill, options).zone(0).is_some()
    }

    #[test]
    fn maps_that_may_count_the_fill_as_a_value_are_not_used() {
        let options = ReadOptions::default();
        for (nulls, bounds, expected) in [
            (0, Some((-9, 5)), false),
            (0, Some((-20, -9)), false),
            (1, Some((-20, 5)), false),
            (0, Some((-8, 5)), true),
            (3, Some((-20, -10)), true),
            (4, None, true),
            (0, None, false),
            (2, None, false),
        ] {
            assert_eq!(is_used(nulls, bounds, true, &options), expected, "{nulls} {bounds:?}");
            assert!(is_used(nulls, bounds, false, &options), "{nulls} {bounds:?}, without a fill");
        }
        let kept = ReadOptions::default().with_nan_as_null(false);
        assert!(is_used(0, Some((-8, 5)), true, &kept) && !is_used(0, Some((-9, 5)), true, &kept));
        assert!(!is_used(1, Some((-8, 5)), true, &kept));
    }
}
