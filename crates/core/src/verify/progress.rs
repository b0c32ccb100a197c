//! The progress of a verification.

use std::sync::atomic::{AtomicU64, Ordering};

/// The progress of a verification, which can be read while it runs.
///
/// A chunk counts once for each variable. If several files or arrays are verified with one `Progress`,
/// their numbers add up.
#[derive(Debug, Default)]
pub struct Progress {
    total: AtomicU64,
    done: AtomicU64,
    bytes: AtomicU64,
}

impl Progress {
    /// Returns the number of chunks, as far as it is known.
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Returns the number of chunks that have been checked.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Returns the number of stored bytes that were decoded.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Adds chunks that will be checked.
    pub fn expect(&self, chunks: u64) {
        self.total.fetch_add(chunks, Ordering::Relaxed);
    }

    /// Adds chunks that were checked, and their stored bytes.
    pub fn advance(&self, chunks: u64, bytes: u64) {
        self.done.fetch_add(chunks, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}
