//! Things with a path that are neither files nor folders.

use std::fs;
use std::path::Path;

use crate::error::{Error, Result};

/// Fails for a pipe, a socket or a device: reading one may wait for ever, and writing one may replace it.
///
/// ```
/// assert!(gridfusion_core::io::refuse_special("src/lib.rs".as_ref()).is_ok());
/// assert!(gridfusion_core::io::refuse_special("no such file".as_ref()).is_ok());
/// ```
///
/// # Errors
/// `Usage` for something that is neither a file nor a folder.
pub fn refuse_special(path: &Path) -> Result<()> {
    match fs::metadata(path) {
        Ok(it) if !it.is_file() && !it.is_dir() => {
            let message =
                "this is a pipe or a device, and only files and folders are read and written";
            Err(Error::usage(message).in_file(&path.display().to_string()))
        }
        _ => Ok(()),
    }
}
