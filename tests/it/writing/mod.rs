//! `COPY … TO` arrays.

mod append;
mod append_faults;
mod blosc;
mod copies;
mod declared;
mod faults;
mod finer_times;
mod groups;
mod inserts;
mod merges;
#[cfg(feature = "hdf5")]
mod netcdf;
mod overwrite;
mod rows_in_order;
mod sides;
mod tet;
mod tet_packages;
#[cfg(feature = "tiledb")]
mod tiledb;
mod updates;
mod zarr;
mod zarr_version_2;
