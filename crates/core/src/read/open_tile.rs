//! [`OpenTile`]: a tile of a sparse array of which some columns have been read; [`Tiles`] reads them.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanBufferBuilder, RecordBatch, RecordBatchOptions};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{Float32Type, Float64Type, SchemaRef};

use crate::array::{CellKeys, CellTimes, SparseArray, TileNumber, failed_to};
use crate::error::{Error, Result};
use crate::format::{Scratch, StoredChunk};
use crate::tile::{Request, Tile};

/// A tile, and the cells of it that are still selected.
#[derive(Debug)]
pub(super) struct OpenTile {
    tile: TileNumber,
    rows: usize,
    /// The cells that are left; `None` for all.
    selected: Option<BooleanBuffer>,
    /// The times of the cells, if they were read.
    times: Option<CellTimes>,
    /// Per column of the array, its values once they are read.
    columns: Vec<Option<ArrayRef>>,
}

impl OpenTile {
    pub(super) fn tile(&self) -> TileNumber {
        self.tile
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn times(&self) -> Option<&CellTimes> {
        self.times.as_ref()
    }

    pub(super) fn selected(&self) -> Option<&BooleanBuffer> {
        self.selected.as_ref()
    }

    /// Returns the number of cells that are left.
    pub(super) fn count(&self) -> usize {
        self.selected.as_ref().map_or(self.rows, BooleanBuffer::count_set_bits)
    }

    /// Leaves only the cells that are in `cells`.
    pub(super) fn restrict(&mut self, cells: &BooleanBuffer) {
        self.selected = Some(match &self.selected {
            Some(selected) => selected & cells,
            None => cells.clone(),
        });
    }

    /// Leaves out some cells.
    pub(super) fn leave_out(&mut self, cells: &[usize]) {
        if !cells.is_empty() {
            let mut stay = BooleanBufferBuilder::new(self.rows);
            stay.append_n(self.rows, true);
            cells.iter().for_each(|&cell| stay.set_bit(cell, false));
            self.restrict(&stay.finish());
        }
    }

    /// Returns the values of a column, which has been read.
    pub(super) fn column(&self, column: usize) -> Result<&ArrayRef> {
        let values = self.columns.get(column).and_then(Option::as_ref);
        values.ok_or_else(|| Error::internal("a column of a tile that was not read"))
    }

    /// Returns all cells of some columns, which have been read.
    pub(super) fn batch(&self, schema: &SchemaRef, columns: &[usize]) -> Result<RecordBatch> {
        let columns = columns.iter().map(|&column| self.column(column).map(Arc::clone));
        let rows = RecordBatchOptions::new().with_row_count(Some(self.rows));
        let columns = columns.collect::<Result<_>>()?;
        let batch = RecordBatch::try_new_with_options(Arc::clone(schema), columns, &rows);
        batch.map_err(failed_to("make a record batch"))
    }

    /// Returns the tile with the keys of the cells that are left, ascending, and the cells in that order. `keys` has a key
    /// per cell of the tile.
    ///
    /// # Errors
    /// `Unsupported` if a coordinate is NaN, which equals no other.
    pub(super) fn in_order(
        self,
        array: &SparseArray,
        keys: &CellKeys,
    ) -> Result<(Self, CellKeys, Vec<u32>)> {
        if self.holds_nan(array.rank()) {
            let (tile, fragment) = (self.tile.tile, self.tile.fragment);
            let message = format!(
                "tile {tile} of fragment {fragment} has a NaN coordinate, and the array has fragments to compare with it"
            );
            return Err(array.objects().named(Error::unsupported(message)));
        }
        let mut cells: Vec<u32> = match &self.selected {
            Some(selected) => selected.set_indices().map(|cell| cell as u32).collect(),
            None => (0..self.rows as u32).collect(),
        };
        // Cells of the same coordinates keep their order.
        cells.sort_by(|a, b| keys.compare(*a as usize, keys, *b as usize));
        let keys = keys.take(&cells.iter().map(|&cell| cell as usize));
        Ok((self, keys, cells))
    }

    /// Whether a coordinate is NaN.
    fn holds_nan(&self, rank: usize) -> bool {
        self.columns.iter().take(rank).flatten().any(|values| {
            let doubles = values.as_primitive_opt::<Float64Type>();
            let floats = values.as_primitive_opt::<Float32Type>();
            doubles.is_some_and(|it| it.values().iter().any(|value| value.is_nan()))
                || floats.is_some_and(|it| it.values().iter().any(|value| value.is_nan()))
        })
    }
}

/// A reader of columns of tiles.
#[derive(Debug)]
pub(super) struct Tiles {
    array: Arc<SparseArray>,
    scratch: Scratch,
}

impl Tiles {
    pub(super) fn new(array: &Arc<SparseArray>) -> Self {
        Self { array: Arc::clone(array), scratch: Scratch::default() }
    }

