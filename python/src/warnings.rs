//! Warnings of the library, such as of files that were left out, as Python warnings.
//!
//! They arise on threads that do not touch Python. So they wait in a list until the caller that waits for the query reports them.

use std::ffi::CString;
use std::sync::{Mutex, PoisonError};

use log::{Level, LevelFilter, Log, Metadata, Record};
use pyo3::prelude::*;

use crate::errors::class;

/// The most warnings that wait. A query that warns of every file is known well enough after these.
const MOST: usize = 100;

static WAITING: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Waiting;

impl Log for Waiting {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let is_ours = metadata.target().starts_with("gridfusion");
        is_ours && metadata.level() <= Level::Warn
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() < MOST {
            waiting.push(gridfusion_cli::embed::shown(&record.args().to_string()));
        }
    }

    fn flush(&self) {}
}

/// Begins to collect warnings.
pub(crate) fn install() {
    static LOGGER: Waiting = Waiting;
    if log::set_logger(&LOGGER).is_ok() {
        log::set_max_level(LevelFilter::Warn);
    }
}

/// Reports the warnings that wait.
///
/// # Errors
/// If the user's filters turn a warning into an exception.
pub(crate) fn report(py: Python<'_>) -> PyResult<()> {
    let waiting = std::mem::take(&mut *WAITING.lock().unwrap_or_else(PoisonError::into_inner));
    if waiting.is_empty() {
        return Ok(());
    }
    let category = class(py, "Warning")?;
    for text in waiting {
        let text = CString::new(text.replace('\0', "")).unwrap_or_default();
        PyErr::warn(py, &category, &text, 1)?;
    }
    Ok(())
}
