//! One tile of one field, to be decoded.

use std::sync::Arc;

use bytes::Bytes;

use crate::bytes::{Datatype, FragmentTiles};
use crate::columns::{complete_cells, element};
use gridfusion_core::Result;
use gridfusion_core::format::{ElementType, Layer, Scratch, StoredChunk};
use gridfusion_core::tile::{Request, Tile, layers};
use gridfusion_core::verify::Finding;

/// A tile to be decoded.
#[derive(Debug)]
pub(super) struct StoredTile {
    tiles: Arc<FragmentTiles>,
    /// The number of the tile in the fragment.
    place: u64,
    /// Boxed, because many tiles wait in a batch.
    layer: Box<Layer>,
}

impl StoredTile {
    /// Locates tile number `place` of the fragment.
    ///
    /// # Errors
    /// `Corrupt` if a file of the tile is missing or too short.
    pub(super) fn locate(tiles: &Arc<FragmentTiles>, place: u64) -> Result<Self> {
        let layer = Box::new(tiles.stored(place)?);
        Ok(Self { tiles: Arc::clone(tiles), place, layer })
    }

    /// The tiles of the same field.
    pub(super) fn tiles(&self) -> &FragmentTiles {
        &self.tiles
    }

    /// The number of the tile in the fragment.
    pub(super) fn place(&self) -> u64 {
        self.place
    }

    /// Returns the number of payloads.
    pub(super) fn payloads(&self) -> usize {
        self.layer.payloads().count()
    }

    /// Returns requests for the payloads.
    pub(super) fn requests(&self) -> Vec<Request> {
        Request::for_chunks(&[self.chunk()])
    }

    /// Decodes the payloads of [`Self::requests`] into `memory`.
    pub(super) fn decode(
        &self,
        payloads: impl IntoIterator<Item = Option<Bytes>>,
        memory: Vec<u8>,
        scratch: &mut Scratch,
    ) -> Result<Tile> {
        let format = complete_cells(&self.tiles.field()?)?;
        let shape = self.tiles.tile_shape(self.place)?;
        let mut payloads = payloads.into_iter().flatten();
        layers::decode(&self.chunk(), &mut payloads, &shape, &format, memory, scratch)
            .map_err(|failed| failed.error)
    }

    /// Adds the file, the field and the coordinates of the tile to a finding.
    pub(super) fn located(&self, finding: Finding) -> Finding {
        let object = self.layer.values.at.object.to_string();
        let file = finding.file.clone().unwrap_or(object);
        located(&self.tiles, self.place, finding).in_file(&file)
    }

    /// The tile as a chunk of one layer, which the common code decodes. The cells stay in their stored
    /// order.
    fn chunk(&self) -> StoredChunk {
        StoredChunk::new(vec![Layer::clone(&self.layer)])
    }
}

/// Returns the numbers that values of a type are compared as; `None` for text and bytes. Dates and times are
/// the numbers that they are stored as.
pub(super) fn number_type(datatype: Datatype) -> Option<ElementType> {
    if datatype.is_temporal() { Some(ElementType::I64) } else { element(datatype) }
}

/// Adds the field and the coordinates of a tile to a finding.
pub(super) fn located(tiles: &FragmentTiles, place: u64, finding: Finding) -> Finding {
    finding.in_dataset(tiles.name()).of_chunk(&tiles.coordinates(place))
}
