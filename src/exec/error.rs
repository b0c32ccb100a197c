//! The one place where our errors become DataFusion's.

use datafusion::error::DataFusionError;

use crate::error::{Error, ErrorKind};

/// A user's mistake becomes a plan error and a missing feature "not implemented", by their text;
/// anything else stays our [`Error`], which `DataFusionError::find_root` and a downcast reach.
pub fn to_datafusion(error: Error) -> DataFusionError {
    match error.kind() {
        ErrorKind::Usage => DataFusionError::Plan(error.to_string()),
        ErrorKind::Unsupported => DataFusionError::NotImplemented(error.to_string()),
        _ => DataFusionError::External(Box::new(error)),
    }
}

impl From<Error> for DataFusionError {
    fn from(error: Error) -> Self {
        to_datafusion(error)
    }
}
