#![doc = include_str!("../README.md")]

pub mod conventions;
#[cfg(feature = "hdf5")]
pub mod hdf5;
pub mod hierarchy;
mod netcdf;
pub mod netcdf3;
mod strided;
#[cfg(feature = "hdf5")]
mod write;

use std::sync::Arc;

use gridfusion_core::Result;
use gridfusion_core::read::{Dataset, Opener};

pub use netcdf::NetCdf;
#[cfg(feature = "hdf5")]
pub use write::{NetcdfEncoding, NetcdfVersion, NetcdfWriter};

/// Opens a NetCDF or HDF5 file, and reads its metadata.
///
/// An [`Opener`] has options, object stores and several formats.
///
/// # Errors
/// `Usage` if there is none; `Corrupt`, `Unsupported` or `Io` if the metadata cannot be read.
pub async fn open(location: &str) -> Result<Dataset> {
    Opener::new(vec![Arc::new(NetCdf)]).open(location).await
}
