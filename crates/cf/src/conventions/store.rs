//! [`VariableStore`]: the variables of a file or store, the places of their chunks, and facts for descriptions.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;

use crate::hierarchy::Hierarchy;
use gridfusion_core::format::StoredChunk;
use gridfusion_core::tile::{ObjectVersion, Objects};
use gridfusion_core::{Error, Result};

/// An opened file or store of variables.
#[async_trait]
pub trait VariableStore: Debug + Send + Sync {
    /// Returns the groups and variables.
    fn hierarchy(&self) -> &Hierarchy;

    /// Returns the objects that hold the chunks.
    fn objects(&self) -> &Arc<Objects>;

    /// Returns the versions of the objects with metadata; see [`ChunkSource::versions`](gridfusion_core::array::ChunkSource::versions).
    fn versions(&self) -> Vec<ObjectVersion> {
        self.objects().versions()
    }

    /// Returns the versions of the objects with chunks; see [`ChunkSource::contents`](gridfusion_core::array::ChunkSource::contents).
    ///
    /// # Errors
    /// `Io` if the objects cannot be listed, or one was written since it was read.
    fn contents(&self, variable: usize) -> Result<Vec<ObjectVersion>> {
        let _ = variable;
        Ok(vec![])
    }

    /// Returns where the chunks at these coordinates of variable number `variable` are stored, in order.
    ///
    /// # Errors
    /// `Corrupt` or `Io` if an index of chunks cannot be read.
    async fn locate(&self, variable: usize, chunks: Vec<Vec<u64>>) -> Result<Vec<StoredChunk>>;

    /// Returns where the values of a field of compounds are stored that have any length, as [`VariableStore::locate`] does for
    /// whole cells.
    ///
    /// # Errors
    /// As [`VariableStore::locate`]. `Internal` if the format has no such fields.
    async fn locate_field(
        &self,
        variable: usize,
        field: usize,
        chunks: Vec<Vec<u64>>,
    ) -> Result<Vec<StoredChunk>> {
        let _ = (variable, field, chunks);
        Err(Error::internal("values of any length in compounds"))
    }

    /// Returns a warning if no chunk of a variable is stored. Only stores whose index does not tell which chunks exist need to
    /// look.
    ///
    /// # Errors
    /// If chunks are stored under other names than the metadata sets.
    async fn explain_absence(&self, variable: usize) -> Result<Option<String>> {
        let _ = variable;
        Ok(None)
    }

    /// Whether locating chunks of a variable reads none of its cells.
    fn locates_without_cells(&self, variable: usize) -> bool {
        let _ = variable;
        true
    }

    /// Returns the facts about the file or store that descriptions show.
    fn facts(&self) -> StoreFacts;

    /// Returns the encoding of the chunks of a variable, for people: `shuffle, deflate`.
    fn codec(&self, variable: usize) -> Option<String>;

    /// Returns what is stored of a variable; `None` if finding out takes many requests or reads cells.
    ///
    /// # Errors
    /// As [`VariableStore::locate`].
    async fn stored(&self, variable: usize) -> Result<Option<StoredTotals>>;

    /// Reads the whole index of a variable's chunks, compares its counts, and looks up each chunk as a query does. Returns
    /// the number of chunks; `None` if chunks have no index.
    ///
    /// # Errors
    /// `Corrupt` if the index contradicts itself. Otherwise as [`VariableStore::locate`].
    async fn check_index(&self, variable: usize) -> Result<Option<u64>> {
        let _ = variable;
        Ok(None)
    }

    /// Compares stored bytes of a variable with checksums that no query compares. Returns the number of chunks; `None` if there
    /// are no such checksums.
    ///
    /// # Errors
    /// `Corrupt` if a checksum differs, `Io` if the bytes cannot be read.
    async fn check_checksums(&self, variable: usize) -> Result<Option<u64>> {
        let _ = variable;
        Ok(None)
    }
}

/// The facts about a file or store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreFacts {
    /// The format, in the document: `netcdf`.
    pub format: &'static str,
    /// The version of the format, in the document: `CDF-2`.
    pub version: String,
    /// A noun with the version: `NetCDF classic file, CDF-2`.
    pub noun: String,
    /// The length of the file in bytes; `None` for several objects.
    pub size: Option<u64>,
    /// Further facts, such as `32 records of time`.
    pub more: Vec<String>,
    /// Remarks for readers, such as on attributes that were ignored.
    pub warnings: Vec<String>,
}

/// The stored chunks of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoredTotals {
    /// The number of chunks that are there.
    pub chunks: u64,
    /// Their bytes as stored.
    pub bytes: u64,
    /// Their bytes after decoding; `None` for values of any length.
    pub raw_bytes: Option<u64>,
}
