//! Chunk statistics, made from the tile statistics of fragments.
//!
//! ```text
//!   chunk  ┌─────────┐     A chunk has statistics only if a single fragment shows in it, covers
//!          │ ┌───────┼──┐  all of it, and wrote no other cells of the tile. Otherwise the tile
//!          └─┼───────┘  │  statistics count other cells than the chunk has, as they do here.
//!            └──────────┘
//! ```
//!
//! Statistics of consolidated fragments are not used, because they count fill values like other values.
//! Statistics of values that a filter rounds are not used either. [`TileStatistics`] checks the remaining
//! ones.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;

use super::tile_statistics::TileStatistics;
use crate::bytes::array::TileDbArray;
use crate::bytes::fragments::{Fragment, locations};
use crate::bytes::schema::{Attribute, TileAxis, ValuesPerCell};
use crate::bytes::tiles::{AttributeFragments, Overlay, Window, field_of};
use gridfusion_core::format::{Location, Machine, Replies, Step, Zone, Zones};
use gridfusion_core::{Error, Result};

/// The chunk statistics of one attribute. [`ReadZones`] makes them; each chunk is looked up when it is
/// asked for.
#[derive(Debug)]
pub struct TileZones {
    window: Arc<Window>,
    axes: Vec<TileAxis>,
    overlay: Overlay,
    /// The fragments that have the attribute.
    holders: AttributeFragments,
    /// The tile statistics, by number of the fragment; none for fragments whose statistics cannot be used.
    statistics: HashMap<usize, TileStatistics>,
}

impl Zones for TileZones {
    fn zone(&self, chunk: u64) -> Option<Zone> {
        let chunk = self.window.grid.chunk_coordinates(chunk);
        let (region, tile) = (self.window.chunk_region(&chunk), self.window.tile_region(&chunk));
        // The statistics of a consolidated fragment count fill values in the rest of a tile. If its
        // parts were written in the same millisecond, nothing distinguishes it from other fragments.
        if region != tile {
            return None;
        }
        // Exactly one piece, of the size of the chunk: no other fragment, and no fill value, shows in it.
        let pieces = self.holders.pieces(&self.overlay.parts(&tile), &region).ok()?;
        let [piece] = &pieces[..] else { return None };
        if piece.region != region {
            return None;
        }
        let cells = region.iter().map(|axis| axis.end - axis.start).product();
        let tile = self.window.tile_of(&self.axes, &chunk);
        self.statistics.get(&piece.fragment)?.zone(&tile, cells)
    }
}

impl TileDbArray {
    /// Returns a machine that reads the statistics of `attribute`, a position in the schema; `None` if no
    /// fragment has any that can be used. The machine takes one round trip.
    pub fn read_zones(
        self: &Arc<Self>,
        window: &Arc<Window>,
        attribute: usize,
    ) -> Option<ReadZones> {
        self.check_dense().ok()?;
        ReadZones::new(Arc::clone(self), Arc::clone(window), attribute)
    }
}

/// A machine that reads the statistics of one attribute. Made by [`TileDbArray::read_zones`].
#[derive(Debug)]
pub struct ReadZones {
    array: Arc<TileDbArray>,
    attribute: usize,
    asked: Vec<BlockRequest>,
    /// The result; taken once the tile statistics are added to it.
    zones: Option<TileZones>,
}

/// The statistics blocks of one fragment: least values, greatest values, sums and, if the attribute is
/// nullable, NULL counts.
#[derive(Debug)]
struct BlockRequest {
    fragment: usize,
    locations: Vec<Location>,
}

impl ReadZones {
    fn new(array: Arc<TileDbArray>, window: Arc<Window>, attribute: usize) -> Option<Self> {
        let schema = array.schema().attributes.get(attribute)?;
        if !has_statistics(schema) {
            return None;
        }
        let overlay = array.overlay(&window);
        let holders = AttributeFragments::new(&array, attribute, overlay.fragments()).ok()?;
        let mut asked = vec![];
        for number in overlay.fragments() {
            let fragment = array.fragments.get(number)?;
            // Fragments without the attribute, or with another type of it, are left out.
            let Ok(Some(field)) = field_of(&array.schema, attribute, fragment) else { continue };
            // The statistics of a fragment that reaches out of the window count cells that the table
            // does not have.
            let inside = fragment.non_empty_domain.as_ref().is_some_and(|at| window.holds(at));
            if let (true, Some(locations)) = (inside, statistics_locations(fragment, field)) {
                asked.push(BlockRequest { fragment: number, locations });
            }
        }
        if asked.is_empty() {
            return None;
        }
        let axes = array.schema.tile_axes().ok()?;
        let zones = Some(TileZones { window, axes, overlay, holders, statistics: HashMap::new() });
        Some(Self { array, attribute, asked, zones })
    }

    fn finish(&mut self, blocks: &[Bytes]) -> Result<TileZones> {
        let undelivered = || Error::internal("blocks were requested and not read");
        let mut zones = self.zones.take().ok_or_else(undelivered)?;
        let mut rest = blocks;
        for asked in &self.asked {
            let (own, others) =
                rest.split_at_checked(asked.locations.len()).ok_or_else(undelivered)?;
            rest = others;
            let fragment = self.array.fragment(asked.fragment)?;
            let datatype = self.array.schema.attributes[self.attribute].datatype;
            let key = self.array.options.key.as_ref();
            let statistics = TileStatistics::parse(fragment, datatype, &asked.locations, own, key);
            let statistics =
                statistics.map_err(|error| error.about(&fragment.metadata_object()))?;
            if let Some(statistics) = statistics {
                zones.statistics.insert(asked.fragment, statistics);
            }
        }
        Ok(zones)
    }
}

