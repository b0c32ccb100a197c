//! Reading arrays in a program: labels, record batches and typed cells of a selection, without SQL.
//!
//! ```text
//!   Opener ──open("x.zarr")──▶ Dataset ──array("t2m")──▶ ArrayReader ─┬─ dims()      names and labels
//!   formats, object stores                                │  ▲       ├─ batches()   Arrow, a row per cell
//!                                             with_range, with_labels └─ cells()     an N-dimensional array
//! ```
//!
//! A reader touches only the chunks of its selection, as a query does. The crates of the formats have a function `open`
//! for their own files; an [`Opener`] of several formats recognises the format of a place.

mod array_reader;
mod cells;
mod chunks;
mod dataset;
mod open_tile;
mod opener;
mod single_value;
mod sparse_reader;
#[cfg(test)]
mod tests;

pub use array_reader::ArrayReader;
pub use cells::Cells;
pub use dataset::Dataset;
pub use opener::Opener;
pub use single_value::single_value;
pub use sparse_reader::SparseReader;
