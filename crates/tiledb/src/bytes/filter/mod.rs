//! TileDB's filter pipelines, mostly in reverse: from the bytes of a stored tile to its cells.
//!
//! A writer cuts a tile into chunks and passes each chunk through every filter of a [`Pipeline`]. Next
//! to the data, each filter stores metadata that its inverse needs:
//!
//! ```text
//!   tile   ├ chunk count ┼ chunk ┼ chunk ┼ … ┤
//!                            │
//!   chunk  ├ lengths ┼ metadata ┼ data ┤
//!                        │        │       the last filter's inverse comes first
//!               ┌────────┴────────┴──┐
//!               │ compressor, cipher │  the metadata lists parts of the data: some unpack to the
//!               └─┬────────────────┬─┘  metadata of the filters before, the others to their data
//!           metadata             data
//!               ┌─┴────────────────┴─┐
//!               │ any other filter   │  takes its metadata from the front, turns data into data
//!               └─┬────────────────┬─┘
//!             (empty)            cells, in their place in the decoded tile
//! ```
//!
//! `plan` chooses the inverses once per field. [`TileCodec`] runs them chunk by chunk, in memory that the
//! caller lends. The inverses, from slices to slices, have one module per kind of filter.
//!
//! [`TileEncoder`] runs filters in the direction of writing.

mod checksum;
mod chunk;
mod crypto;
mod delta;
mod encode_words;
mod encoder;
mod parts;
mod pipeline;
mod plan;
mod run_length;
mod scale;
mod segments;
mod shuffle;
mod stage;
mod strings;
mod tile;
mod window;
mod word;

#[cfg(test)]
mod forward;
#[cfg(test)]
mod tests;

pub use crypto::EncryptionKey;
pub(crate) use encoder::TileEncoder;
pub(crate) use pipeline::Filter;
pub use pipeline::Pipeline;
pub(crate) use plan::Field;
pub(in crate::bytes) use plan::drops_offsets;
pub use tile::{FilterBuffers, TileCodec};