/// Whether statistics of an attribute can be used: each of its cells must have exactly one number.
pub(in crate::bytes) fn has_statistics(attribute: &Attribute) -> bool {
    let datatype = attribute.datatype;
    attribute.values_per_cell == ValuesPerCell::Fixed(1)
        && (datatype.is_signed() || datatype.is_unsigned() || datatype.is_float())
}

/// Returns the locations of a fragment's statistics; `None` if it has none that can be used: if it is
/// consolidated, if a filter rounds values, or if its format is older than 11.
pub(in crate::bytes) fn statistics_locations(
    fragment: &Fragment,
    field: usize,
) -> Option<Vec<Location>> {
    let consolidated = fragment.t1 != fragment.t2;
    if consolidated { None } else { stored_statistics_locations(fragment, field) }
}

/// Returns the locations of a fragment's statistics, even if it is consolidated; `None` if it has none that
/// describe its values.
pub(in crate::bytes) fn stored_statistics_locations(
    fragment: &Fragment,
    field: usize,
) -> Option<Vec<Location>> {
    let attribute = fragment.schema.attributes.get(field)?;
    if attribute.pipeline.is_lossy() || fragment.footer.fields.mins.is_empty() {
        return None;
    }
    let fields = &fragment.footer.fields;
    let mut columns = vec![&fields.mins, &fields.maxs, &fields.sums];
    if attribute.nullable {
        columns.push(&fields.null_counts);
    }
    locations(fragment, field, &columns).ok()
}

impl Machine for ReadZones {
    type Output = TileZones;

    fn subject(&self) -> &'static str {
        "statistics of tiles"
    }

    fn step(&mut self, replies: Replies) -> Result<Step<TileZones>> {
        match replies {
            Replies::Start => {
                let locations = self.asked.iter().flat_map(|asked| asked.locations.iter().cloned());
                Ok(Step::Read(locations.collect()))
            }
            replies => self.finish(&replies.into_bytes()).map(Step::Done),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::folder::OpenOptions;
    use crate::bytes::open_array::OpenArray;
    use crate::bytes::testing::{Folder, SCHEMA_NAME, SchemaBytes, generic_tile};
    use gridfusion_core::format::Sum;

    /// Returns the sum in the statistics of each chunk. Tiles divide rows 1 to 5 in twos, and columns 1
    /// to 7 in threes.
    fn sums(writes: &[(u64, [(i32, i32); 2])], full: bool) -> Vec<Option<i64>> {
        let mut folder = Folder::default();
        let schema = SchemaBytes::dense_2d().content();
        folder.put(&format!("__schema/{SCHEMA_NAME}"), &generic_tile(&schema));
        for (t, domain) in writes {
            folder.write(*t, *domain, [0, 0], |y, x| y * 10 + x);
        }
        let array = Arc::new(folder.drive(OpenArray::new(OpenOptions::default())).unwrap());
        let window = Arc::new(array.window(full).unwrap());
        let Some(zones) = array.read_zones(&window, 0) else { return vec![] };
        let (zones, trips) = folder.drive_counting(zones).unwrap();
        assert_eq!(trips, 1);
        let sum = |chunk| match zones.zone(chunk)?.sum {
            Some(Sum::Signed(sum)) => Some(sum),
            _ => None,
        };
        (0..window.grid.chunks()).map(sum).collect()
    }

    #[test]
    fn a_chunk_has_a_zone_if_the_figures_are_about_its_cells() {
        let whole = [(1, 5), (1, 7)];
        let sum = |ys: [i64; 2], xs: [i64; 3]| {
            Some(ys.iter().flat_map(|y| xs.map(|x| y * 10 + x)).sum::<i64>())
        };
        let (a, b) = (sum([1, 2], [1, 2, 3]), sum([1, 2], [4, 5, 6]));
        let (d, e) = (sum([3, 4], [1, 2, 3]), sum([3, 4], [4, 5, 6]));
        let none = None;
        // The border cuts the last row and the last column of tiles.
        assert_eq!(sums(&[(1, whole)], true), [a, b, none, d, e, none, none, none, none]);
        // A cell of the chunk in the middle was written again.
        assert_eq!(
            sums(&[(1, whole), (2, [(3, 3), (4, 4)])], true),
            [a, b, none, d, none, none, none, none, none]
        );
        // A hidden fragment does not matter.
        assert_eq!(
            sums(&[(1, [(3, 3), (4, 4)]), (2, whole)], true),
            [a, b, none, d, e, none, none, none, none]
        );
        // Some chunks have cells that were never written.
        let part = [(2, 5), (1, 5)];
        assert_eq!(sums(&[(1, part)], true), [none, none, none, d, none, none, none, none, none]);
        assert_eq!(sums(&[(1, part)], false), [none, none, d, none, none, none]);
        assert_eq!(sums(&[], true), []);
    }
}
