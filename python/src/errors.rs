//! Errors as Python exceptions. The classes are in `gridfusion/errors.py`, because some have two bases.

use datafusion::error::DataFusionError;
use gridfusion_cli::embed::{Failure, message};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyType;

/// Returns the exception for an error, with the message of the program.
pub(crate) fn to_python(py: Python<'_>, error: &DataFusionError) -> PyErr {
    exception(py, class_of(error), message(error))
}

/// Returns an exception of a class of the Python module `errors`.
pub(crate) fn exception(py: Python<'_>, name: &str, message: String) -> PyErr {
    match class(py, name) {
        Ok(class) => PyErr::from_type(class, message),
        Err(error) => error,
    }
}

/// Returns a class of the Python module `errors`.
pub(crate) fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyType>> {
    let class = py.import("gridfusion.errors")?.getattr(name)?;
    class.cast_into::<PyType>().map_err(|_| PyRuntimeError::new_err(format!("no class {name}")))
}

/// The message for a forked process.
pub(crate) const FORKED: &str = "this process is a fork of one that has used gridfusion, whose threads it lacks; \
     start processes afresh, as in multiprocessing.get_context(\"spawn\")";

/// Returns the error for a forked process.
pub(crate) fn fork_error(py: Python<'_>) -> PyErr {
    exception(py, "InterfaceError", FORKED.to_owned())
}

/// Returns the error for a fault of ours.
pub(crate) fn internal_error(py: Python<'_>, message: &str) -> PyErr {
    exception(py, "InternalError", message.to_owned())
}

/// Returns the name of the class for an error.
fn class_of(error: &DataFusionError) -> &'static str {
    match Failure::of(error) {
        Failure::Usage => "ProgrammingError",
        Failure::Data => "DataError",
        Failure::Memory => "MemoryLimitError",
        Failure::Unsupported => "NotSupportedError",
        Failure::Io => "FileError",
        Failure::Internal => "InternalError",
    }
}
