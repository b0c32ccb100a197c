//! The cells of a file: every payload decoded, and its zone map made again.

use std::sync::Arc;

use crate::array::declared_fill;
use crate::error::Result;
use crate::format::tet::{CheckedRow, ZoneMaps};
use crate::format::{Bound, ElementType, Location, Payload, Scratch, Zone, Zones};
use crate::source::tet::reader::TetReader;
use crate::verify::{
    Batch, Check, Decoded, Decoding, Fault, Figures, Finding, Progress, is_same, range_text,
    read_each,
};

/// What tasks share.
#[derive(Debug)]
struct Common {
    file: TetReader,
    datasets: Vec<Known>,
    progress: Arc<Progress>,
}

/// What of a dataset decides which zone maps its chunks should have.
#[derive(Debug)]
struct Known {
    element: Option<ElementType>,
    fill: Option<Bound>,
    zones: ZoneMaps,
}

/// A chunk to be decoded.
#[derive(Debug)]
struct Work {
    dataset: usize,
    coordinates: Vec<u64>,
    payload: Payload,
}

/// The checks of the cells, as rows of the index come.
#[derive(Debug)]
pub(super) struct CellChecks {
    common: Arc<Common>,
    decoding: Decoding,
    batch: Batch<Work>,
    /// Stored bytes that may still be decoded: payloads that share bytes must not make a small file take
    /// forever.
    bytes_left: u64,
    cut_off: u64,
    has_zones: bool,
}

impl CellChecks {
    pub(super) fn new(file: &TetReader, zones: Vec<ZoneMaps>, progress: &Arc<Progress>) -> Self {
        let has_zones = zones.iter().any(|maps| !maps.is_empty());
        let mut zones = zones.into_iter();
        let known = file.tet().datasets().iter().enumerate().map(|(id, dataset)| {
            let element = dataset.element().ok();
            let attributes = &file.tet().metadata_of(id).attrs;
            let fill = element.and_then(|it| declared_fill(it, attributes, &mut vec![]));
            Known { element, fill, zones: zones.next().unwrap_or_default() }
        });
        let common = Common {
            file: file.clone(),
            datasets: known.collect(),
            progress: Arc::clone(progress),
        };
        Self {
            common: Arc::new(common),
            decoding: Decoding::new("chunk_decode", "zone_maps_stale"),
            batch: Batch::new(),
            bytes_left: file.size(),
            cut_off: 0,
            has_zones,
        }
    }

    /// Has the payload of a row decoded, if the row can be right.
    pub(super) async fn add(&mut self, row: CheckedRow) -> Result<()> {
        let (Some(dataset), Some(coordinates), Some(payload)) =
            (row.dataset, row.coordinates, row.payload)
        else {
            self.common.progress.advance(1, 0);
            return Ok(());
        };
        let Some(left) = self.bytes_left.checked_sub(payload.stored_len()) else {
            self.cut_off += 1;
            self.common.progress.advance(1, 0);
            return Ok(());
        };
        self.bytes_left = left;
        let bytes = payload.stored_len();
        match self.batch.add(Work { dataset, coordinates, payload }, bytes) {
            Some(batch) => self.start(batch).await,
            None => Ok(()),
        }
    }

    async fn start(&mut self, batch: Vec<Work>) -> Result<()> {
        self.decoding.start(check(Arc::clone(&self.common), batch)).await
    }

    pub(super) async fn finish(mut self) -> Result<Vec<Check>> {
        let rest = self.batch.take();
        self.start(rest).await?;
        let (mut decode, stale) = self.decoding.finish("chunk").await?;
        if self.cut_off > 0 {
            let message = format!(
                "{} chunks were not decoded: in all, payloads have more bytes than the file",
                self.cut_off
            );
            decode.add(Finding::failure(message));
        }
        let stale = Some(stale).filter(|_| self.has_zones);
        Ok([Some(decode), stale].into_iter().flatten().collect())
    }
}

/// Decodes chunks one after the other; gives how many could be, and what is wrong.
async fn check(common: Arc<Common>, batch: Vec<Work>) -> Decoded {
    let at: Vec<Vec<Location>> = batch.iter().map(|work| vec![work.payload.at.clone()]).collect();
    let read = read_each(common.file.objects(), &at).await;
    let mut scratch = Scratch::default();
    let mut spare = vec![];
    let (mut decoded, mut faults) = (0, vec![]);
    for (work, stored) in batch.iter().zip(read) {
        let memory = std::mem::take(&mut spare);
        let tile = stored.and_then(|stored| {
            let stored = stored.into_iter().next().unwrap_or_default();
            work.payload.decode(stored, memory, &mut scratch)
        });
        match tile {
            Ok(tile) => {
                decoded += 1;
                faults.extend(common.stale(work, &tile.bytes).map(Fault::Figures));
                spare = tile.bytes.try_into_mut().map(Vec::from).unwrap_or_default();
            }
            Err(error) => {
                let finding = Finding::of_error(&error);
                faults.push(Fault::Payload(common.located(work, finding)));
            }
        }
        common.progress.advance(1, work.payload.stored_len());
    }
    (decoded, faults)
}

impl Common {
    fn located(&self, work: &Work, finding: Finding) -> Finding {
        let dataset = &self.file.tet().datasets()[work.dataset];
        finding.in_dataset(dataset.name()).of_chunk(&work.coordinates)
    }

    /// Says how the zone map of a chunk differs from its cells.
    fn stale(&self, work: &Work, tile: &[u8]) -> Option<Finding> {
        let known = &self.datasets[work.dataset];
        let grid = self.file.tet().datasets()[work.dataset].grid().ok()?;
        let noted = known.zones.zone(grid.chunk_number(&work.coordinates)?)?;
        let element = known.element?;
        let found = Figures::of(element, tile, known.fill, None);
        if is_noted(element, &noted, &found) {
            return None;
        }
        let without_fill = Figures::of(element, tile, None, None);
        let why = match is_noted(element, &noted, &without_fill) {
            true => "; its writer took the fill value for a value",
            false => "",
        };
        let message = format!(
            "the zone map says {} NULLs and {}, the cells have {} NULLs and {}{why}",
            noted.null_count,
            range_text(element, &noted.bounds),
            found.nulls,
            range_text(element, &found.bounds)
        );
        Some(self.located(work, Finding::failure(message)))
    }
}

fn is_noted(element: ElementType, noted: &Zone, found: &Figures) -> bool {
    let same_bounds = match (&noted.bounds, &found.bounds) {
        (Some(noted), Some(found)) => {
            is_same(element, &noted.0, &found.0) && is_same(element, &noted.1, &found.1)
        }
        (noted, found) => noted == found,
    };
    found.nulls == noted.null_count && same_bounds
}
