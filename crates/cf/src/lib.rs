//! NetCDF and HDF5 files as arrays, and the CF conventions.

pub mod conventions;
#[cfg(feature = "hdf5")]
pub mod hdf5;
pub mod hierarchy;
mod netcdf;
pub mod netcdf3;

pub use netcdf::NetCdf;
