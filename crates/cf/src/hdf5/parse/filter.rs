//! Filters of chunks; those of the HDF5 library that no other format has: szip, n-bit and scale-offset.

use std::fmt;

use hdf5_reader::filters;
use hdf5_reader::messages::filter_pipeline::FilterDescription;

/// A filter of chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::hdf5) struct Filter {
    pub(in crate::hdf5) id: u16,
    pub(in crate::hdf5) name: Option<String>,
    pub(in crate::hdf5) parameters: Vec<u32>,
}

/// A filter of the HDF5 library.
#[derive(Debug)]
pub(in crate::hdf5) struct LibraryFilter {
    /// The number of the filter: 4, 5 or 6.
    pub(in crate::hdf5) id: u16,
    pub(in crate::hdf5) name: &'static str,
    pub(in crate::hdf5) parameters: Vec<u32>,
    /// Bytes per cell.
    pub(in crate::hdf5) element: usize,
}

impl LibraryFilter {
    /// Undoes the filter; returns at most `most` bytes.
    pub(in crate::hdf5) fn undo(
        &self,
        stored: &[u8],
        most: usize,
    ) -> std::result::Result<Vec<u8>, String> {
        let filter =
            FilterDescription { id: self.id, name: None, client_data: self.parameters.clone() };
        let element = self.element;
        filters::apply_pipeline_with_limit(stored, &[filter], 0, element, None, Some(most))
            .map_err(|error| error.to_string())
    }
}

impl fmt::Display for LibraryFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
