//! What was checked, and what was found.

use std::fmt;

use crate::error::{Error, Kind};

/// How much is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Depth {
    /// Everything but the cells: directories, indexes, footers, zone maps and the places of payloads.
    Structure,
    /// The cells too: every payload is decoded, and what is noted about its values is computed again.
    Cells,
}

/// How bad something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Odd, but every answer is right all the same.
    Warning,
    /// Against the format: something cannot be read, what is read is not what was written, or a declaration
    /// that answers depend on cannot be understood.
    Failure,
}

/// Something that is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The file, where there are several.
    pub file: Option<String>,
    /// The part of the file.
    pub region: Option<&'static str>,
    /// The byte in the file.
    pub offset: Option<u64>,
    /// The dataset or attribute.
    pub dataset: Option<String>,
    /// The chunk or tile, by its place in the grid.
    pub chunk: Option<Vec<u64>>,
    /// What is wrong, in a sentence.
    pub message: String,
}

impl Finding {
    pub(crate) fn failure(message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Failure,
            file: None,
            region: None,
            offset: None,
            dataset: None,
            chunk: None,
            message: message.into(),
        }
    }

    pub(crate) fn warning(message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::failure(message) }
    }

    /// What an error says is a failure.
    pub(crate) fn of_error(error: &Error) -> Self {
        Self {
            file: error.file().map(str::to_owned),
            region: error.region(),
            offset: error.offset(),
            ..Self::failure(error.detail())
        }
    }

    pub(crate) fn into_warning(self) -> Self {
        Self { severity: Severity::Warning, ..self }
    }

    pub(crate) fn in_file(self, file: &str) -> Self {
        Self { file: Some(file.to_owned()), ..self }
    }

    pub(crate) fn in_dataset(self, dataset: &str) -> Self {
        Self { dataset: Some(dataset.to_owned()), ..self }
    }

    pub(crate) fn of_chunk(self, chunk: &[u64]) -> Self {
        Self { chunk: Some(chunk.to_vec()), ..self }
    }
}

impl fmt::Display for Finding {
    /// Where, and what.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut places = vec![];
        places.extend(self.file.clone());
        places.extend(self.dataset.as_ref().map(|dataset| format!("\"{dataset}\"")));
        places.extend(self.chunk.as_ref().map(|chunk| format!("chunk {chunk:?}")));
        places.extend(match (self.region, self.offset) {
            (Some(region), Some(offset)) => Some(format!("{region} at byte {offset}")),
            (None, Some(offset)) => Some(format!("byte {offset}")),
            (region, None) => region.map(str::to_owned),
        });
        match places.is_empty() {
            true => f.write_str(&self.message),
            false => write!(f, "{}: {}", places.join(", "), self.message),
        }
    }
}

/// `1 chunk`, `2 chunks`.
pub(crate) fn counted(count: u64, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

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

/// What was checked of a file or an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    depth: Depth,
    checks: Vec<Check>,
}

impl Report {
    pub(crate) fn new(depth: Depth) -> Self {
        Self { depth, checks: vec![] }
    }

    /// The report about something at `location` that cannot be opened: one failed check, `open` if it
    /// cannot be had, `parse` if it is not what it should be.
    pub fn of_error(location: &str, depth: Depth, error: &Error) -> Self {
        let name = match error.kind() {
            Kind::Corrupt | Kind::Unsupported => "parse",
            Kind::Usage | Kind::Io | Kind::Internal => "open",
        };
        let checks = vec![Check::new(name).with(Finding::of_error(error))];
        Self { depth, checks }.relative_to(location)
    }

    /// Makes paths relative to `location`; omits that of the verified file itself.
    pub(crate) fn relative_to(mut self, location: &str) -> Self {
        let relative = |file: String| {
            let within = match file.strip_prefix(location) {
                Some(within) => within.trim_start_matches('/').to_owned(),
                None => file,
            };
            Some(within).filter(|within| !within.is_empty())
        };
        let findings = self.checks.iter_mut().flat_map(|check| &mut check.findings);
        findings.for_each(|finding| finding.file = finding.file.take().and_then(relative));
        self
    }

    pub(crate) fn add(&mut self, check: Check) {
        self.checks.push(check);
    }

    /// Adds the checks of another report.
    pub(crate) fn append(&mut self, other: Self) {
        self.checks.extend(other.checks);
    }

    /// How much was looked at.
    pub fn depth(&self) -> Depth {
        self.depth
    }

    /// All checks, in the order in which they were made.
    pub fn checks(&self) -> &[Check] {
        &self.checks
    }

    /// The check of this name, if it was made.
    pub fn check(&self, name: &str) -> Option<&Check> {
        self.checks.iter().find(|check| check.name == name)
    }

    /// Whether no check failed; there may be warnings.
    pub fn is_ok(&self) -> bool {
        self.checks.iter().all(|check| check.failures == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_say_where() {
        let error = Error::corrupt("chunk index", 312, "codec 7").in_file("a.tet");
        let finding = Finding::of_error(&error).in_dataset("t").of_chunk(&[0, 1]);
        let text = "a.tet, \"t\", chunk [0, 1], chunk index at byte 312: codec 7";
        assert_eq!(finding.to_string(), text);
        assert_eq!(Finding::warning("odd").to_string(), "odd");
    }

    #[test]
    fn warnings_do_not_crowd_failures_out() {
        let mut check = Check::new("c");
        for _ in 0..100 {
            check.add(Finding::warning("w"));
        }
        assert_eq!(check.severity(), Some(Severity::Warning));
        check.add(Finding::failure("f"));
        check.leave_out(Severity::Failure, 7);
        assert_eq!((check.failures(), check.warnings(), check.left_out()), (8, 100, 87));
        assert!(check.findings().iter().any(|finding| finding.message == "f"));
        let mut report = Report::new(Depth::Structure);
        assert!(report.is_ok());
        report.add(check);
        assert!(!report.is_ok() && report.check("c").is_some() && report.check("d").is_none());
    }

    #[test]
    fn files_are_named_by_their_places_in_the_folder() {
        for (file, expected) in [("x/a.tet", None), ("x/a.tet/b/c", Some("b/c")), ("y", Some("y"))]
        {
            let error = Error::corrupt("footer", 0, "odd").in_file(file);
            let report = Report::of_error("x/a.tet", Depth::Cells, &error);
            let check = report.check("parse").unwrap();
            assert_eq!(check.findings()[0].file.as_deref(), expected);
        }
        let error = Error::usage("no such file");
        assert!(Report::of_error("x", Depth::Cells, &error).check("open").is_some());
    }
}
