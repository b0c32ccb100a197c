#![doc = include_str!("../README.md")]

#[cfg(target_endian = "big")]
compile_error!(
    "gridfusion passes stored little-endian elements to Arrow unchanged and needs a little-endian target"
);

pub mod array;
mod byte_range;
#[cfg(feature = "datafusion")]
mod datafusion;
pub mod error;
pub mod format;
pub mod grid;
pub mod io;
#[cfg(test)]
mod layers;
pub mod merge;
pub mod options;
pub mod plan;
pub mod read;
pub mod reduce;
pub mod source;
pub mod tile;
pub mod verify;
pub mod write;

pub use error::{Error, ErrorKind, Result};
