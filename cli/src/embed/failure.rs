//! The kinds of errors, for programs that tell them apart. Hints for the user replace errors by texts, so the kind is found before.

use std::error::Error;
use std::fmt;

use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use gridfusion::ErrorKind;

use crate::errors::describe;

/// The kind of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The request is wrong: its SQL, a name, an option.
    Usage,
    /// Values or bytes are wrong: a division by zero, a damaged file.
    Data,
    /// The memory limit does not suffice.
    Memory,
    /// This version cannot do it.
    Unsupported,
    /// Files or stores cannot be read or written.
    Io,
    /// A fault of the program.
    Internal,
}

impl Failure {
    /// Returns the kind of an error.
    pub fn of(error: &DataFusionError) -> Self {
        match error.find_root() {
            DataFusionError::ResourcesExhausted(_) => Self::Memory,
            DataFusionError::NotImplemented(_) => Self::Unsupported,
            DataFusionError::Internal(_) => Self::Internal,
            DataFusionError::IoError(_) | DataFusionError::ObjectStore(_) => Self::Io,
            DataFusionError::Execution(_) | DataFusionError::ParquetError(_) => Self::Data,
            DataFusionError::ArrowError(cause, _) => match cause.as_ref() {
                ArrowError::IoError(..) => Self::Io,
                ArrowError::NotYetImplemented(_) => Self::Unsupported,
                _ => Self::Data,
            },
            DataFusionError::External(cause) => {
                let explained = cause.downcast_ref::<Explained>().map(|it| it.failure);
                let ours = || cause.downcast_ref::<gridfusion::Error>().map(|it| it.kind().into());
                explained.or_else(ours).unwrap_or(Self::Io)
            }
            _ => Self::Usage,
        }
    }
}

impl From<ErrorKind> for Failure {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::Usage => Self::Usage,
            ErrorKind::Corrupt => Self::Data,
            ErrorKind::Unsupported => Self::Unsupported,
            ErrorKind::Io => Self::Io,
            _ => Self::Internal,
        }
    }
}

/// An error whose message has a hint, with the kind that it had before.
#[derive(Debug)]
pub(super) struct Explained {
    failure: Failure,
    message: String,
}

impl Explained {
    /// Returns the error `explained`, as of the kind `failure`.
    pub(super) fn of_kind(failure: Failure, explained: &DataFusionError) -> DataFusionError {
        let message = describe(explained);
        DataFusionError::External(Box::new(Self { failure, message }))
    }
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for Explained {}
