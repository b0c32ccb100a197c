//! Something that is wrong, and where.

use std::fmt;

use crate::error::Error;

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

    /// An error, as a failure.
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
}
