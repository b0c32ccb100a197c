//! Pairs a path with the report about it.

use gridfusion::verify::Report;

/// A file or an array, and its report.
pub(super) struct Subject {
    pub(super) path: String,
    pub(super) report: Report,
}
