//! NetCDF files: the classic format (NetCDF-3), and NetCDF-4 and other HDF5 files with the feature `hdf5`.
//!
//! The bytes are parsed in `crate::netcdf3` and `crate::hdf5`, and `crate::conventions` makes tables of
//! the variables.

mod classic;
#[cfg(test)]
#[cfg(feature = "hdf5")]
mod compounds;
#[cfg(feature = "hdf5")]
mod conversion;
#[cfg(feature = "hdf5")]
mod derived;
mod format;
#[cfg(feature = "hdf5")]
mod growing;
#[cfg(feature = "hdf5")]
mod hdf5;
#[cfg(feature = "hdf5")]
mod other_files;
#[cfg(feature = "hdf5")]
mod pairs;
#[cfg(feature = "hdf5")]
mod resolve;
#[cfg(feature = "hdf5")]
mod virtual_files;

pub use format::NetCdf;
