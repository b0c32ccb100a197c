//! Byte sources, and memory limits.

/// Faults of servers and networks.
mod faults;
/// Damaged files in object stores.
mod hostile_objects;
/// An HTTP server for one object.
mod http;
/// Replies that are not what was asked for.
mod lies;
/// Large chunk indexes, and memory limits.
mod limits;
/// Files that change while they are read.
mod local_changes;
/// Faults of disks.
mod local_faults;
/// Queries under a memory limit, and files that change meanwhile.
mod memory;
/// Bytes of NetCDF and HDF5 files that are read.
#[cfg(feature = "hdf5")]
mod netcdf_bytes;
/// The server of the tests and benches of object stores.
mod object_server;
/// Operations on arrays in stores.
mod operations;
/// A memory pool that records its peak.
#[allow(dead_code, reason = "benches need the rest of it")]
#[path = "../../../benches/common/peak_pool.rs"]
mod peak_pool;
/// Requests to object stores.
pub(crate) mod remote;
/// Streams that are dropped.
mod remote_cancelled;
/// Many queries at a time.
mod remote_crowd;
/// Remote files that are larger than the memory pool.
mod remote_memory;
/// Scans of arrays in object stores.
mod remote_scans;
/// A server of another project that speaks S3.
mod s3_server;
/// Every kind of byte source.
mod sources;
/// Names without secrets, and places that remote files may not name.
mod trust;
/// Zarr stores that change between two partitions of a query.
mod zarr_partitions;
/// Zarr stores that are half of one, that change, or whose metadata is too large.
mod zarr_stores;
