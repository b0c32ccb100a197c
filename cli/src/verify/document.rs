//! Reports as one JSON document. `docs/verify.md` lists its fields, whose names are stable.

use gridfusion::verify::{self, Depth, Severity};
use serde::Serialize;

use super::subject::Subject;

#[derive(Debug, Serialize)]
pub(super) struct Document<'a> {
    path: &'a str,
    status: Status,
    /// Whether `--deep` decoded the cells.
    deep: bool,
    /// One entry per file or array.
    subjects: Vec<VerifiedPlace<'a>>,
}

#[derive(Debug, Serialize)]
struct VerifiedPlace<'a> {
    path: &'a str,
    status: Status,
    checks: Vec<Check<'a>>,
}

#[derive(Debug, Serialize)]
struct Check<'a> {
    check: &'static str,
    status: Status,
    detail: &'a str,
    failures: u64,
    warnings: u64,
    findings: Vec<Finding<'a>>,
    /// Number of findings that are not listed.
    left_out: u64,
}

#[derive(Debug, Serialize)]
struct Finding<'a> {
    status: Status,
    file: Option<&'a str>,
    region: Option<&'static str>,
    offset: Option<u64>,
    dataset: Option<&'a str>,
    chunk: Option<&'a [u64]>,
    message: &'a str,
}

/// The result of a check, from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Status {
    Ok,
    Warning,
    Failed,
}

impl From<Option<Severity>> for Status {
    fn from(severity: Option<Severity>) -> Self {
        match severity {
            None => Self::Ok,
            Some(Severity::Warning) => Self::Warning,
            Some(Severity::Failure) => Self::Failed,
        }
    }
}

impl Status {
    /// Returns the worst status; `Ok` for none.
    fn worst(all: impl Iterator<Item = Self>) -> Self {
        all.max().unwrap_or(Self::Ok)
    }
}

impl<'a> Document<'a> {
    pub(super) fn new(path: &'a str, depth: Depth, subjects: &'a [Subject]) -> Self {
        let subjects: Vec<VerifiedPlace<'_>> = subjects.iter().map(verified).collect();
        let status = Status::worst(subjects.iter().map(|subject| subject.status));
        Self { path, status, deep: depth == Depth::Cells, subjects }
    }
}

fn verified(subject: &Subject) -> VerifiedPlace<'_> {
    let checks: Vec<Check<'_>> = subject.report.checks().iter().map(check).collect();
    let status = Status::worst(checks.iter().map(|check| check.status));
    VerifiedPlace { path: &subject.path, status, checks }
}

fn check(made: &verify::Check) -> Check<'_> {
    Check {
        check: made.name(),
        status: made.severity().into(),
        detail: made.detail(),
        failures: made.failures(),
        warnings: made.warnings(),
        findings: made.findings().iter().map(finding).collect(),
        left_out: made.left_out(),
    }
}

fn finding(found: &verify::Finding) -> Finding<'_> {
    Finding {
        status: Some(found.severity).into(),
        file: found.file.as_deref(),
        region: found.region,
        offset: found.offset,
        dataset: found.dataset.as_deref(),
        chunk: found.chunk.as_deref(),
        message: &found.message,
    }
}
