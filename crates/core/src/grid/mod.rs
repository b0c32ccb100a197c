//! Index arithmetic for chunked N-dimensional arrays, without bytes, labels or I/O.
//!
//! These words have the same meaning everywhere in this crate:
//!
//! - *shape*: positions per axis of the array. *chunk shape*: positions per axis of a full chunk.
//! - *chunk grid*: chunks per axis, `ceil(shape / chunk shape)`. *chunk coordinates*: a position in
//!   this grid.
//! - *edge chunk*: a chunk that the array's end clips. *extents*: positions per axis of a chunk after
//!   clipping.
//! - *cell*: one position of the array. *index*: the 0-based number of a position along an axis.
//! - *selection*: per axis a sorted set of indices. The selected cells are the cross product of these
//!   sets.
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

mod axis_chunks;
mod axis_names;
mod chunk_grid;
mod chunk_task;
mod order;
mod selection;

pub use axis_chunks::AxisChunks;
pub use axis_names::axis_names;
pub use chunk_grid::ChunkGrid;
pub use chunk_task::ChunkTask;
pub use order::{for_each_run, ravel, unravel};
pub use selection::{AxisSelection, Selection};

/// The largest number of axes an array may have.
pub const MAX_RANK: usize = 8;
