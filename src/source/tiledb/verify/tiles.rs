//! The checks of the cells of a fragment: every tile is decoded, and its statistics computed again.

use std::sync::Arc;

use bytes::Bytes;

use super::sums::TileSum;
use crate::error::{Error, Result};
use crate::format::tiledb::{Attribute, FragmentTiles, StoredStatistics};
use crate::format::{ElementType, Layer, Scratch, StoredChunk};
use crate::source::tiledb::columns::element;
use crate::source::tiledb::reader::TileDbReader;
use crate::tile::{CellFormat, Request, Tile, layers};
use crate::verify::{
    CellStatistics, Check, Decodable, Decoding, Finding, Progress, is_same, range_text,
};

/// A tile to be decoded.
#[derive(Debug)]
struct StoredTile {
    tiles: Arc<FragmentTiles>,
    /// The number of the tile in the fragment.
    place: u64,
    layer: Layer,
}

/// The checks of the cells of an array, which take its tiles one by one.
#[derive(Debug)]
pub(super) struct TileChecks(Decoding<StoredTile>);

impl TileChecks {
    pub(super) fn new(array: &TileDbReader, progress: &Arc<Progress>) -> Self {
        let names = ["tile_decode", "tile_statistics_stale"];
        Self(Decoding::new(array.objects(), progress, names))
    }

    /// Queues a tile for decoding.
    pub(super) async fn add(
        &mut self,
        tiles: &Arc<FragmentTiles>,
        place: u64,
        layer: Layer,
    ) -> Result<()> {
        self.0.add(StoredTile { tiles: Arc::clone(tiles), place, layer }).await
    }

    /// Waits for all decoding. Returns the checks of tiles and of their statistics.
    pub(super) async fn finish(self) -> Result<[Check; 2]> {
        self.0.finish("tile").await
    }
}

impl Decodable for StoredTile {
    fn requests(&self) -> Vec<Request> {
        Request::of(&[self.chunk()])
    }

    fn decode(
        &self,
        payloads: Vec<Option<Bytes>>,
        memory: Vec<u8>,
        scratch: &mut Scratch,
    ) -> Result<(Option<Finding>, Vec<u8>)> {
        let format = cell_format(self.tiles.attribute())?;
        let shape = self.tiles.tile_shape();
        let mut payloads = payloads.into_iter().flatten();
        let tile = layers::decode(&self.chunk(), &mut payloads, &shape, &format, memory, scratch)
            .map_err(|failed| failed.error)?;
        Ok((self.stale(&tile), tile.into_spare()))
    }

    fn located(&self, finding: Finding) -> Finding {
        let object = self.layer.values.at.object.to_string();
        let file = finding.file.clone().unwrap_or(object);
        located(&self.tiles, self.place, finding).in_file(&file)
    }
}

impl StoredTile {
    /// The tile as a chunk of one layer, which the common code decodes. The cells stay in their stored
    /// order.
    fn chunk(&self) -> StoredChunk {
        StoredChunk { layers: vec![self.layer.clone()] }
    }

    /// Returns a finding if the stored statistics of the tile differ from its cells.
    fn stale(&self, tile: &Tile) -> Option<Finding> {
        let stored = self.tiles.stored_statistics(self.place)?;
        let datatype = self.tiles.attribute().datatype;
        let element = if datatype.is_temporal() { ElementType::I64 } else { element(datatype)? };
        let found = CellStatistics::of(element, tile.bytes(), None, tile.validity());
        let difference = difference(&stored, &found, element, tile, datatype.is_temporal())?;
        let file = &self.tiles.fragment().name;
        Some(located(&self.tiles, self.place, Finding::failure(difference)).in_file(file))
    }
}

/// Returns the format of the cells in a tile. Tiles are complete, so the fill value is not used here.
fn cell_format(attribute: &Attribute) -> Result<CellFormat> {
    let width = attribute.cell_size().map(usize::try_from).transpose();
    Ok(CellFormat {
        width: width.map_err(|_| Error::unsupported("cells that do not fit in memory"))?,
        nullable: attribute.nullable,
        fill: attribute.fill.clone(),
        fill_is_valid: attribute.fill_valid,
    })
}

/// Adds the attribute and the coordinates of a tile to a finding.
pub(super) fn located(tiles: &FragmentTiles, place: u64, finding: Finding) -> Finding {
    finding.in_dataset(&tiles.attribute().name).of_chunk(&tiles.coordinates(place))
}

/// Returns how stored statistics differ from the cells, as a message. `None` if they do not, or if the two
/// cannot be compared.
///
/// Compares NULL counts, then bounds, then sums. `found` counts NaN as NULL, and `stored` does not.
fn difference(
    stored: &StoredStatistics,
    found: &CellStatistics,
    element: ElementType,
    tile: &Tile,
    is_temporal: bool,
) -> Option<String> {
    let is_null = |byte: &&u8| **byte == 0;
    let nulls = tile.validity().map_or(0, |valid| valid.iter().filter(is_null).count() as u64);
    if let Some(stored) = stored.null_count
        && stored != nulls
    {
        return Some(format!("the stored statistics have {stored} NULLs, the tile has {nulls}"));
    }
    // Bounds of a tile without values mean nothing, and a NaN makes writers forget earlier bounds.
    let has_nan = found.nulls != nulls;
    let bounds = found.bounds.filter(|_| !has_nan)?;
    if !is_same(element, &stored.bounds.0, &bounds.0)
        || !is_same(element, &stored.bounds.1, &bounds.1)
    {
        let stored = range_text(element, &Some(stored.bounds));
        let found = range_text(element, &found.bounds);
        return Some(format!("the stored statistics have {stored}, the tile has {found}"));
    }
    let (stored, sum) = (stored.sum?, TileSum::of(element, tile.bytes(), tile.validity()));
    // Writers pin a sum that overflows to the limit of its type, and sums of dates mean nothing.
    let is_comparable = !is_temporal && sum.cannot_overflow();
    let differs = is_comparable && !sum.is(stored);
    differs.then(|| format!("the stored sum is {}, the tile has {sum}", sum.text(stored)))
}
