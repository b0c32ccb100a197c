//! `COPY … TO` arrays.

mod faults;
#[cfg(feature = "hdf5")]
mod netcdf;
mod zarr;
