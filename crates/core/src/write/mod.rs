//! Arrays to be written: their labels and variables, and the cells of their chunks, as Arrow arrays. No I/O.
//!
//! ```text
//!   NewArray     time, lat ─▶ labels          t2m, tp ─▶ types, fill values          chunks of 24 × 90
//!   NewChunk     t2m, chunk (3, 0) ─▶ cells, row by row
//!        │
//!        ▼
//!   format::Writer ─▶ writes ─▶ tile::WriteSession ─▶ io::WritableFolder
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `new_array` | the description of an array |
//! | `boxes` | boxes of cells out of larger ones |

mod boxes;
mod new_array;

pub use boxes::cells_of_box;
pub use new_array::{Attributes, NewArray, NewChunk, NewDimension, NewVariable};
