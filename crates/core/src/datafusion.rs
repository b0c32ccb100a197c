//! Converts this crate's errors into DataFusion's.

use datafusion_common::DataFusionError;

use crate::error::{Error, ErrorKind};

/// Usage errors become plan errors, and unsupported features become `NotImplemented`, both as text. Any
/// other [`Error`] is kept as a source, which `DataFusionError::find_root` and a downcast reach.
impl From<Error> for DataFusionError {
    fn from(error: Error) -> Self {
        match error.kind() {
            ErrorKind::Usage => Self::Plan(error.to_string()),
            ErrorKind::Unsupported => Self::NotImplemented(error.to_string()),
            _ => Self::External(Box::new(error)),
        }
    }
}
