//! The error type of the crate.

use std::fmt;

use arrow::error::ArrowError;

/// The reason why no picture was made.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The rows cannot be drawn, or not in this way. The message names the reason and what to change.
    Usage(String),
    /// Rows lack a column, or a value cannot be converted to a number, a time or text.
    Arrow(ArrowError),
    /// The picture could not be painted or encoded.
    Paint(String),
}

/// A result whose error is [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Returns [`Error::Usage`] with this message.
pub(crate) fn refuse<T>(message: impl Into<String>) -> Result<T> {
    Err(Error::Usage(message.into()))
}

impl Error {
    pub(crate) fn paint(error: impl fmt::Display) -> Self {
        Self::Paint(error.to_string())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(message) => f.write_str(message),
            Self::Arrow(error) => write!(f, "{error}"),
            Self::Paint(reason) => write!(f, "cannot make the picture: {reason}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Arrow(error) => Some(error),
            Self::Usage(_) | Self::Paint(_) => None,
        }
    }
}

impl From<ArrowError> for Error {
    fn from(error: ArrowError) -> Self {
        Self::Arrow(error)
    }
}
