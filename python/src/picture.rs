//! `Picture`: the plot of a query.

use gridfusion_cli::embed::Drawing;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::to_python;

/// The plot of a query, which becomes the bytes of a file.
#[pyclass(frozen, module = "gridfusion._internal")]
pub(crate) struct Picture(pub(crate) Drawing);

#[pymethods]
impl Picture {
    /// The bytes of a file, whose ending is `.png` or `.svg`.
    fn encode<'py>(&self, py: Python<'py>, path: &str) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| self.0.encode(path));
        Ok(PyBytes::new(py, &bytes.map_err(|error| to_python(py, &error))?))
    }

    /// The width and the height in pixels.
    fn size(&self) -> (u32, u32) {
        self.0.size()
    }
}
