//! Writing new NetCDF files.
//!
//! ```text
//!   x.nc   dimensions   time = 24, lat = 90
//!          time(time)                        labels: a coordinate variable per dimension
//!          t2m(time, lat)                    _FillValue, units, …; in NetCDF-4, chunks that are shuffled and deflated
//! ```
//!
//! The file is put together in memory, so it must not be larger than [`NetcdfEncoding::max_bytes`]. It appears when it is complete.
//!
//! | file | contents |
//! |---|---|
//! | `writer` | the chunks of an array, and the file |
//! | `encoding` | versions and compression |
//! | `limits` | names, lengths and bytes that files cannot have |
//! | `variable` | one variable of a file |
//!
//! Facts: the NetCDF User's Guide, the CF conventions, and files that xarray and netCDF-C wrote.

mod encoding;
mod limits;
#[cfg(test)]
mod tests;
mod variable;
mod writer;

pub use encoding::{NetcdfEncoding, NetcdfVersion};
pub use writer::NetcdfWriter;
