//! The codecs of chunks that Zarr and HDF5 share, for reading; Blosc also for writing.
//!
//! A chunk goes through a list of codecs before it is stored, and [`Pipeline`] undoes them in reverse. Each
//! [`Step`] takes a whole buffer and makes a whole buffer; checksums only cut a few bytes off it:
//!
//! ```text
//!             crc32c             zlib                 shuffle 4
//!   stored ──(cut off)── stored ───────▶ buffer 0 ─────────────▶ tile
//!                                        buffer 1: for a third step; then buffer 0 again
//! ```
//!
//! The memory of the buffers is kept from tile to tile. The length of the tile is known, and a step such as
//! `shuffle` keeps the length. So each step knows the greatest length of its output, and cuts off a bomb. No step reserves memory for a length that the stored bytes merely claim, if
//! it is more than 64 times what is stored: such memory grows with the output, or the claim is checked first.
//!
//! Formats of the codecs: the documentation and the source of numcodecs, the Zarr v3 codec specifications, and
//! the registry of HDF5 filters. The modules of single codecs name further specifications.

mod bitshuffle;
mod blosc;
mod blosc_encoder;
mod blosclz;
mod checksum;
mod crc32c;
mod delta;
mod lz4;
mod lzf;
mod output;
mod pipeline;
mod scale_offset;
mod step;
mod step_memory;
mod stream;
mod variable;
mod words;

#[cfg(test)]
mod tests;

pub use bitshuffle::BlockCompressor;
pub use blosc_encoder::{BloscCompressor, BloscEncoder, BloscShuffle};
pub use checksum::ChecksumPlace;
pub use crc32c::crc32c;
pub use pipeline::Pipeline;
pub use step::{Step, StepDecoder};
