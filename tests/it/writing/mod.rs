//! `COPY … TO` arrays.

mod zarr;
