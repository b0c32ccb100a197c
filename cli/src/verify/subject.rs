//! What a report is about.

use gridfusion::verify::Report;

/// A file or an array, and what was found.
pub(super) struct Subject {
    pub(super) path: String,
    pub(super) report: Report,
}
