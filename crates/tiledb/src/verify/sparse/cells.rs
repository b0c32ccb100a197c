//! The coordinates and times of one tile of cells, to be decoded together.

use std::sync::Arc;

use bytes::Bytes;

use super::fragment_cells::FragmentCells;
use crate::verify::stored_tile::StoredTile;
use gridfusion_core::Result;
use gridfusion_core::format::Scratch;
use gridfusion_core::tile::{Request, Tile};
use gridfusion_core::verify::{Decodable, Finding, Findings};

/// The tiles with coordinates and times of the same cells.
#[derive(Debug)]
pub(in crate::verify) struct StoredCells {
    cells: Arc<FragmentCells>,
    /// The number of the tile in the fragment.
    place: u64,
    /// By the place in the fragment's fields of coordinates; `None` for a tile that could not be located.
    tiles: Vec<Option<StoredTile>>,
}

impl StoredCells {
    /// Returns tile number `place` of a fragment, without any field.
    pub(in crate::verify) fn new(cells: &Arc<FragmentCells>, place: u64) -> Self {
        Self { cells: Arc::clone(cells), place, tiles: vec![] }
    }

    /// Adds the tile of the next field; `None` if it could not be located.
    pub(in crate::verify) fn push(&mut self, tile: Option<StoredTile>) {
        self.tiles.push(tile);
    }
}

impl Decodable for StoredCells {
    fn count(&self) -> u64 {
        self.tiles.iter().flatten().count() as u64
    }

    fn requests(&self) -> Vec<Request> {
        self.tiles.iter().flatten().flat_map(StoredTile::requests).collect()
    }

    fn decode(
        &self,
        payloads: Vec<Option<Bytes>>,
        memory: Vec<u8>,
        scratch: &mut Scratch,
    ) -> Result<(Findings, Vec<u8>)> {
        let mut payloads = payloads.into_iter();
        let mut undecodable = vec![];
        let mut decoded: Vec<Option<Tile>> = vec![];
        for stored in &self.tiles {
            let Some(stored) = stored else {
                decoded.push(None);
                continue;
            };
            // Takes all payloads of the tile, so that a tile that fails does not shift those of the next.
            let own: Vec<Option<Bytes>> = payloads.by_ref().take(stored.payloads()).collect();
            let tile = stored.decode(own, vec![], scratch);
            decoded.push(match tile {
                Ok(tile) => Some(tile),
                Err(error) => {
                    undecodable.push(stored.located(Finding::from_error(&error)));
                    None
                }
            });
        }
        let mut findings = self.cells.check(self.place, decoded)?;
        findings.undecodable = undecodable;
        // Several tiles are in memory at once, so there is no single one to hand its memory on.
        Ok((findings, memory))
    }

    fn located(&self, finding: Finding) -> Finding {
        match self.tiles.iter().flatten().next() {
            Some(tile) => tile.located(finding),
            None => finding.of_chunk(&[self.place]),
        }
    }
}
