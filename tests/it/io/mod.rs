//! Byte sources, and memory limits.

/// Faults of servers and networks.
mod faults;
/// An HTTP server for one object.
mod http;
/// Large chunk indexes, and memory limits.
mod limits;
/// Queries under a memory limit, and files that change meanwhile.
mod memory;
/// The server of the tests and benches of object stores.
mod object_server;
/// Requests to object stores.
mod remote;
/// Scans of arrays in object stores.
mod remote_scans;
/// Every kind of byte source.
mod sources;
