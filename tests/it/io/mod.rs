//! Where bytes come from, and how many of them are held.

/// A server for one object.
mod http;
/// Large indexes, bounded memory.
mod limits;
/// Memory under a limit, files that are written meanwhile.
mod memory;
/// Every way of reading bytes.
mod sources;
