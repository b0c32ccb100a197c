//! NetCDF classic files: CDF-1, CDF-2 (64-bit offsets) and CDF-5 (64-bit data).
//!
//! A file is a header and the values of its variables, big-endian and without compression. Variables of the
//! record dimension lie interleaved at the end, one record after another:
//!
//! ```text
//!   ├ header ┼ lat ┼ lon ┼ time[0] ┼ t2m[0] ┼ time[1] ┼ t2m[1] ┼ … ┤
//!                  fixed ┘└ record 0 ───────┘└ record 1 ──────┘
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `open` | the machine that reads the header |
//! | `reader`, `header`, `attributes`, `external_type` | the header's bytes |
//! | `version` | the first bytes |
//! | `extents` | the bytes of each variable, and the check that they do not overlap |
//! | `chunk_shape` | the chunks that a variable is read in |
//! | `file` | an open file: its hierarchy, and the place of each chunk |
//! | `interleaved` | the decoder of records with gaps between them |
//!
//! The format is specified in "The NetCDF Classic Format Specification" (appendix B of the NetCDF user's guide)
//! and in "CDF-5 file format specification" of PnetCDF.
//!
//! Variables of small records agree on their records per chunk, and so on the ranges that they read. Long records are
//! read one by one. Overlapping variables are refused, because later records overwrite the earlier.

mod attributes;
mod chunk_shape;
mod extents;
mod external_type;
mod file;
mod header;
mod interleaved;
mod open;
mod reader;
#[cfg(test)]
mod real_files;
#[cfg(test)]
mod testing;
mod version;

pub use file::NetCdf3File;
pub use open::OpenNetCdf3;
pub use version::{MAGIC, Version, is_netcdf3};
