//! Sparse TileDB arrays as sources of tiles.
//!
//! ```text
//!   source.rs       the fragments, their rectangles, and the locations of tiles
//!   visibility.rs   which cells of a tile the time window and the deletions leave
//!   conditions.rs   evaluates delete conditions on decoded cells
//!   order.rs        the places of cells in the global order
//!   hilbert.rs      the Hilbert curve, one of the orders
//! ```

mod conditions;
mod hilbert;
mod hilbert_table;
mod order;
mod source;
#[cfg(test)]
mod tests;
mod visibility;

pub(super) use order::GlobalOrder;
pub(super) use source::sparse_array;
