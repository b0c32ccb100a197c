//! [`RemoteLimits`]: how much a session asks of object stores at once, and how long it waits.

use std::time::Duration;

/// Limits of the requests of a session to object stores.
///
/// ```
/// use gridfusion_core::io::RemoteLimits;
///
/// let limits = RemoteLimits { requests: 16, ..RemoteLimits::default() };
/// assert_eq!(limits.timeout.as_secs(), 30);
/// # let _ = limits;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteLimits {
    /// The most requests in flight.
    pub requests: usize,
    /// The most bytes that requests in flight ask for. A single request may exceed them.
    pub bytes: usize,
    /// The time after which a request without progress fails, with all its tries.
    pub timeout: Duration,
    /// How often a request is tried.
    pub tries: usize,
    /// The most bytes between two ranges that share a request.
    pub gap: u64,
    /// The most bytes of a request. Longer ranges are fetched in parts.
    pub merge: u64,
    /// The most bytes of metadata that are kept for later queries.
    pub cache: usize,
    /// The time for which a listing, or the identity of an object, is not checked again.
    pub check: Duration,
    /// Whether remote files may refer to other stores whose host is this machine or a private address. Programs that make
    /// stores on demand decide that themselves.
    pub private_references: bool,
}

impl Default for RemoteLimits {
    fn default() -> Self {
        Self {
            requests: 64,
            // With more, a query over a fast link takes over 150 MB of memory; with less, links of a high latency idle.
            bytes: 76 << 20,
            timeout: Duration::from_secs(30),
            tries: 4,
            gap: 1 << 20,
            merge: 8 << 20,
            cache: 64 << 20,
            check: Duration::from_secs(1),
            private_references: false,
        }
    }
}
