//! `COPY … TO` arrays.

mod append;
mod append_faults;
mod copies;
mod declared;
mod faults;
mod inserts;
mod merges;
#[cfg(feature = "hdf5")]
mod netcdf;
mod overwrite;
mod tet;
#[cfg(feature = "tiledb")]
mod tiledb;
mod zarr;
