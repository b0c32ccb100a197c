//! The checks of the cells of an array: every tile is decoded, and compared with what is stored about it.

use std::sync::Arc;

use bytes::Bytes;

use super::sparse::{self, StoredCells};
use super::stored_tile::StoredTile;
use super::value_tile::{STALE, ValueTile};
use crate::bytes::ArrayKind;
use crate::reader::TileDbReader;
use gridfusion_core::Result;
use gridfusion_core::format::Scratch;
use gridfusion_core::tile::Request;
use gridfusion_core::verify::{Check, Decodable, Decoding, Finding, Findings, Progress};

/// The name of the check of decoding.
pub(super) const DECODE: &str = "tile_decode";

/// The checks of the cells of an array, which take its tiles one by one.
#[derive(Debug)]
pub(super) struct CellChecks(Decoding<Unit>);

/// The tiles that are decoded and checked together.
#[derive(Debug)]
enum Unit {
    /// A tile of an attribute.
    Values(ValueTile),
    /// The coordinates and times of a tile of cells.
    Cells(StoredCells),
}

impl CellChecks {
    pub(super) fn new(array: &TileDbReader, progress: &Arc<Progress>) -> Self {
        let mut names = vec![STALE];
        if array.tiledb().schema().kind == ArrayKind::Sparse {
            names.extend(sparse::CHECKS);
        }
        Self(Decoding::new(array.objects(), progress, DECODE, &names))
    }

    /// Queues a tile of an attribute for decoding.
    pub(super) async fn add_values(&mut self, tile: StoredTile) -> Result<()> {
        self.0.add(Unit::Values(ValueTile(tile))).await
    }

    /// Queues the coordinates and times of a tile of cells for decoding.
    pub(super) async fn add_cells(&mut self, cells: StoredCells) -> Result<()> {
        self.0.add(Unit::Cells(cells)).await
    }

    /// Waits for all decoding. Returns the check of decoding, and those of the cells.
    pub(super) async fn finish(self) -> Result<Vec<Check>> {
        let (decode, cells) = self.0.finish("tile").await?;
        Ok(std::iter::once(decode).chain(cells).collect())
    }
}

impl Unit {
    fn inner(&self) -> &dyn Decodable {
        match self {
            Self::Values(tile) => tile,
            Self::Cells(cells) => cells,
        }
    }
}

impl Decodable for Unit {
    fn count(&self) -> u64 {
        self.inner().count()
    }

    fn requests(&self) -> Vec<Request> {
        self.inner().requests()
    }

    fn decode(
        &self,
        payloads: Vec<Option<Bytes>>,
        memory: Vec<u8>,
        scratch: &mut Scratch,
    ) -> Result<(Findings, Vec<u8>)> {
        self.inner().decode(payloads, memory, scratch)
    }

    fn located(&self, finding: Finding) -> Finding {
        self.inner().located(finding)
    }
}
