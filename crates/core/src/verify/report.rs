//! The report of a verification: the checks of a file or an array.

use super::check::Check;
use super::finding::Finding;
use crate::error::{Error, ErrorKind, path_within};

/// How thorough a verification is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Depth {
    /// Everything except the cells: directories, indexes, footers, zone maps and the places of
    /// payloads.
    Structure,
    /// The cells too: every payload is decoded, and its stored statistics are computed again.
    Cells,
}

/// The checks of a file or an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    depth: Depth,
    checks: Vec<Check>,
}

impl Report {
    /// Makes a report without checks.
    pub fn new(depth: Depth) -> Self {
        Self { depth, checks: vec![] }
    }

    /// Returns the report on something at `location` that cannot be opened. Its single check is a
    /// failure: `parse` if the content is corrupt or not supported, otherwise `open`.
    pub fn from_error(location: &str, depth: Depth, error: &Error) -> Self {
        let name = match error.kind() {
            ErrorKind::Corrupt | ErrorKind::Unsupported => "parse",
            ErrorKind::Usage | ErrorKind::Io | ErrorKind::Internal => "open",
        };
        let checks = vec![Check::new(name).with(Finding::from_error(error))];
        Self { depth, checks }.relative_to(location)
    }

    /// Makes paths relative to `location`; omits the path of the verified file itself. In a report on
    /// `x.tet.d`, the file `x.tet.d/CURRENT` becomes `CURRENT`.
    pub fn relative_to(mut self, location: &str) -> Self {
        let relative = |file: String| {
            let within = path_within(&file, location).unwrap_or(&file);
            Some(within.to_owned()).filter(|within| !within.is_empty())
        };
        let findings = self.checks.iter_mut().flat_map(Check::findings_mut);
        findings.for_each(|finding| finding.file = finding.file.take().and_then(relative));
        self
    }

    /// Adds a check.
    pub fn add(&mut self, check: Check) {
        self.checks.push(check);
    }

    /// Adds the checks of another report.
    pub fn append(&mut self, other: Self) {
        self.checks.extend(other.checks);
    }

    /// Returns how thorough the verification was.
    pub fn depth(&self) -> Depth {
        self.depth
    }

    /// Returns all checks, in the order in which they were made.
    pub fn checks(&self) -> &[Check] {
        &self.checks
    }

    /// Returns the check with this name, if it was made.
    pub fn check(&self, name: &str) -> Option<&Check> {
        self.checks.iter().find(|check| check.name() == name)
    }

    /// Whether no check failed; there may be warnings.
    pub fn is_ok(&self) -> bool {
        self.checks.iter().all(|check| check.failures() == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::Severity;

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
    fn absorbed_findings_are_all_counted() {
        let (mut check, mut other) = (Check::new("c"), Check::new("c"));
        check.add(Finding::failure("a"));
        other.extend((0..30).map(|_| Finding::failure("b")));
        other.add(Finding::warning("w"));
        check.absorb(other);
        assert_eq!((check.failures(), check.warnings(), check.left_out()), (31, 1, 11));
    }

    #[test]
    fn files_are_named_by_their_places_in_the_folder() {
        for (file, expected) in [("x/a.tet", None), ("x/a.tet/b/c", Some("b/c")), ("y", Some("y"))]
        {
            let error = Error::corrupt("footer", 0, "odd").in_file(file);
            let report = Report::from_error("x/a.tet", Depth::Cells, &error);
            let check = report.check("parse").unwrap();
            assert_eq!(check.findings()[0].file.as_deref(), expected);
        }
        let error = Error::usage("no such file");
        assert!(Report::from_error("x", Depth::Cells, &error).check("open").is_some());
    }
}
