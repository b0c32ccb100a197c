//! The checks of fragments: the locations of their tiles and, for sparse ones, their R-trees. Queues the tiles
//! for decoding.

use std::sync::Arc;

use super::cell_checks::{CellChecks, DECODE};
use super::sparse::{FragmentCells, RTREE, StoredCells, rtree_findings};
use super::stored_tile::{StoredTile, located};
use crate::bytes::{ArrayKind, FragmentTiles, RTree};
use crate::reader::TileDbReader;
use gridfusion_core::format::Machine;
use gridfusion_core::tile::drive;
use gridfusion_core::verify::{Check, Decodable, Depth, Finding, Progress, counted};
use gridfusion_core::{Error, ErrorKind, Result};

/// The checks of the fragments of an array, which take the fragments one by one.
#[derive(Debug)]
pub(super) struct FragmentChecks<'a> {
    reader: &'a TileDbReader,
    progress: &'a Progress,
    offsets: Check,
    statistics: Check,
    /// `None` for dense arrays.
    rtree: Option<Check>,
    /// `None` for [`Depth::Structure`].
    cells: Option<CellChecks>,
    /// The number of tiles so far.
    tiles: u64,
}

/// Runs a machine over the objects of an array, unless making it has failed.
pub(super) async fn driven<M: Machine>(
    machine: Result<M>,
    reader: &TileDbReader,
) -> Result<M::Output> {
    drive(machine?, reader.objects()).await
}

impl<'a> FragmentChecks<'a> {
    pub(super) fn new(reader: &'a TileDbReader, depth: Depth, progress: &'a Arc<Progress>) -> Self {
        let is_sparse = reader.tiledb().schema().kind == ArrayKind::Sparse;
        Self {
            reader,
            progress,
            offsets: Check::new("tile_offsets"),
            statistics: Check::new("tile_statistics"),
            rtree: is_sparse.then(|| Check::new(RTREE)),
            cells: (depth == Depth::Cells).then(|| CellChecks::new(reader, progress)),
            tiles: 0,
        }
    }

    /// Checks the tiles of each field of each fragment. The attributes are those of the fragment's own
    /// schema.
    ///
    /// # Errors
    /// `Internal` if a decoding task has failed. All other errors are findings.
    pub(super) async fn each_fragment(&mut self) -> Result<()> {
        let reader = self.reader;
        for (number, fragment) in reader.tiledb().fragments().iter().enumerate() {
            for field in 0..fragment.schema().attributes.len() {
                if let Some(tiles) = self.read_tiles(number, field).await {
                    self.each_value_tile(&tiles).await?;
                }
            }
            if !fragment.coordinate_fields().is_empty() {
                self.each_cell_tile(number).await?;
            }
        }
        Ok(())
    }

    /// Returns the checks in the order of the report. `died` is the error of a decoding task.
    pub(super) async fn finish(self, died: Option<Error>) -> Vec<Check> {
        let failed = |error: Error| vec![Check::new(DECODE).with(Finding::from_error(&error))];
        let decoded = match (self.cells, died) {
            (None, _) => vec![],
            (Some(_), Some(error)) => failed(error),
            (Some(cells), None) => cells.finish().await.unwrap_or_else(failed),
        };
        let offsets = self.offsets.with_detail(counted(self.tiles, "tile"));
        let mut checks = vec![offsets, self.statistics];
        checks.extend(self.rtree);
        for check in decoded {
            // Decoding has compared the rectangles of tiles with their cells.
            match checks.iter_mut().find(|earlier| earlier.name() == check.name()) {
                Some(earlier) => earlier.absorb(check),
                None => checks.push(check),
            }
        }
        checks
    }

    /// Reads the tile index and the statistics of a field. `fragment` is a number in the array, and `field`
    /// one in the fragment.
    async fn read_tiles(&mut self, fragment: usize, field: usize) -> Option<Arc<FragmentTiles>> {
        let reader = self.reader;
        match driven(reader.tiledb().read_tiles(fragment, field), reader).await {
            Ok(tiles) => Some(Arc::new(tiles)),
            Err(error) => {
                let fragment = &reader.tiledb().fragments()[fragment];
                self.progress.advance(fragment.tiles, 0);
                let name = fragment.field(field).map_or("", |field| field.name);
                let finding = Finding::from_error(&error).in_dataset(name);
                // An unsupported tile may be valid, so it is only a warning.
                self.offsets.add(match error.kind() {
                    ErrorKind::Unsupported => finding.into_warning(),
                    _ => finding,
                });
                None
            }
        }
    }

    /// Checks the location of each tile of an attribute and, if requested, queues its cells for decoding.
    async fn each_value_tile(&mut self, tiles: &Arc<FragmentTiles>) -> Result<()> {
        if let Some(error) = tiles.statistics_error() {
            self.statistics.add(Finding::from_error(error).in_dataset(tiles.name()));
        }
        for place in 0..tiles.fragment().tiles {
            let Some(tile) = self.locate(tiles, place) else { continue };
            match &mut self.cells {
                Some(cells) => cells.add_values(tile).await?,
                None => self.progress.advance(1, 0),
            }
        }
        Ok(())
    }

    /// Checks the locations of the coordinates and times of a sparse fragment and, if requested, queues them for
    /// decoding: all tiles of the same cells together.
    async fn each_cell_tile(&mut self, fragment: usize) -> Result<()> {
        let reader = self.reader;
        let of = &reader.tiledb().fragments()[fragment];
        let mut fields = vec![];
        for field in of.coordinate_fields() {
            fields.push(self.read_tiles(fragment, field).await);
        }
        let rectangles = self.read_rectangles(fragment).await;
        let shared = Arc::new(FragmentCells::new(reader.tiledb(), fragment, rectangles));
        for place in 0..of.tiles {
            let mut stored = StoredCells::new(&shared, place);
            for tiles in &fields {
                stored.push(tiles.as_ref().and_then(|tiles| self.locate(tiles, place)));
            }
            match &mut self.cells {
                Some(cells) if stored.count() > 0 => cells.add_cells(stored).await?,
                _ => self.progress.advance(stored.count(), 0),
            }
        }
        Ok(())
    }

    /// Locates a tile. An error is a finding.
    fn locate(&mut self, tiles: &Arc<FragmentTiles>, place: u64) -> Option<StoredTile> {
        self.tiles += 1;
        match StoredTile::locate(tiles, place) {
            Ok(tile) => Some(tile),
            Err(error) => {
                self.offsets.add(located(tiles, place, Finding::from_error(&error)));
                self.progress.advance(1, 0);
                None
            }
        }
    }

    /// Reads and checks the R-tree of a sparse fragment. Returns the rectangles of its tiles, if they could be
    /// read.
    async fn read_rectangles(&mut self, fragment: usize) -> Option<RTree> {
        let reader = self.reader;
        let of = &reader.tiledb().fragments()[fragment];
        if of.tiles == 0 {
            return None;
        }
        let (findings, rectangles) =
            match driven(reader.tiledb().read_rtree(fragment), reader).await {
                Ok(mut rtree) => (rtree_findings(of, &rtree), rtree.levels.pop()),
                Err(error) => (vec![Finding::from_error(&error)], None),
            };
        if let Some(check) = &mut self.rtree {
            check.extend(findings);
        }
        rectangles
    }
}
