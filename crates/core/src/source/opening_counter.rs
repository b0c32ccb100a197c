//! [`OpeningCounter`]: how many files a session opens, for displays of progress.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The numbers of files that a session has opened, and has begun to open, for catalogs and for tables of many
/// files. Clones share them, and they only grow.
///
/// ```
/// let opening = gridfusion_core::source::OpeningCounter::default();
/// assert_eq!((opening.opened(), opening.begun()), (0, 0));
/// ```
#[derive(Debug, Clone, Default)]
pub struct OpeningCounter(Arc<Files>);

#[derive(Debug, Default)]
struct Files {
    begun: AtomicU64,
    opened: AtomicU64,
}

impl OpeningCounter {
    /// The number of files that were opened, or failed.
    pub fn opened(&self) -> u64 {
        self.0.opened.load(Ordering::Relaxed)
    }

    /// The number of files that were opened or are to be opened.
    pub fn begun(&self) -> u64 {
        self.0.begun.load(Ordering::Relaxed)
    }

    /// Adds files that are to be opened.
    pub fn begin(&self, files: usize) {
        self.0.begun.fetch_add(files as u64, Ordering::Relaxed);
    }

    /// Adds a file that was opened, or failed.
    pub fn end(&self) {
        self.0.opened.fetch_add(1, Ordering::Relaxed);
    }
}

impl PartialEq for OpeningCounter {
    /// True: counts are no settings, so sessions with equal settings are equal.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for OpeningCounter {}
