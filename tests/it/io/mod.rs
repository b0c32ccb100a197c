//! Byte sources, and memory limits.

/// An HTTP server for one object.
mod http;
/// Large chunk indexes, and memory limits.
mod limits;
/// Queries under a memory limit, and files that change meanwhile.
mod memory;
/// Every kind of byte source.
mod sources;
