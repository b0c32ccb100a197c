//! The stored chunks of a `.tet` file, with what its zone maps say of them.

use std::sync::Arc;

use super::index_scan::IndexScan;
use super::reader::TetReader;
use crate::array::decimal;
use crate::error::Result;
use crate::format::tet::{IndexEntry, ZoneMaps};
use crate::format::{Bound, Payload, Zones};

/// One stored chunk.
#[derive(Debug, Clone)]
pub struct ChunkInfo {
    /// The name of its dataset.
    pub dataset: Arc<str>,
    /// Its place in the grid.
    pub coordinates: Vec<u64>,
    /// Where it is stored, and how.
    pub payload: Payload,
    /// Cells that are NaN or fill, if that is noted.
    pub null_count: Option<u64>,
    /// The least of the other elements as it is stored, in decimal, if that is noted.
    pub min: Option<String>,
    /// The greatest of them.
    pub max: Option<String>,
}

/// Lists stored chunks in the order of the index, in memory that does not grow with their number unless
/// zone maps are wanted.
#[derive(Debug)]
pub struct ChunkList {
    file: TetReader,
    index: IndexScan,
    /// By dataset.
    names: Vec<Arc<str>>,
    zones: WantedZones,
}

#[derive(Debug)]
enum WantedZones {
    NotYetRead,
    /// By dataset; empty if none are wanted, or there are none.
    Known(Vec<Option<ZoneMaps>>),
}

impl ChunkList {
    /// Lists the stored chunks of a dataset, by id, or of all that can be read. It reads zone maps with the
    /// first chunks, if at all, and ignores those that cannot be right with a warning.
    pub fn new(file: &TetReader, dataset: Option<usize>, with_zone_maps: bool) -> Self {
        let datasets = file.tet().datasets().iter();
        Self {
            file: file.clone(),
            index: IndexScan::new(file, dataset),
            names: datasets.map(|dataset| dataset.name().into()).collect(),
            zones: match with_zone_maps {
                true => WantedZones::NotYetRead,
                false => WantedZones::Known(vec![]),
            },
        }
    }

    /// The next chunks, one at least; `None` after the last.
    ///
    /// # Errors
    /// Those of [`IndexScan::next`].
    pub async fn next(&mut self) -> Result<Option<Vec<ChunkInfo>>> {
        let Some(entries) = self.index.next().await? else { return Ok(None) };
        if let WantedZones::NotYetRead = self.zones {
            self.zones = WantedZones::Known(self.read_zones().await);
        }
        Ok(Some(entries.into_iter().map(|entry| self.info(entry)).collect()))
    }

    async fn read_zones(&self) -> Vec<Option<ZoneMaps>> {
        let ignored = |error| log::warn!("{}: zone maps are ignored: {error}", self.file.name());
        let all = self.file.zone_maps().await.map_err(ignored).ok().flatten();
        let by_dataset = all.unwrap_or_default().into_iter().enumerate();
        let trusted = by_dataset.map(|(dataset, maps)| {
            // Of a dataset that cannot be read no chunk is listed.
            let is_readable = self.file.tet().datasets()[dataset].grid().is_ok();
            maps.map_err(|error| {
                if is_readable {
                    ignored(error)
                }
            })
            .ok()
        });
        trusted.collect()
    }

    fn info(&self, entry: IndexEntry) -> ChunkInfo {
        let IndexEntry { dataset, coordinates, payload } = entry;
        let described = &self.file.tet().datasets()[dataset];
        let zone = match &self.zones {
            WantedZones::Known(all) => all.get(dataset).and_then(Option::as_ref),
            WantedZones::NotYetRead => None,
        };
        let number = described.grid().ok().and_then(|grid| grid.chunk_number(&coordinates));
        let zone = zone.zip(number).and_then(|(maps, number)| maps.zone(number));
        let (null_count, bounds) = zone.map(|zone| (zone.null_count, zone.bounds)).unzip();
        let (min, max) = bounds.flatten().unzip();
        let text = |bound: Option<Bound>| decimal(described.element().ok()?, &bound?);
        ChunkInfo {
            dataset: Arc::clone(&self.names[dataset]),
            coordinates,
            payload,
            null_count,
            min: text(min),
            max: text(max),
        }
    }
}
