//! The compiled part of the Python package `gridfusion`, as its module `_internal`. The Python files beside it have the interface for
//! users: names, defaults, and the ways to pandas, polars, pyarrow, numpy and xarray.
//!
//! ```text
//!   Session ──run──▶ Query ──collect──▶ Rows ──▶ streams of Arrow, numpy columns, tuples
//!      ▲               ├────stream────▶ RowStream ──▶ Rows, batch by batch
//!      │               └─────plot─────▶ Picture
//!      └── register ◀── streams of Arrow, arrays of numpy
//! ```
//!
//! Queries run on threads of their own (`runtime`), while the calling thread waits without the lock of the interpreter and looks for
//! signals. No thread but the caller's touches Python.

mod arrays;
mod arrow;
mod buffers;
mod cells;
mod errors;
#[allow(unsafe_code, reason = "other libraries hand over memory by its address")]
mod foreign;
mod parameters;
mod picture;
mod program;
mod provider;
mod query;
mod rows;
mod runtime;
mod session;
mod stream;
mod values;
mod warnings;

use pyo3::prelude::*;

/// The compiled part of the package.
#[pymodule]
mod _internal {
    #[pymodule_export]
    use super::buffers::Buffer;
    #[pymodule_export]
    use super::picture::Picture;
    #[pymodule_export]
    use super::program::run_program;
    #[pymodule_export]
    use super::provider::TableFunction;
    #[pymodule_export]
    use super::query::Query;
    #[pymodule_export]
    use super::rows::Rows;
    #[pymodule_export]
    use super::session::Session;
    #[pymodule_export]
    use super::stream::RowStream;
    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        // A panic becomes an exception with the same text.
        gridfusion_cli::embed::quieten_panics();
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
