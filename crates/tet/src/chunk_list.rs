//! A list of the stored chunks of a `.tet` file, with their zone maps.

use std::sync::Arc;

use super::index_scan::IndexScan;
use super::reader::TetReader;
use crate::bytes::{IndexEntry, ZoneMaps};
use gridfusion_core::Result;
use gridfusion_core::array::decimal;
use gridfusion_core::format::{Payload, ZoneBound, Zones};

/// One stored chunk.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ChunkInfo {
    /// The name of its dataset.
    pub dataset: Arc<str>,
    /// Its coordinates in the chunk grid, one per axis.
    pub coordinates: Vec<u64>,
    /// Its byte range, codec and decoded length.
    pub payload: Payload,
    /// The number of cells that are NaN or the fill value; `None` without a zone map.
    pub null_count: Option<u64>,
    /// The least stored element that is not NULL, in decimal; `None` if no zone map has it.
    pub min: Option<String>,
    /// The greatest stored element that is not NULL, in decimal; `None` if no zone map has it.
    pub max: Option<String>,
}

/// A reader of the stored chunks in the order of the chunk index. Its memory does not grow with the
/// number of chunks, unless zone maps are requested.
#[derive(Debug)]
pub struct ChunkList {
    file: TetReader,
    index: IndexScan,
    /// Indexed by dataset id.
    names: Vec<Arc<str>>,
    zones: WantedZones,
}

/// The zone maps of a list, which are read with the first chunks.
#[derive(Debug)]
enum WantedZones {
    /// Requested, but not read yet.
    NotYetRead,
    /// Indexed by dataset id; empty if zone maps are not requested, or do not exist.
    Known(Vec<Option<ZoneMaps>>),
}

impl ChunkList {
    /// Lists the stored chunks of the dataset with this id, or of all readable datasets. Zone maps are
    /// read with the first chunks; invalid zone maps are logged as a warning and ignored.
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

    /// Returns the next chunks, at least one; `None` after the last.
    ///
    /// # Errors
    /// As [`IndexScan::next`].
    pub async fn next(&mut self) -> Result<Option<Vec<ChunkInfo>>> {
        let Some(entries) = self.index.next().await? else { return Ok(None) };
        if let WantedZones::NotYetRead = self.zones {
            self.zones = WantedZones::Known(self.read_zones().await);
        }
        Ok(Some(entries.into_iter().map(|entry| self.info(entry)).collect()))
    }

    /// Reads the zone maps of all datasets; `None` for a dataset whose maps are invalid.
    async fn read_zones(&self) -> Vec<Option<ZoneMaps>> {
        let ignored = |error| log::warn!("{}: zone maps are ignored: {error}", self.file.name());
        let all = self.file.zone_maps().await.map_err(ignored).ok().flatten();
        let by_dataset = all.unwrap_or_default().into_iter().enumerate();
        let trusted = by_dataset.map(|(dataset, maps)| {
            // The chunks of an unreadable dataset are not listed, so its zone maps need no warning.
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

    /// Adds the name of the dataset and the zone map of the chunk to an index entry.
    fn info(&self, entry: IndexEntry) -> ChunkInfo {
        let IndexEntry { dataset, coordinates, payload } = entry;
        let described = &self.file.tet().datasets()[dataset];
        let zone = match &self.zones {
            WantedZones::Known(all) => all.get(dataset).and_then(Option::as_ref),
            WantedZones::NotYetRead => None,
        };
        let number = described.grid().ok().and_then(|grid| grid.chunk_number(&coordinates));
        let zone = zone.zip(number).and_then(|(maps, number)| maps.zone(number));
        // Two steps of `unzip` split the zone into columns: a zone may have a NULL count without bounds.
        let (null_count, bounds) = zone.map(|zone| (zone.null_count, zone.bounds)).unzip();
        let (min, max) = bounds.flatten().unzip();
        let text = |bound: Option<ZoneBound>| decimal(described.element().ok()?, &bound?);
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
