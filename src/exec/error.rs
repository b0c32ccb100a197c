//! The one place where our errors become DataFusion's.

use datafusion::error::DataFusionError;

use crate::error::{Error, Kind};

/// Wraps an error so that `DataFusionError::find_root` and downcasting still reach it.
pub fn to_datafusion(error: Error) -> DataFusionError {
    match error.kind() {
        Kind::Usage => DataFusionError::Plan(error.to_string()),
        Kind::Unsupported => DataFusionError::NotImplemented(error.to_string()),
        _ => DataFusionError::External(Box::new(error)),
    }
}
