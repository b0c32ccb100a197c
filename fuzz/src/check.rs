//! The check that every result of a target must pass.

use std::fmt::Debug;

use gridfusion_core::{ErrorKind, Result};

/// Returns the value of a result; `None` if it is an error. Panics on errors of kind `Internal` or
/// `Io`, which hostile bytes must never cause, and formats every error.
pub fn check<T: Debug>(result: Result<T>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) => {
            let text = error.to_string();
            assert!(!matches!(error.kind(), ErrorKind::Internal | ErrorKind::Io), "{text}");
            None
        }
    }
}
