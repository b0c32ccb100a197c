//! The checks of the cells of a file: every payload is decoded, and its zone map computed again.
//!
//! ```text
//!   CheckedRow ──add──▶ IndexedChunk ──▶ Decoding: batches, in parallel ──┬─▶ chunk_decode
//!                                                                         └─▶ zone_maps_stale
//! ```
//!
//! A decoded tile is compared at once, and its memory is used for the next. So each task holds one tile.

use std::sync::Arc;

use bytes::Bytes;

use crate::bytes::{CheckedRow, ZoneMaps};
use crate::reader::TetReader;
use gridfusion_core::Result;
use gridfusion_core::array::declared_fill;
use gridfusion_core::format::{ElementType, Payload, Scratch, Zone, ZoneBound, Zones};
use gridfusion_core::tile::Request;
use gridfusion_core::verify::{
    CellStatistics, Check, Decodable, Decoding, Finding, Findings, Progress, is_same, range_text,
};

/// The name of the check of zone maps.
const STALE: &str = "zone_maps_stale";

/// The file and the zone maps of its datasets, shared by all chunks.
#[derive(Debug)]
struct Common {
    file: TetReader,
    datasets: Vec<DatasetZones>,
}

/// The stored zone maps of a dataset, and the facts that its zone maps are computed from.
#[derive(Debug)]
struct DatasetZones {
    /// `None` for an undefined type.
    element: Option<ElementType>,
    /// The declared fill value, which counts as NULL.
    fill: Option<ZoneBound>,
    /// The maps without faults; empty if there are none.
    zones: ZoneMaps,
}

/// A chunk to be decoded.
#[derive(Debug)]
struct IndexedChunk {
    common: Arc<Common>,
    dataset: usize,
    coordinates: Vec<u64>,
    payload: Payload,
}

/// The checks of the cells, which take the rows of the index one by one.
#[derive(Debug)]
pub(super) struct CellChecks {
    common: Arc<Common>,
    progress: Arc<Progress>,
    decoding: Decoding<IndexedChunk>,
    /// Stored bytes that may still be decoded, initially the size of the file. Without this limit, a
    /// small file whose payloads share bytes could take forever.
    bytes_left: u64,
    /// The number of chunks that this limit left out.
    cut_off: u64,
    /// Whether the check of zone maps is reported, because there are some.
    has_zones: bool,
}

impl CellChecks {
    pub(super) fn new(file: &TetReader, zones: Vec<ZoneMaps>, progress: &Arc<Progress>) -> Self {
        let has_zones = zones.iter().any(|maps| !maps.is_empty());
        let mut zones = zones.into_iter();
        let datasets = file.tet().datasets().iter().enumerate().map(|(id, dataset)| {
            let element = dataset.element().ok();
            let attributes = &file.tet().metadata_of(id).attrs;
            let fill = element.and_then(|it| declared_fill(it, attributes, &mut vec![]));
            DatasetZones { element, fill, zones: zones.next().unwrap_or_default() }
        });
        let datasets = datasets.collect();
        Self {
            decoding: Decoding::new(file.objects(), progress, "chunk_decode", &[STALE]),
            progress: Arc::clone(progress),
            bytes_left: file.size(),
            common: Arc::new(Common { file: file.clone(), datasets }),
            cut_off: 0,
            has_zones,
        }
    }

    /// Queues the payload of a row for decoding, unless the row is invalid.
    pub(super) async fn add(&mut self, row: CheckedRow) -> Result<()> {
        let (Some(dataset), Some(coordinates), Some(payload)) =
            (row.dataset, row.coordinates, row.payload)
        else {
            self.progress.advance(1, 0);
            return Ok(());
        };
        let Some(left) = self.bytes_left.checked_sub(payload.stored_len()) else {
            self.cut_off += 1;
            self.progress.advance(1, 0);
            return Ok(());
        };
        self.bytes_left = left;
        let common = Arc::clone(&self.common);
        self.decoding.add(IndexedChunk { common, dataset, coordinates, payload }).await
    }

    /// Waits for all decoding. Returns the check of payloads and, if there are zone maps, that of zone
    /// maps.
    pub(super) async fn finish(self) -> Result<Vec<Check>> {
        let (mut decode, stale) = self.decoding.finish("chunk").await?;
        if self.cut_off > 0 {
            let message = format!(
                "{} chunks were not decoded: the payloads together are larger than the file",
                self.cut_off
            );
            decode.add(Finding::failure(message));
        }
        let stale = stale.into_iter().filter(|_| self.has_zones);
        Ok(std::iter::once(decode).chain(stale).collect())
    }
}

impl Decodable for IndexedChunk {
    fn requests(&self) -> Vec<Request> {
        let (at, expected) = (self.payload.at.clone(), self.payload.stored_len());
        vec![Request { at, may_be_absent: false, expected }]
    }

    fn decode(
        &self,
        payloads: Vec<Option<Bytes>>,
        memory: Vec<u8>,
        scratch: &mut Scratch,
    ) -> Result<(Findings, Vec<u8>)> {
        let payload = payloads.into_iter().flatten().next().unwrap_or_default();
        let tile = self.payload.decode(payload, memory, scratch)?;
        let stale = Findings::with(STALE, self.stale(&tile.bytes));
        Ok((stale, tile.bytes.try_into_mut().map(Vec::from).unwrap_or_default()))
    }

    fn located(&self, finding: Finding) -> Finding {
        let dataset = &self.common.file.tet().datasets()[self.dataset];
        finding.in_dataset(dataset.name()).of_chunk(&self.coordinates)
    }
}

impl IndexedChunk {
    /// Returns a finding if the zone map of the chunk differs from its cells.
    fn stale(&self, tile: &[u8]) -> Option<Finding> {
        let DatasetZones { element, fill, zones } = &self.common.datasets[self.dataset];
        let grid = self.common.file.tet().datasets()[self.dataset].grid().ok()?;
        let stored = zones.zone(grid.chunk_number(&self.coordinates)?)?;
        let element = (*element)?;
        let found = CellStatistics::new(element, tile, *fill, None);
        if is_zone_of(element, &stored, &found) {
            return None;
        }
        // Some writers do not know the fill value. If their map is right for cells without one, the message
        // gives the cause.
        let without_fill = CellStatistics::new(element, tile, None, None);
        let why = match is_zone_of(element, &stored, &without_fill) {
            true => "; its writer counted the fill value as a value",
            false => "",
        };
        let message = format!(
            "the zone map has {} NULLs and {}, the cells have {} NULLs and {}{why}",
            stored.null_count,
            range_text(element, &stored.bounds),
            found.nulls,
            range_text(element, &found.bounds)
        );
        Some(self.located(Finding::failure(message)))
    }
}

/// Whether a zone map has the NULL count and the bounds of the cells. -0 and 0 are the same bound.
fn is_zone_of(element: ElementType, stored: &Zone, found: &CellStatistics) -> bool {
    let same_bounds = match (&stored.bounds, &found.bounds) {
        (Some(stored), Some(found)) => {
            is_same(element, &stored.0, &found.0) && is_same(element, &stored.1, &found.1)
        }
        (stored, found) => stored == found,
    };
    found.nulls == stored.null_count && same_bounds
}
