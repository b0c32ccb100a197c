//! The program as a function, for the command `gridfusion` of the package.

use std::ffi::OsString;

use pyo3::prelude::*;

use crate::runtime::runtime;

/// Runs the program with the words of a command line, and returns its exit status.
#[pyfunction]
pub(crate) fn run_program(py: Python<'_>, words: Vec<OsString>) -> PyResult<u8> {
    let runtime = runtime(py)?;
    Ok(py.detach(|| runtime.block_on(Box::pin(gridfusion_cli::run_command_line(words)))))
}
