//! An open HDF5 file.

use std::sync::Arc;

use super::check_index::CheckIndex;
use super::external::Parts;
use super::inner::Inner;
use super::locate::{LocateHdf5, chunk_extents};
use super::segment::Segment;
use super::stored_variable::{ChunkPlace, StoredVariable};
use super::virtual_layout::Mapping;
use crate::hierarchy::Hierarchy;
use gridfusion_core::format::StoredChunk;
use gridfusion_core::{Error, Result};

/// An open NetCDF-4 or HDF5 file. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Hdf5File(pub(super) Arc<Inner>);

impl Hdf5File {
    /// Returns the groups and variables.
    pub fn hierarchy(&self) -> &Hierarchy {
        &self.0.hierarchy
    }

    /// Returns a machine that finds out where chunks of a variable are stored. The chunks are given by their
    /// coordinates in the grid of chunks, and answered in this order. The places of chunks are remembered.
    ///
    /// # Errors
    /// `Internal` if there is no such variable, or if coordinates have another rank.
    pub fn locate(&self, variable: usize, chunks: Vec<Vec<u64>>) -> Result<LocateHdf5> {
        let rank = self.stored(variable)?.shape.len();
        if chunks.iter().any(|chunk| chunk.len() != rank) {
            return Err(Error::internal("chunk coordinates of another rank"));
        }
        Ok(LocateHdf5::new(Arc::clone(&self.0), variable, chunks))
    }

    /// Returns a machine that locates the values of a field of compounds, which are in the global heap; as
    /// [`Hdf5File::locate`].
    ///
    /// # Errors
    /// As [`Hdf5File::locate`]. `Internal` for a field that is not in the heap.
    pub fn locate_field(
        &self,
        variable: usize,
        field: usize,
        chunks: Vec<Vec<u64>>,
    ) -> Result<LocateHdf5> {
        let of_heap = self.stored(variable)?.heap.get(field).cloned().flatten();
        let of_heap = of_heap.ok_or_else(|| Error::internal("a field that is not in the heap"))?;
        Ok(self.locate(variable, chunks)?.with_field(of_heap))
    }

    /// Returns a machine that checks the index of a variable, and counts its chunks.
    ///
    /// # Errors
    /// `Internal` if there is no such variable.
    pub fn check_index(&self, variable: usize) -> Result<CheckIndex> {
        self.stored(variable)?;
        Ok(CheckIndex::new(Arc::clone(&self.0), variable))
    }

    /// Returns about how many bytes of memory the groups and variables take. Paths of one object share it.
    pub fn kept_bytes(&self) -> u64 {
        self.0.kept
    }

    /// Returns the version of the superblock: 0 to 3.
    pub fn superblock_version(&self) -> u8 {
        self.0.superblock_version
    }

    /// Whether the file follows the conventions of NetCDF-4.
    pub fn is_netcdf(&self) -> bool {
        self.0.is_netcdf
    }

    /// Describes where a variable has its cells: `chunked (fixed array)`.
    pub fn layout(&self, variable: usize) -> Option<String> {
        Some(self.0.stored.get(variable)?.layout())
    }

    /// Lists the filters of a variable's chunks in the order in which they were applied: `shuffle, deflate`. Empty
    /// if it has none.
    pub fn filters(&self, variable: usize) -> Option<String> {
        Some(self.0.stored.get(variable)?.filters.to_string())
    }

    /// Returns the mappings of a virtual dataset, of which this file cannot locate chunks alone; `None` if a variable
    /// is another dataset.
    pub fn mappings(&self, variable: usize) -> Option<&Arc<[Mapping]>> {
        match &self.0.stored.get(variable)?.place {
            ChunkPlace::Virtual(mappings) => Some(mappings),
            _ => None,
        }
    }

    /// Returns the parts of other files that hold the cells of a variable; `None` if no other file does. This file cannot
    /// locate its chunks alone.
    pub fn segments(&self, variable: usize) -> Option<&Arc<[Segment]>> {
        match &self.0.stored.get(variable)?.place {
            ChunkPlace::External(segments) => Some(segments),
            _ => None,
        }
    }

    /// Returns where chunks of a variable are in other files. `lens` are the lengths of the files of its segments, and
    /// members of locations are numbers of segments. Cells behind the end of a file are in no layer.
    ///
    /// # Errors
    /// `Unsupported` if a part of a file ends within a cell. `Internal` if no other file holds the variable.
    pub fn locate_external(
        &self,
        variable: usize,
        chunks: &[Vec<u64>],
        lens: &[u64],
    ) -> Result<Vec<StoredChunk>> {
        let parts = Parts::new(self.stored(variable)?, lens)?;
        let shown = self.0.hierarchy.variables.get(variable);
        let shown = shown.ok_or_else(|| Error::internal("no such variable"))?;
        chunks.iter().map(|chunk| parts.chunk(chunk, &chunk_extents(shown, chunk))).collect()
    }

    /// Returns the number of cells of a variable that are in other files, and of all its cells; as
    /// [`Hdf5File::locate_external`].
    ///
    /// # Errors
    /// As [`Hdf5File::locate_external`].
    pub fn count_external(&self, variable: usize, lens: &[u64]) -> Result<(u64, u64)> {
        Parts::new(self.stored(variable)?, lens)?.count()
    }

    fn stored(&self, variable: usize) -> Result<&StoredVariable> {
        let stored = self.0.stored.get(variable).map(|stored| &**stored);
        stored.ok_or_else(|| Error::internal(format!("no variable {variable}")))
    }
}
