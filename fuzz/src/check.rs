//! What must hold of every result.

use std::fmt::Debug;

use crate::{ErrorKind, Result};

/// The value of a result. Hostile bytes may give errors, but none that is a bug of ours or about
/// reading, and all can be shown.
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
