//! Sparse arrays: which cells a fragment stores, where their tiles are, and which cells were deleted.
//!
//! ```text
//!   rtree.rs       the rectangle of coordinates of each tile of a fragment
//!   blocks.rs      reads R-trees, tile indexes and lists of applied conditions, in one round trip
//!   check_rtree.rs reads R-trees with all their levels, to verify them
//!   statistics.rs  the stored statistics of tiles
//!   condition.rs   the conditions by which cells were deleted
//! ```
//!
//! A sparse fragment has its cells in global order, and cuts them into tiles of `capacity` cells. Tile
//! number `k` of each attribute and of each dimension describes the same cells:
//!
//! ```text
//!   capacity 3     tile 0      tile 1      tile 2
//!   d0   (x)       1  1  4  │  5  5  9  │  9
//!   d1   (y)       2  7  3  │  1  8  2  │  6       R-tree: tile 1 has x 5 to 9, y 1 to 8
//!   a0             A  B  C  │  D  E  F  │  G
//! ```

mod blocks;
mod check_rtree;
mod condition;
mod rtree;
mod statistics;

pub use blocks::{Block, ReadBlocks};
pub use check_rtree::{ReadRTree, StoredRTree};
pub use condition::{Comparison, Condition, DeleteCondition};
pub use rtree::{Coordinates, RTree};
pub use statistics::ReadSparseZones;
