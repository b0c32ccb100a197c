//! [`RemoteLimits`]: how much a session asks of object stores at once, and how long it waits.

use std::time::Duration;

/// Limits of the requests of a session to object stores.
///
/// ```
/// use gridfusion_core::io::RemoteLimits;
///
/// let limits = RemoteLimits::default().with_requests(16);
/// assert_eq!(limits.timeout.as_secs(), 30);
/// # let _ = limits;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
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

impl RemoteLimits {
    /// Sets the most requests in flight.
    #[must_use]
    pub fn with_requests(self, requests: usize) -> Self {
        Self { requests, ..self }
    }

    /// Sets the most bytes that requests in flight ask for.
    #[must_use]
    pub fn with_bytes(self, bytes: usize) -> Self {
        Self { bytes, ..self }
    }

    /// Sets the time after which a request without progress fails.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Sets how often a request is tried.
    #[must_use]
    pub fn with_tries(self, tries: usize) -> Self {
        Self { tries, ..self }
    }

    /// Sets the most bytes between two ranges that share a request.
    #[must_use]
    pub fn with_gap(self, gap: u64) -> Self {
        Self { gap, ..self }
    }

    /// Sets the most bytes of a request.
    #[must_use]
    pub fn with_merge(self, merge: u64) -> Self {
        Self { merge, ..self }
    }

    /// Sets the most bytes of metadata that are kept.
    #[must_use]
    pub fn with_cache(self, cache: usize) -> Self {
        Self { cache, ..self }
    }

    /// Sets the time for which a listing is not checked again.
    #[must_use]
    pub fn with_check(self, check: Duration) -> Self {
        Self { check, ..self }
    }

    /// Sets whether remote files may refer to private addresses.
    #[must_use]
    pub fn with_private_references(self, private_references: bool) -> Self {
        Self { private_references, ..self }
    }
}
