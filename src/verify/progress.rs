//! The progress of a verification.

use std::sync::atomic::{AtomicU64, Ordering};

/// The progress of a verification; share it, and read it while it runs.
///
/// Chunks are rows of an index where only the structure is looked at, else payloads that are decoded. Of
/// several files or arrays that are verified with one of these, the numbers add up.
#[derive(Debug, Default)]
pub struct Progress {
    total: AtomicU64,
    done: AtomicU64,
    bytes: AtomicU64,
}

impl Progress {
    /// How many chunks there are, as far as is known.
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// How many of them have been looked at.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// How many stored bytes they had.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn expect(&self, chunks: u64) {
        self.total.fetch_add(chunks, Ordering::Relaxed);
    }

    pub(crate) fn advance(&self, chunks: u64, bytes: u64) {
        self.done.fetch_add(chunks, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}
