//! The interface that a format with sparse arrays offers to scans.
//!
//! ```text
//!   fragments ──bounds──▶ rectangles of tiles ──(a scan chooses)──▶ tiles
//!   tile, columns ──locate──▶ StoredChunk per column ──fetch──▶ payloads ──▶ Tile
//!   tile ──times, kept──▶ which of its cells are visible
//! ```
//!
//! Columns are numbered as in the table: dimensions, and then variables.

use std::fmt::Debug;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::buffer::BooleanBuffer;
use async_trait::async_trait;

use super::cell_keys::CellKeys;
use crate::error::Result;
use crate::format::{StoredChunk, Zones};
use crate::tile::{ObjectVersion, Objects, Tile};

/// A tile of a sparse array: the numbers of its fragment, and of the tile in the fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TileNumber {
    /// The number of the fragment; later fragments have greater numbers.
    pub fragment: usize,
    /// The number of the tile in the fragment.
    pub tile: u64,
}

/// A fragment of a sparse array: the cells that one write, or a consolidation of several, added.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SparseFragment {
    /// The number of its tiles.
    pub tiles: u64,
    /// The number of cells in a full tile. All tiles but the last are full.
    pub tile_cells: u64,
    /// The number of cells in the last tile.
    pub last_tile_cells: u64,
    /// When its cells were written, unless it stores the time of each.
    pub time: u64,
    /// Whether it stores the time of each cell. Then it may hold several cells of the same coordinates.
    pub has_times: bool,
    /// Whether cells of it may lie outside the time window of the table.
    pub may_be_outside: bool,
    /// Whether cells of it may be deleted.
    pub may_be_deleted: bool,
}

impl SparseFragment {
    /// Returns a fragment whose cells were all written at `time`, in the time window of the table, and are not deleted.
    pub fn new(tiles: u64, tile_cells: u64, last_tile_cells: u64, time: u64) -> Self {
        Self {
            tiles,
            tile_cells,
            last_tile_cells,
            time,
            has_times: false,
            may_be_outside: false,
            may_be_deleted: false,
        }
    }

    /// Returns the number of cells of a tile.
    pub fn cells_of(&self, tile: u64) -> u64 {
        let is_last = tile.checked_add(1) == Some(self.tiles);
        if is_last { self.last_tile_cells } else { self.tile_cells }
    }

    /// Returns the number of cells; the greatest number if there are 2⁶⁴ or more.
    pub fn cells(&self) -> u64 {
        let full = self.tiles.saturating_sub(1).saturating_mul(self.tile_cells);
        if self.tiles == 0 { 0 } else { full.saturating_add(self.last_tile_cells) }
    }
}

/// The rectangles of some tiles, or of some fragments.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TileBounds {
    /// Per dimension, the least coordinate of each tile, in the type of the dimension's column. NULL where it
    /// is not known.
    pub least: Vec<ArrayRef>,
    /// The greatest coordinates, in the same form.
    pub greatest: Vec<ArrayRef>,
}

impl TileBounds {
    /// Returns rectangles from the least and the greatest coordinates per dimension.
    pub fn new(least: Vec<ArrayRef>, greatest: Vec<ArrayRef>) -> Self {
        Self { least, greatest }
    }
}

/// The times at which the cells of a tile were written.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CellTimes {
    /// The time of each cell; the unit is the format's own.
    pub times: Vec<u64>,
    /// A bit per cell: whether it lies in the time window of the table.
    pub inside: BooleanBuffer,
}

impl CellTimes {
    /// Returns the time of each cell, and whether it lies in the time window of the table.
    pub fn new(times: Vec<u64>, inside: BooleanBuffer) -> Self {
        Self { times, inside }
    }
}

/// The source of a sparse array's tiles.
#[async_trait]
pub trait SparseSource: Debug + Send + Sync {
    /// Returns the objects that the array is stored in.
    fn objects(&self) -> &Arc<Objects>;

