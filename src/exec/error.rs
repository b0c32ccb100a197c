//! The one place where our errors become DataFusion's.

use datafusion::error::DataFusionError;

use crate::error::{Error, ErrorKind};

/// A user's mistake becomes a plan error and a missing feature "not implemented", by their text;
/// anything else stays our [`Error`], which `DataFusionError::find_root` and a downcast reach.
impl From<Error> for DataFusionError {
    fn from(error: Error) -> Self {
        match error.kind() {
            ErrorKind::Usage => Self::Plan(error.to_string()),
            ErrorKind::Unsupported => Self::NotImplemented(error.to_string()),
            _ => Self::External(Box::new(error)),
        }
    }
}
