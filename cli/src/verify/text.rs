//! Reports as text: a line per check with its findings below, and the verdict at the end.
//!
//! ```text
//!   stations.tet
//!     ok       superblock    layout version 1
//!     FAILED   chunk_decode  19 chunks
//!                "temperature", chunk [0, 1]: …
//! ```

use gridfusion::verify::{Check, Depth, Severity, counted};

use super::subject::Subject;
use crate::printable::printable;

/// Returns the text of all reports.
pub(super) fn of(depth: Depth, subjects: &[Subject]) -> String {
    let mut text = String::new();
    for subject in subjects {
        text.extend([&printable(&subject.path), "\n"]);
        let checks = subject.report.checks();
        let width = checks.iter().map(|check| check.name().len()).max().unwrap_or(0);
        for check in checks {
            print_check(check, width, &mut text);
        }
        text.push('\n');
    }
    text + &verdict(depth, subjects)
}

fn print_check(check: &Check, width: usize, text: &mut String) {
    let status = match check.severity() {
        None => "ok",
        Some(Severity::Warning) => "warning",
        Some(Severity::Failure) => "FAILED",
    };
    let line = format!("  {status:<7}  {:<width$}  {}", check.name(), printable(check.detail()));
    text.extend([line.trim_end(), "\n"]);
    for finding in check.findings() {
        text.extend(["             ", &printable(&finding.to_string()), "\n"]);
    }
    if check.left_out() > 0 {
        text.push_str(&format!("             … and {} more\n", check.left_out()));
    }
}

/// Returns the last line, with the numbers of checks, failures and warnings.
fn verdict(depth: Depth, subjects: &[Subject]) -> String {
    let checks = || subjects.iter().flat_map(|subject| subject.report.checks());
    let made = checks().count() as u64;
    let failed = checks().filter(|check| check.failures() > 0).count();
    let warnings = checks().map(Check::warnings).fold(0, u64::saturating_add);
    let mut verdict = match failed {
        0 => format!("OK: {}", counted(made, "check")),
        _ => format!("FAILED: {failed} of {}", counted(made, "check")),
    };
    if subjects.len() > 1 {
        verdict += &format!(" of {}", counted(subjects.len() as u64, "array"));
    }
    if warnings > 0 {
        verdict += &format!(", {}", counted(warnings, "warning"));
    }
    if depth == Depth::Structure {
        verdict += "; cells were not read, --deep reads them";
    }
    verdict + "\n"
}
