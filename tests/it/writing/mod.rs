//! `COPY … TO` arrays.

mod faults;
mod zarr;
