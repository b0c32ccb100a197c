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
//! | `append_target` | the trait of an array that is there |
//! | `appended_labels` | the places of new rows in an array that is there |
//! | `array_writer` | the trait of a writer of arrays |
//! | `new_array` | the description of an array |
//! | `stored_type` | the types of stored cells |
//! | `threads` | work on several chunks |
//! | `boxes` | boxes of cells out of larger ones |
//! | `changed_cells` | the cells of an array that rows change |
//! | `chunk_buffers` | chunks that are put together from boxes or rows |
//! | `cell_buffer` | the cells of one of these chunks |

mod append_target;
mod appended_labels;
mod array_writer;
mod boxes;
mod cell_buffer;
mod changed_cells;
mod chunk_buffers;
mod new_array;
mod stored_type;
mod threads;

pub use append_target::{AppendTarget, ExistingCells, TargetDimension};
pub use appended_labels::AppendedLabels;
pub use array_writer::ArrayWriter;
pub use boxes::{cells_of_box, cells_of_chunks, for_each_row, lens};
pub use changed_cells::ChangedCells;
pub use chunk_buffers::{BoxAxis, CellRows, ChunkBuffers};
pub use new_array::{Attributes, NewArray, NewChunk, NewDimension, NewVariable};
pub use stored_type::{BadCell, StoredType};
pub use threads::in_threads;
