//! The faults that a verification finds.

use std::fmt;

use crate::error::Error;

/// The severity of a finding.
///
/// Reports and exit codes depend on each, so a further severity would be a breaking change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// An oddity that changes no answer.
    Warning,
    /// A violation of the format: a part cannot be read, stored data differs from what was written, or
    /// a declaration that answers depend on cannot be parsed.
    Failure,
}

/// A fault that a verification found, and its location.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The severity of the fault.
    pub severity: Severity,
    /// The file with the fault, if the array has several.
    pub file: Option<String>,
    /// The part of the file, such as `chunk index`.
    pub region: Option<&'static str>,
    /// The offset in the file, in bytes.
    pub offset: Option<u64>,
    /// The dataset, or the attribute of a TileDB array.
    pub dataset: Option<String>,
    /// The coordinates of the chunk or tile in its grid.
    pub chunk: Option<Vec<u64>>,
    /// The fault, as a sentence.
    pub message: String,
}

impl Finding {
    /// Sets the offset of the first wrong byte.
    #[must_use]
    pub fn at_offset(self, offset: u64) -> Self {
        Self { offset: Some(offset), ..self }
    }

    /// Sets the message.
    #[must_use]
    pub fn with_message(self, message: impl Into<String>) -> Self {
        Self { message: message.into(), ..self }
    }

    /// Makes a finding that something is wrong.
    pub fn failure(message: impl Into<String>) -> Self {
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

    /// Makes a finding that something is unusual but readable.
    pub fn warning(message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::failure(message) }
    }

    /// Converts an error to a failure.
    pub fn from_error(error: &Error) -> Self {
        Self {
            file: error.file().map(str::to_owned),
            region: error.region(),
            offset: error.offset(),
            ..Self::failure(error.detail())
        }
    }

    /// Makes it a warning.
    pub fn into_warning(self) -> Self {
        Self { severity: Severity::Warning, ..self }
    }

    /// Names the file.
    pub fn in_file(self, file: &str) -> Self {
        Self { file: Some(file.to_owned()), ..self }
    }

    /// Names the dataset.
    pub fn in_dataset(self, dataset: &str) -> Self {
        Self { dataset: Some(dataset.to_owned()), ..self }
    }

    /// Names the chunk by its place in the grid.
    pub fn of_chunk(self, chunk: &[u64]) -> Self {
        Self { chunk: Some(chunk.to_vec()), ..self }
    }
}

impl fmt::Display for Finding {
    /// Writes the location, if known, and the message.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_name_their_place() {
        let error = Error::corrupt("chunk index", 312, "codec 7").in_file("a.tet");
        let finding = Finding::from_error(&error).in_dataset("t").of_chunk(&[0, 1]);
        let text = "a.tet, \"t\", chunk [0, 1], chunk index at byte 312: codec 7";
        assert_eq!(finding.to_string(), text);
        assert_eq!(Finding::warning("odd").to_string(), "odd");
    }
}