    /// Returns the versions of the objects that opening the array has read, so that another process can tell whether it
    /// opens the same. Empty if nothing tells versions apart. Objects that are chunks need not be among them.
    fn versions(&self) -> Vec<ObjectVersion> {
        self.objects().versions()
    }

    /// Returns the fragments, the oldest first.
    fn fragments(&self) -> &[SparseFragment];

    /// Whether several cells may have the same coordinates. If not, the cell that was written last is the only
    /// one that a table shows.
    fn allows_duplicates(&self) -> bool;

    /// Returns the only coordinates that the table shows, as one rectangle; `None` for all.
    ///
    /// # Errors
    /// As [`SparseSource::fragment_bounds`].
    fn limits(&self) -> Result<Option<TileBounds>> {
        Ok(None)
    }

    /// Returns the dimensions by which the cells of a fragment are sorted, the first most significant. `None`
    /// if the order of the cells is another one.
    fn sorted_by(&self, fragment: usize) -> Option<Vec<usize>>;

    /// Returns the rectangle around each of `fragments`.
    ///
    /// # Errors
    /// `Unsupported` if a coordinate is beyond the type of its column.
    fn fragment_bounds(&self, fragments: &[usize]) -> Result<TileBounds>;

    /// Returns the rectangles of the tiles of each of `fragments`. Reads them if needed, and keeps them.
    ///
    /// # Errors
    /// `Corrupt` or `Io` if they cannot be read.
    async fn tile_bounds(&self, fragments: &[usize]) -> Result<Vec<Arc<TileBounds>>>;

    /// Reads what is needed to locate `columns` of tiles of `fragments`, and to know which cells are visible.
    /// Optional: [`SparseSource::locate`] reads what is missing, fragment by fragment.
    ///
    /// # Errors
    /// As [`SparseSource::locate`].
    async fn prepare(&self, fragments: &[usize], columns: &[usize]) -> Result<()> {
        let _ = (fragments, columns);
        Ok(())
    }

    /// Locates `columns` of a tile. A variable that the fragment does not have has no layers.
    ///
    /// # Errors
    /// `Corrupt` or `Io` if the locations cannot be read; `Unsupported` if a fragment has cells of another
    /// type.
    async fn locate(&self, tile: TileNumber, columns: &[usize]) -> Result<Vec<StoredChunk>>;

    /// Returns the times of the cells of a tile; `None` if the fragment has one time for all.
    ///
    /// # Errors
    /// As [`SparseSource::locate`], and `Corrupt` if the times cannot be decoded.
    async fn times(&self, tile: TileNumber) -> Result<Option<CellTimes>>;

    /// Returns a bit per cell of a tile: whether no deletion hides it. `None` if none is deleted. `times` is
    /// the result of [`SparseSource::times`].
    ///
    /// # Errors
    /// As [`SparseSource::times`].
    async fn kept(
        &self,
        tile: TileNumber,
        times: Option<&CellTimes>,
    ) -> Result<Option<BooleanBuffer>>;

    /// Returns the places of cells in the global order of the array. `dimensions` are the decoded
    /// coordinates, one tile per dimension.
    ///
    /// # Errors
    /// `Internal` if the tiles are not those of the dimensions.
    fn keys(&self, dimensions: &[Tile]) -> Result<CellKeys>;

    /// Returns, per tile of a fragment, a key that is not greater than those of its cells. `None` if the
    /// rectangles do not give one. The rectangles were read by [`SparseSource::tile_bounds`].
    ///
    /// # Errors
    /// As [`SparseSource::keys`].
    fn least_keys(&self, fragment: usize) -> Result<Option<CellKeys>>;

    /// Returns the stored statistics of a variable in `fragments`, by number of the tile. `None` if there are
    /// none that can be trusted, or if reading them costs too much compared with `bytes_to_read`.
    async fn zones(
        &self,
        value: usize,
        fragments: &[usize],
        bytes_to_read: u64,
    ) -> Option<Vec<Option<Arc<dyn Zones>>>>;
}
