//! One thing that was checked, and its findings.

use super::finding::{Finding, Severity};

/// Findings of one severity that a check lists; more are counted.
const MOST_LISTED: u64 = 20;

/// One thing that was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    name: &'static str,
    detail: String,
    findings: Vec<Finding>,
    failures: u64,
    warnings: u64,
}

impl Check {
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, detail: String::new(), findings: vec![], failures: 0, warnings: 0 }
    }

    /// Says what was looked at.
    pub(crate) fn with_detail(self, detail: impl Into<String>) -> Self {
        Self { detail: detail.into(), ..self }
    }

    pub(crate) fn renamed(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    pub(crate) fn with(mut self, finding: Finding) -> Self {
        self.add(finding);
        self
    }

    pub(crate) fn add(&mut self, finding: Finding) {
        let count = self.count(finding.severity);
        *count += 1;
        if *count <= MOST_LISTED {
            self.findings.push(finding);
        }
    }

    pub(crate) fn extend(&mut self, findings: impl IntoIterator<Item = Finding>) {
        findings.into_iter().for_each(|finding| self.add(finding));
    }

    /// Counts findings that are not constructed one by one.
    pub(crate) fn leave_out(&mut self, severity: Severity, number: u64) {
        let count = self.count(severity);
        *count = count.saturating_add(number);
    }

    /// Whether another failure would be listed.
    pub(crate) fn has_room(&self) -> bool {
        self.failures < MOST_LISTED
    }

    fn count(&mut self, severity: Severity) -> &mut u64 {
        match severity {
            Severity::Failure => &mut self.failures,
            Severity::Warning => &mut self.warnings,
        }
    }

    /// Its name, the same for all files; `docs/verify.md` lists them.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What was looked at; may be empty.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// The first findings.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    pub(super) fn findings_mut(&mut self) -> &mut [Finding] {
        &mut self.findings
    }

    /// How many failures there are, listed or not.
    pub fn failures(&self) -> u64 {
        self.failures
    }

    /// How many warnings there are, listed or not.
    pub fn warnings(&self) -> u64 {
        self.warnings
    }

    /// How many findings are not listed.
    pub fn left_out(&self) -> u64 {
        self.failures.saturating_add(self.warnings).saturating_sub(self.findings.len() as u64)
    }

    /// How bad the worst finding is; `None` if nothing is wrong.
    pub fn severity(&self) -> Option<Severity> {
        match (self.failures, self.warnings) {
            (0, 0) => None,
            (0, _) => Some(Severity::Warning),
            _ => Some(Severity::Failure),
        }
    }
}

/// `1 chunk`, `2 chunks`.
pub fn counted(count: u64, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}
