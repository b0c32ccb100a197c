//! Sparse arrays: arrays that store single cells instead of a full grid. A table has a row per stored cell.
//!
//! ```text
//!   SparseArray    columns: dimensions, then variables
//!     └ SparseSource    fragments: what one write, or a consolidation, added
//!         └ tiles       cells in global order; one payload per column; a rectangle of coordinates
//! ```
//!
//! A fragment is a list of cells, and may hold cells that a later one replaces. [`CellRules`] gives what a
//! scan must know to show each cell once.
//!
//! There is no grid, so only tiles, payloads and columns are shared with grids: `SparseArray` takes the place of
//! `GridArray`, and `SparseSource` that of `ChunkSource`. A scan knows no format.

mod cell_keys;
mod sparse_array;
mod sparse_source;
mod stored_numbers;

pub use cell_keys::{CellKeys, KeyColumn};
pub use sparse_array::SparseArray;
pub use sparse_source::{CellTimes, SparseFragment, SparseSource, TileBounds, TileNumber};
pub use stored_numbers::StoredNumbers;
