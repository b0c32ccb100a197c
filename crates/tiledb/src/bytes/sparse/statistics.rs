//! The stored statistics of the tiles of sparse fragments.
//!
//! A tile of a sparse fragment has exactly its cells: there is no padding, and no other fragment overrides
//! a part of it. So its statistics describe just these cells. Which of the cells a query sees is another
//! question, which the statistics cannot answer.

use std::sync::Arc;

use bytes::Bytes;

use crate::bytes::array::TileDbArray;
use crate::bytes::statistics::{TileStatistics, has_statistics, statistics_locations};
use crate::bytes::tiles::field_of;
use gridfusion_core::format::{Location, Machine, Replies, Step, Zone, Zones};
use gridfusion_core::{Error, Result};

/// A machine that reads the statistics of one attribute. Made by [`TileDbArray::read_sparse_zones`].
///
/// Its result has an entry per requested fragment: the statistics by number of the tile; `None` if there are
/// none that can be used.
#[derive(Debug)]
pub struct ReadSparseZones {
    array: Arc<TileDbArray>,
    attribute: usize,
    /// The requested fragments, each with the locations of its blocks.
    asked: Vec<(usize, Vec<Location>)>,
}

/// The statistics of the tiles of one fragment.
#[derive(Debug)]
struct FragmentZones {
    statistics: TileStatistics,
    /// The number of cells in a full tile, and in the last tile.
    cells: [u64; 2],
    tiles: u64,
}

impl Zones for FragmentZones {
    fn zone(&self, tile: u64) -> Option<Zone> {
        let is_last = tile.checked_add(1) == Some(self.tiles);
        self.statistics.zone_of(tile, self.cells[usize::from(is_last)])
    }
}

impl TileDbArray {
    /// Returns a machine that reads the statistics of `attribute` in `fragments`; `None` if the attribute
    /// has none. The machine takes one round trip.
    pub fn read_sparse_zones(
        self: &Arc<Self>,
        attribute: usize,
        fragments: &[usize],
    ) -> Option<ReadSparseZones> {
        let declared = self.schema.attributes.get(attribute)?;
        if !has_statistics(declared) {
            return None;
        }
        let blocks = |&number: &usize| {
            let fragment = self.fragments.get(number)?;
            let field = field_of(&self.schema, attribute, fragment).ok().flatten()?;
            statistics_locations(fragment, field)
        };
        let asked = fragments.iter().map(|at| (*at, blocks(at).unwrap_or_default())).collect();
        Some(ReadSparseZones { array: Arc::clone(self), attribute, asked })
    }
}

impl ReadSparseZones {
    fn finish(&self, blocks: &[Bytes]) -> Result<Vec<Option<Arc<dyn Zones>>>> {
        let mut rest = blocks;
        let mut zones: Vec<Option<Arc<dyn Zones>>> = Vec::with_capacity(self.asked.len());
        for (number, locations) in &self.asked {
            let (own, others) = rest
                .split_at_checked(locations.len())
                .ok_or_else(|| Error::internal("blocks were requested and not read"))?;
            rest = others;
            if locations.is_empty() {
                zones.push(None);
                continue;
            }
            let fragment = self.array.fragment(*number)?;
            let datatype = self.array.schema.attributes[self.attribute].datatype;
            let key = self.array.options.key.as_ref();
            let statistics = TileStatistics::parse(fragment, datatype, locations, own, key)
                .map_err(|error| error.about(&fragment.metadata_object()))?;
            let cells =
                [fragment.tile_cells(0)?, fragment.tile_cells(fragment.tiles.saturating_sub(1))?];
            let of = |statistics| FragmentZones { statistics, cells, tiles: fragment.tiles };
            zones.push(statistics.map(|statistics| Arc::new(of(statistics)) as Arc<dyn Zones>));
        }
        Ok(zones)
    }
}

impl Machine for ReadSparseZones {
    type Output = Vec<Option<Arc<dyn Zones>>>;

    fn subject(&self) -> &'static str {
        "statistics of tiles"
    }

    fn step(&mut self, replies: Replies) -> Result<Step<Self::Output>> {
        let locations = || self.asked.iter().flat_map(|(_, locations)| locations.iter().cloned());
        match replies {
            Replies::Start if locations().next().is_none() => self.finish(&[]).map(Step::Done),
            Replies::Start => Ok(Step::Read(locations().collect())),
            replies => self.finish(&replies.into_bytes()).map(Step::Done),
        }
    }
}
