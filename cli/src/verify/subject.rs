//! Paths with their reports.

use gridfusion::verify::Report;

/// A file or an array, and its report.
pub(super) struct Subject {
    pub(super) path: String,
    pub(super) report: Report,
}
