//! The chunk source of a TileDB array: the locations of its tiles, and their stored statistics.
//!
//! A chunk of the table is a tile of the array, clipped to the window that the table shows. Statistics pass
//! two filters: `crate::bytes` rejects those that cannot be true, and this module those that are wrong
//! for the table's NULLs.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::{Mutex, OnceCell};

use super::columns::scalar;
use super::view::TileDbView;
use crate::bytes::{Attribute, TileDbArray, Window};
use gridfusion_core::Result;
use gridfusion_core::array::{ChunkSource, NOT_A_TIME, Scalar};
use gridfusion_core::format::{ElementType, StoredChunk, Zone, ZoneBound, Zones, bound};
use gridfusion_core::grid::{ChunkTask, Selection};
use gridfusion_core::source::digest;
use gridfusion_core::tile::{ObjectVersion, Objects, drive};

/// The chunks of one view of a TileDB array. Value number `n` is attribute number `n`.
#[derive(Debug)]
pub(super) struct TileDbChunks {
    pub(super) array: Arc<TileDbArray>,
    pub(super) objects: Arc<Objects>,
    /// The part of the array that the table shows. Coordinates of tasks count its tiles.
    pub(super) window: Arc<Window>,
    pub(super) view: TileDbView,
    /// Statistics that were read, per attribute; `None` in a cell if there are none that can be used.
    pub(super) zones: Vec<OnceCell<Option<Arc<dyn Zones>>>>,
    /// Held while tiles are located, so that concurrent partitions read the tile offsets only once.
    pub(super) looking_up: Mutex<()>,
}

/// Returns the version of an array: its schema, and the names of its fragments and deletions, which are never written
/// twice.
pub(super) fn versions(array: &TileDbArray, objects: &Objects) -> Vec<ObjectVersion> {
    let fragments = array.fragments().iter().map(|fragment| fragment.name.clone());
    let deletions = array.deletions().iter().map(|deletion| deletion.marker.clone());
    let read = fragments.chain(deletions).chain([format!("{:?}", array.schema())]);
    vec![ObjectVersion { object: objects.name().to_owned(), version: digest(read) }]
}

/// A scan of more chunks than this needs at least as many written tiles. Planning lists the chunks of an axis, and
/// a domain may have any number of them.
const MAX_UNWRITTEN_CHUNKS: u64 = 1 << 22;

#[async_trait]
impl ChunkSource for TileDbChunks {
    fn objects(&self) -> &Arc<Objects> {
        &self.objects
    }

    fn versions(&self) -> Vec<ObjectVersion> {
        versions(&self.array, &self.objects)
    }

    fn most_chunks(&self) -> u64 {
        let tiles = self.array.fragments().iter().map(|fragment| fragment.tiles);
        tiles.fold(0, u64::saturating_add).max(MAX_UNWRITTEN_CHUNKS)
    }

    async fn locate(&self, tasks: &[ChunkTask], values: &[usize]) -> Result<Vec<Vec<StoredChunk>>> {
        let _alone = self.looking_up.lock().await;
        let chunks = tasks.iter().map(|task| task.coordinates.clone()).collect();
        let machine = self.array.locate(&self.window, chunks, values.to_vec());
        drive(machine.map_err(|error| self.objects.named(error))?, &self.objects).await
    }

    async fn zones(
        &self,
        value: usize,
        _: &Selection,
        bytes_to_read: u64,
    ) -> Option<Arc<dyn Zones>> {
        if let Some(zones) = self.zones[value].get() {
            return zones.clone();
        }
        let tiles: u64 = self.array.fragments().iter().map(|fragment| fragment.tiles).sum();
        // Statistics are found by the number of a chunk.
        let is_found = self.window.grid.is_numbered();
        if !is_found || !self.view.read.trust_zone_maps || !is_worthwhile(tiles, bytes_to_read) {
            return None;
        }
        self.zones[value].get_or_init(|| self.read_zones(value)).await.clone()
    }
}

impl TileDbChunks {
    /// Reads the statistics of an attribute. `None` for text and booleans, which are not compared by
    /// bounds, and if the statistics cannot be read.
    async fn read_zones(&self, value: usize) -> Option<Arc<dyn Zones>> {
        let attribute = &self.array.schema().attributes[value];
        let machine = self.array.read_zones(&self.window, value)?;
        let zones = match drive(machine, &self.objects).await {
            Ok(zones) => zones,
            Err(error) => {
                log::warn!("statistics of attribute \"{}\" are ignored: {error}", attribute.name);
                return None;
            }
        };
        without_possible_nulls(Arc::new(zones), attribute, &self.view)
    }
}

/// Whether statistics of this many tiles cost little compared with the payloads that a query reads.
pub(super) fn is_worthwhile(tiles: u64, bytes_to_read: u64) -> bool {
    /// Bytes of statistics per tile: the least and the greatest value, the sum and the NULL count, at
    /// most 8 bytes each.
    const STATISTICS_BYTES: u64 = 32;
    /// Statistics of up to this many bytes, or 2048 tiles, are always read.
    const CHEAP: u64 = 1 << 16;
    tiles.saturating_mul(STATISTICS_BYTES) <= bytes_to_read.max(CHEAP)
}

/// Returns the statistics of an attribute without those of chunks that may hold a value that the table shows
/// as NULL. `None` for text and booleans, which are not compared by bounds.
pub(super) fn without_possible_nulls(
    zones: Arc<dyn Zones>,
    attribute: &Attribute,
    view: &TileDbView,
) -> Option<Arc<dyn Zones>> {
    let element = match scalar(attribute.datatype, view)? {
        Scalar::Number(element) => element,
        Scalar::Temporal(_) => ElementType::I64,
        _ => return None, // without statistics, every chunk is read
    };
    // Elements that the table shows as NULL, but that writers count as values.
    let mut nulls = Vec::new();
    if view.read.fill_as_null {
        nulls.push(bound(&attribute.fill));
    }
    if view.read.nan_as_null && attribute.datatype.is_temporal() {
        nulls.push(NOT_A_TIME.to_le_bytes());
    }
    Some(Arc::new(WithoutPossibleNulls { zones, element, nulls }))
}

/// The statistics of chunks, without chunks that may hold a value that the table shows as NULL.
#[derive(Debug)]
struct WithoutPossibleNulls {
    zones: Arc<dyn Zones>,
    element: ElementType,
    /// The elements that the table shows as NULL, besides stored NULLs.
    nulls: Vec<ZoneBound>,
}

impl Zones for WithoutPossibleNulls {
    fn zone(&self, chunk: u64) -> Option<Zone> {
        let zone = self.zones.zone(chunk)?;
        // Bounds do not distinguish -0.0 (rank -1) from 0.0 (rank 0), so both get rank 0.
        let rank = |bound: &ZoneBound| {
            let rank = self.element.rank(&bound[..self.element.size() as usize])?;
            Some(if self.element.is_integer() || rank >= 0 { rank } else { rank + 1 })
        };
        let may_hold = |null: &ZoneBound| match &zone.bounds {
            Some((least, greatest)) => match (rank(least), rank(null), rank(greatest)) {
                (Some(least), Some(null), Some(greatest)) => least <= null && null <= greatest,
                (_, None, _) => false, // NaN is never between bounds
                _ => true,
            },
            // Without bounds and sum, all cells are stored NULLs.
            None => zone.sum.is_some(),
        };
        if self.nulls.iter().any(may_hold) { None } else { Some(zone) }
    }
}
