//! Index arithmetic of chunked N-dimensional arrays: no bytes, no labels, no I/O.
//!
//! Words, used with the same meaning everywhere in this crate:
//!
//! - *shape*: elements per axis of the array; *chunk shape*: elements per axis of a full chunk;
//! - *chunk grid*: chunks per axis, `ceil(shape / chunk shape)`; *chunk coordinates*: a place in it;
//! - *edge chunk*: one that the array's end clips; its *extents* are what is left of it;
//! - *cell*: one element; *index*: a 0-based position on an axis;
//! - *selection*: per axis a sorted set of indices; the selected cells are their cross product.
//!
//! Everything is in row-major (C) order: the last axis varies fastest.
//!
//! ```text
//! shape 5 x 7, chunk shape 2 x 3      chunk grid 3 x 3; the edge chunk (2, 2) has extents 1 x 1
//!
//!            0 1 2 | 3 4 5 | 6
//!          0 . . . | . . . | .        selection  axis 0: {1, 4}, axis 1: {2, 3, 4}
//!          1 . . # | # # . | .        marks 6 cells in 4 chunks
//!            ------+-------+--
//!          2 . . . | . . . | .
//!          3 . . . | . . . | .
//!            ------+-------+--
//!          4 . . # | # # . | .
//! ```

mod chunk_grid;
mod chunk_task;
mod cuts;
mod order;
mod selection;

pub use chunk_grid::ChunkGrid;
pub use chunk_task::ChunkTask;
pub use cuts::Cuts;
pub use order::{for_each_run, ravel, unravel};
pub use selection::{AxisSelection, Selection};

/// The largest number of axes an array may have.
pub const MAX_RANK: usize = 8;
