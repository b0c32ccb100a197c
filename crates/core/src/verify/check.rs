//! A check of a verification, with its findings.

use super::finding::{Finding, Severity};

/// The most findings of one severity that a check lists; further ones are only counted. A damaged index may
/// have a million.
const MOST_LISTED: u64 = 20;

/// A check of a verification, with its findings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    name: &'static str,
    detail: String,
    /// At most [`MOST_LISTED`] of each severity, in the order in which they were found.
    findings: Vec<Finding>,
    /// The number of failures, listed or not.
    failures: u64,
    /// The number of warnings, listed or not.
    warnings: u64,
}

impl Check {
    /// Makes a check that has found nothing yet.
    pub fn new(name: &'static str) -> Self {
        Self { name, detail: String::new(), findings: vec![], failures: 0, warnings: 0 }
    }

    /// Sets a detail about what was checked, such as `12 chunks`.
    pub fn with_detail(self, detail: impl Into<String>) -> Self {
        Self { detail: detail.into(), ..self }
    }

    /// Gives the check another name.
    pub fn renamed(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    /// Adds a finding.
    pub fn with(mut self, finding: Finding) -> Self {
        self.add(finding);
        self
    }

    /// Counts a finding, and lists it if the list of its severity has room.
    pub fn add(&mut self, finding: Finding) {
        let count = self.count(finding.severity);
        *count += 1;
        if *count <= MOST_LISTED {
            self.findings.push(finding);
        }
    }

    /// Adds findings.
    pub fn extend(&mut self, findings: impl IntoIterator<Item = Finding>) {
        findings.into_iter().for_each(|finding| self.add(finding));
    }

    /// Adds the findings of another check, also those that it does not list.
    pub fn absorb(&mut self, other: Self) {
        let listed = |severity| {
            let findings = other.findings.iter();
            findings.filter(|finding| finding.severity == severity).count() as u64
        };
        let failures = other.failures.saturating_sub(listed(Severity::Failure));
        let warnings = other.warnings.saturating_sub(listed(Severity::Warning));
        self.extend(other.findings);
        self.leave_out(Severity::Failure, failures);
        self.leave_out(Severity::Warning, warnings);
    }

    /// Counts findings that are not constructed one by one.
    pub fn leave_out(&mut self, severity: Severity, number: u64) {
        let count = self.count(severity);
        *count = count.saturating_add(number);
    }

    /// Whether another failure would be listed.
    pub fn has_room(&self) -> bool {
        self.failures < MOST_LISTED
    }

    fn count(&mut self, severity: Severity) -> &mut u64 {
        match severity {
            Severity::Failure => &mut self.failures,
            Severity::Warning => &mut self.warnings,
        }
    }

    /// Returns the name, which is the same for all files; `docs/verify.md` and the `FORMAT.md` of formats list the names.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns a detail about what was checked, such as `12 chunks`; may be empty.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// Returns the first findings of each severity.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    pub(super) fn findings_mut(&mut self) -> &mut [Finding] {
        &mut self.findings
    }

    /// Returns the number of failures, listed or not.
    pub fn failures(&self) -> u64 {
        self.failures
    }

    /// Returns the number of warnings, listed or not.
    pub fn warnings(&self) -> u64 {
        self.warnings
    }

    /// Returns the number of findings that are not listed.
    pub fn left_out(&self) -> u64 {
        self.failures.saturating_add(self.warnings).saturating_sub(self.findings.len() as u64)
    }

    /// Returns the severity of the worst finding; `None` without findings.
    pub fn severity(&self) -> Option<Severity> {
        match (self.failures, self.warnings) {
            (0, 0) => None,
            (0, _) => Some(Severity::Warning),
            _ => Some(Severity::Failure),
        }
    }
}

/// Returns a count with a noun, such as `1 chunk` or `2 chunks`.
pub fn counted(count: u64, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}
