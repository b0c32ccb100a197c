//! The corpus: `.tet` files that other programs wrote, with answers computed by numpy and xarray.
//!
//! `GRIDFUSION_CORPUS` names the directory that holds it; the files are in `tet/files` below. Each
//! test goes on after a failure, and lists all failures at the end.

/// Compares each dataset with numpy's answers.
mod answers;
/// Documents of the reference's query engine as SQL.
mod document;
/// Compares table functions about the files with numpy's answers.
mod facts;
/// The files.
mod files;
/// Compares converted NetCDF files with xarray's answers.
mod netcdf;
/// The package.
mod packages;
/// Queries that the reference engine answered.
mod parity;
/// Bad files: refused with a reason, or read correctly.
mod rejects;
/// Collects failures, and reports them at the end.
mod report;
/// Files as tables.
mod tables;
/// Verifies each file.
mod verify;
/// A climate file as one table.
mod wide;

use files::{corpus, read_json, relative, tet_files};
use report::Report;
use tables::Result;
