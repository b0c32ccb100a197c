//! Zarr stores, NetCDF and HDF5 files that other programs wrote, cell by cell against what xarray reads.
//!
//! `tests/data/foreign` has a fixed set, with its own README. `GRIDFUSION_DATASETS` names a folder with further
//! datasets, which `random_datasets.py`, `chunk_indexes.py` and `real_files.py` in `tests/data/foreign` write and fetch.

/// Cells as text, and their comparison.
mod cell;
/// Coordinates as columns.
mod coordinates;
/// Descriptions.
mod describing;
/// DuckDB as an oracle of SQL.
mod duckdb;
/// External files of HDF5.
#[cfg(feature = "hdf5")]
mod external_files;
/// Damaged stores.
mod hostile;
/// Lists of variables, with the files of their expected cells.
mod manifest;
/// The options of these formats.
mod options;
/// Ragged arrays.
#[cfg(feature = "hdf5")]
mod ragged;
/// Tables of variables.
mod tables;
/// Icechunk repositories, zip files and references in Parquet.
mod versions;
/// Virtual datasets of HDF5.
#[cfg(feature = "hdf5")]
mod virtual_files;
mod zarr_writer;