    pub(super) fn array(&self) -> &Arc<SparseArray> {
        &self.array
    }

    /// Returns a tile of which nothing has been read.
    pub(super) fn open(&self, tile: TileNumber) -> OpenTile {
        let cells = self.array.source().fragments()[tile.fragment].cells_of(tile.tile);
        let rows = usize::try_from(cells).unwrap_or(usize::MAX);
        let columns = vec![None; self.array.schema().fields().len()];
        OpenTile { tile, rows, selected: None, times: None, columns }
    }

    /// Reads those of `columns` that are missing, and returns the tiles that were read.
    pub(super) async fn read(
        &mut self,
        open: &mut OpenTile,
        columns: &[usize],
    ) -> Result<Vec<Tile>> {
        let missing = columns.iter().copied().filter(|&column| open.columns[column].is_none());
        let mut missing: Vec<usize> = missing.collect();
        missing.sort_unstable();
        missing.dedup();
        if missing.is_empty() {
            return Ok(vec![]);
        }
        let Self { array, scratch } = self;
        let stored = array.source().locate(open.tile, &missing).await?;
        let fetched = array.objects().fetch(&Request::for_chunks(&stored)).await?;
        let mut payloads = fetched.into_iter().flatten();
        let decode = missing.iter().zip(&stored).map(|(&column, stored)| {
            array.decode(open.tile, column, stored, &mut payloads, scratch)
        });
        let tiles = decode.collect::<Result<Vec<Tile>>>();
        // A file that is being written looks damaged. If it has changed, that is the error.
        let locations = stored.iter().flat_map(StoredChunk::payloads).map(|it| it.at.clone());
        array.objects().used(&locations.collect::<Vec<_>>(), false)?;
        let tiles = tiles?;
        for (&column, decoded) in missing.iter().zip(&tiles) {
            open.columns[column] = Some(array.values(open.tile, column, decoded)?);
        }
        Ok(tiles)
    }

    /// Leaves only cells in the time window of the array. With `always`, reads the times even if all cells are in it.
    pub(super) async fn select_times(&self, open: &mut OpenTile, always: bool) -> Result<()> {
        let source = self.array.source();
        let fragment = &source.fragments()[open.tile.fragment];
        // Deletions compare times, too.
        let needed = fragment.may_be_outside || fragment.may_be_deleted || always;
        if open.count() == 0 || !fragment.has_times || !needed {
            return Ok(());
        }
        let times = source.times(open.tile).await?;
        if let Some(times) = times.as_ref().filter(|_| fragment.may_be_outside) {
            open.restrict(&times.inside);
        }
        open.times = times;
        Ok(())
    }

    /// Leaves out deleted cells.
    pub(super) async fn leave_out_deleted(&self, open: &mut OpenTile) -> Result<()> {
        let source = self.array.source();
        if open.count() > 0
            && source.fragments()[open.tile.fragment].may_be_deleted
            && let Some(kept) = source.kept(open.tile, open.times.as_ref()).await?
        {
            open.restrict(&kept);
        }
        Ok(())
    }
}
