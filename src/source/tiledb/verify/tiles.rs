//! The tiles of a fragment: each decoded through its filters, and its figures made again.

use std::sync::Arc;

use bytes::Bytes;

use super::sums::TileSum;
use crate::error::{Error, Result};
use crate::format::tiledb::{Attribute, FragmentTiles, NotedFigures};
use crate::format::{ElementType, Layer, Location, Scratch, StoredChunk};
use crate::source::tiledb::reader::{OpenedTileDb, element};
use crate::tile::{CellFormat, Objects, Tile, layers};
use crate::verify::{
    Batch, Check, Decoded, Decoding, Fault, Figures, Finding, Progress, is_same, range_text,
    read_each,
};

/// A tile to be decoded.
#[derive(Debug)]
struct Work {
    tiles: Arc<FragmentTiles>,
    place: u64,
    layer: Layer,
}

impl Work {
    fn locations(&self) -> Vec<Location> {
        self.layer.payloads().map(|payload| payload.at.clone()).collect()
    }

    fn bytes(&self) -> u64 {
        self.layer.payloads().map(|payload| payload.stored_len()).fold(0, u64::saturating_add)
    }
}

/// The checks of the cells of an array, as its tiles come.
#[derive(Debug)]
pub(super) struct TileChecks {
    objects: Arc<Objects>,
    progress: Arc<Progress>,
    decoding: Decoding,
    batch: Batch<Work>,
}

impl TileChecks {
    pub(super) fn new(array: &OpenedTileDb, progress: &Arc<Progress>) -> Self {
        Self {
            objects: Arc::clone(array.objects()),
            progress: Arc::clone(progress),
            decoding: Decoding::new("tile_decode", "tile_statistics_stale"),
            batch: Batch::new(),
        }
    }

    /// Has a tile decoded.
    pub(super) async fn add(
        &mut self,
        tiles: &Arc<FragmentTiles>,
        place: u64,
        layer: Layer,
    ) -> Result<()> {
        let work = Work { tiles: Arc::clone(tiles), place, layer };
        let bytes = work.bytes();
        match self.batch.add(work, bytes) {
            Some(batch) => self.start(batch).await,
            None => Ok(()),
        }
    }

    async fn start(&mut self, batch: Vec<Work>) -> Result<()> {
        let task = check(Arc::clone(&self.objects), Arc::clone(&self.progress), batch);
        self.decoding.start(task).await
    }

    pub(super) async fn finish(mut self) -> Result<[Check; 2]> {
        let rest = self.batch.take();
        self.start(rest).await?;
        self.decoding.finish("tile").await.map(<[Check; 2]>::from)
    }
}

/// Decodes tiles one after the other; gives how many could be, and what is wrong.
async fn check(objects: Arc<Objects>, progress: Arc<Progress>, batch: Vec<Work>) -> Decoded {
    let at: Vec<Vec<Location>> = batch.iter().map(Work::locations).collect();
    let read = read_each(&objects, &at).await;
    let mut scratch = Scratch::default();
    let mut spare = vec![];
    let (mut decoded, mut faults) = (0, vec![]);
    for (work, stored) in batch.iter().zip(read) {
        let memory = std::mem::take(&mut spare);
        let tile = stored.and_then(|stored| decode(work, stored, memory, &mut scratch));
        match tile {
            Ok(tile) => {
                decoded += 1;
                faults.extend(stale(work, &tile).map(Fault::Figures));
                spare = tile.into_spare();
            }
            Err(error) => {
                let finding = Finding::of_error(&error);
                let object = work.layer.values.at.object.to_string();
                let file = finding.file.clone().unwrap_or(object);
                let finding = located(&work.tiles, work.place, finding).in_file(&file);
                faults.push(Fault::Payload(finding));
            }
        }
        progress.advance(1, work.bytes());
    }
    (decoded, faults)
}

fn decode(work: &Work, stored: Vec<Bytes>, memory: Vec<u8>, scratch: &mut Scratch) -> Result<Tile> {
    let format = cell_format(work.tiles.attribute())?;
    let chunk = StoredChunk { layers: vec![work.layer.clone()] };
    let shape = work.tiles.tile_shape();
    layers::decode(&chunk, &mut stored.into_iter(), &shape, &format, memory, scratch)
        .map_err(|failed| failed.error)
}

fn cell_format(attribute: &Attribute) -> Result<CellFormat> {
    let width = attribute.cell_size().map(usize::try_from).transpose();
    Ok(CellFormat {
        width: width.map_err(|_| Error::unsupported("cells that do not fit in memory"))?,
        nullable: attribute.nullable,
        fill: attribute.fill.clone(),
        fill_is_valid: attribute.fill_valid,
    })
}

/// Says which tile of which attribute and fragment a finding is about.
pub(super) fn located(tiles: &FragmentTiles, place: u64, finding: Finding) -> Finding {
    finding.in_dataset(&tiles.attribute().name).of_chunk(&tiles.coordinates(place))
}

/// Says how the figures of a tile differ from its cells.
fn stale(work: &Work, tile: &Tile) -> Option<Finding> {
    let noted = work.tiles.noted(work.place)?;
    let datatype = work.tiles.attribute().datatype;
    let element = if datatype.is_temporal() { ElementType::I64 } else { element(datatype)? };
    let found = Figures::of(element, tile.bytes(), None, tile.validity());
    let difference = difference(&noted, &found, element, tile, datatype.is_temporal())?;
    let file = &work.tiles.fragment().name;
    Some(located(&work.tiles, work.place, Finding::failure(difference)).in_file(file))
}

fn difference(
    noted: &NotedFigures,
    found: &Figures,
    element: ElementType,
    tile: &Tile,
    is_temporal: bool,
) -> Option<String> {
    let is_null = |byte: &&u8| **byte == 0;
    let nulls = tile.validity().map_or(0, |valid| valid.iter().filter(is_null).count() as u64);
    if let Some(noted) = noted.null_count
        && noted != nulls
    {
        return Some(format!("the fragment notes {noted} NULLs, the tile has {nulls}"));
    }
    // Of a tile without values nothing is noted, and a NaN makes writers forget what came before.
    let has_nan = found.nulls != nulls;
    let bounds = found.bounds.filter(|_| !has_nan)?;
    if !is_same(element, &noted.bounds.0, &bounds.0)
        || !is_same(element, &noted.bounds.1, &bounds.1)
    {
        let noted = range_text(element, &Some(noted.bounds));
        let found = range_text(element, &found.bounds);
        return Some(format!("the fragment notes {noted}, the tile has {found}"));
    }
    let (noted, sum) = (noted.sum?, TileSum::of(element, tile.bytes(), tile.validity()));
    // Writers of a sum that leaves its type stop at the limit, and sums of dates mean nothing.
    let is_told = !is_temporal && sum.cannot_overflow();
    let differs = is_told && !sum.is(noted);
    differs.then(|| format!("the fragment notes a sum of {}, the tile has {sum}", sum.text(noted)))
}
