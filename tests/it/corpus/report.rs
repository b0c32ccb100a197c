//! Counts the checks of a test over the corpus, and collects its failures to report all at the end.

use datafusion::error::DataFusionError;

use super::tables::Result;

/// The number of checks so far, and the failures.
#[derive(Default)]
pub(crate) struct Report {
    /// The file or dataset that is being checked; begins with the file's path below the corpus.
    pub(crate) subject: String,
    checks: usize,
    failures: Vec<String>,
}

impl Report {
    pub(crate) fn fail(&mut self, failure: &str) {
        self.failures.push(format!("{}: {failure}", self.subject));
    }

    /// Returns the value of a result, or adds its error to the failures.
    pub(crate) fn note<T>(&mut self, result: Result<T>) -> Option<T> {
        self.checks += 1;
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.fail(&error.to_string());
                None
            }
        }
    }

    pub(crate) fn equal(&mut self, what: &str, found: &str, expected: &str) {
        self.checks += 1;
        if found != expected {
            self.fail(&format!("{what} is {found}, expected {expected}"));
        }
    }

    /// Checks that numbers agree to 9 digits, or to within `slack`. `None` stands for NULL.
    pub(crate) fn close(&mut self, what: &str, found: &str, expected: Option<f64>, slack: f64) {
        let Some(expected) = expected else { return self.equal(what, found, "NULL") };
        self.checks += 1;
        let is_close = |found: f64| (found - expected).abs() <= 1e-9 * expected.abs() + slack;
        if !found.parse::<f64>().is_ok_and(is_close) {
            self.fail(&format!("{what} is {found}, expected {expected}"));
        }
    }

    /// Checks that an error names the file.
    pub(crate) fn names_the_file(&mut self, error: &DataFusionError) {
        self.checks += 1;
        let name = self.subject.rsplit('/').next().unwrap_or(&self.subject);
        if !error.to_string().contains(name) {
            self.fail(&format!("an error that does not name the file: {error}"));
        }
    }

    /// Checks that there is an error, and that it names the file and contains `part`.
    pub(crate) fn refused(&mut self, what: &str, error: Option<&DataFusionError>, part: &str) {
        let Some(error) = error else {
            return self.fail(&format!("{what} works, expected an error with '{part}'"));
        };
        self.names_the_file(error);
        if !error.to_string().contains(part) {
            self.fail(&format!("{what} gives '{error}', expected '{part}'"));
        }
    }

    /// Checks an error about corrupt bytes, which must also contain their position.
    pub(crate) fn corrupt(&mut self, what: &str, error: Option<&DataFusionError>, part: &str) {
        self.refused(what, error, part);
        if error.is_some_and(|error| !error.to_string().contains(" at byte ")) {
            self.fail(&format!("{what} gives an error without a position"));
        }
    }

    pub(crate) fn finish(self) {
        let Self { checks, failures, .. } = self;
        assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
        assert!(checks > 0, "nothing was checked");
    }
}
