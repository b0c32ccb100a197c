//! An opened HDF5 file, such as NetCDF-4 files are.

use std::sync::Arc;

use async_trait::async_trait;

use crate::conventions::{StoreFacts, StoredTotals, VariableStore, located_totals};
use crate::hdf5::{Hdf5File, Mapping, OpenHdf5, SIGNATURE, Segment, user_block_ends};
use crate::hierarchy::{CellType, Hierarchy};
use gridfusion_core::Result;
use gridfusion_core::format::{Location, StoredChunk};
use gridfusion_core::io::ByteSource;
use gridfusion_core::tile::{Documents, Objects, drive};

/// The chunks of texts of any length that are located together.
const TEXT_CHUNKS: usize = 8;

/// An opened file, whose object headers are in memory.
#[derive(Debug)]
pub(super) struct Hdf5Reader {
    file: Hdf5File,
    size: u64,
    objects: Arc<Objects>,
}

impl Hdf5Reader {
    /// Reads the headers of all groups and datasets.
    ///
    /// # Errors
    /// `Corrupt` or `Unsupported` if they cannot be parsed, or take more memory than `limits` allow.
    pub(super) async fn open(source: Arc<dyn ByteSource>, limits: &Documents) -> Result<Self> {
        let size = source.size();
        let open = OpenHdf5::new(size).with_metadata_limit(limits.most);
        let objects = Arc::new(Objects::one(source));
        let file = drive(open, &objects).await?;
        limits.check_memory(file.kept_bytes()).map_err(|error| objects.named(error))?;
        Ok(Self { file, size, objects })
    }

    /// Returns the mappings of a virtual dataset; `None` if a variable is another dataset.
    pub(super) fn mappings(&self, variable: usize) -> Option<Arc<[Mapping]>> {
        self.file.mappings(variable).cloned()
    }

    /// Returns the parts of other files that hold a variable; `None` if no other file does.
    pub(super) fn segments(&self, variable: usize) -> Option<Arc<[Segment]>> {
        self.file.segments(variable).cloned()
    }

    /// Locates chunks in other files; see [`Hdf5File::locate_external`].
    pub(super) fn locate_external(
        &self,
        variable: usize,
        chunks: &[Vec<u64>],
        lens: &[u64],
    ) -> Result<Vec<StoredChunk>> {
        self.file.locate_external(variable, chunks, lens)
    }

    /// Counts the cells in other files; see [`Hdf5File::count_external`].
    pub(super) fn count_external(&self, variable: usize, lens: &[u64]) -> Result<(u64, u64)> {
        self.file.count_external(variable, lens)
    }
}

/// Whether a file of `size` bytes has the HDF5 signature behind a user block of `least` bytes or more. Reads a few
/// bytes at each place where it may be, up to the end of the file, as the HDF5 library does.
pub(super) async fn is_behind_user_block(objects: &Objects, size: u64, least: u64) -> Result<bool> {
    let len = SIGNATURE.len() as u64;
    let places = user_block_ends().skip_while(|at| *at < least);
    let places = places.take_while(|at| at.saturating_add(len) <= size);
    let places: Vec<_> = places.map(|at| Location::new("", at..at + len)).collect();
    let found = objects.read(&places).await?;
    Ok(found.iter().any(|bytes| bytes.as_ref() == SIGNATURE))
}

#[async_trait]
impl VariableStore for Hdf5Reader {
    fn hierarchy(&self) -> &Hierarchy {
        self.file.hierarchy()
    }

    fn objects(&self) -> &Arc<Objects> {
        &self.objects
    }

    async fn locate(&self, variable: usize, chunks: Vec<Vec<u64>>) -> Result<Vec<StoredChunk>> {
        let cell = self.file.hierarchy().variables.get(variable).map(|variable| &variable.cell);
        // Texts are read when they are located, so few chunks are located together.
        let group = if cell == Some(&CellType::Text) { TEXT_CHUNKS } else { chunks.len().max(1) };
        let mut located = Vec::with_capacity(chunks.len());
        for chunks in chunks.chunks(group) {
            let machine = self.file.locate(variable, chunks.to_vec());
            let machine = machine.map_err(|error| self.objects.named(error))?;
            located.extend(drive(machine, &self.objects).await?);
        }
        Ok(located)
    }

    async fn locate_field(
        &self,
        variable: usize,
        field: usize,
        chunks: Vec<Vec<u64>>,
    ) -> Result<Vec<StoredChunk>> {
        let mut located = Vec::with_capacity(chunks.len());
        for chunks in chunks.chunks(TEXT_CHUNKS) {
            let machine = self.file.locate_field(variable, field, chunks.to_vec());
            let machine = machine.map_err(|error| self.objects.named(error))?;
            located.extend(drive(machine, &self.objects).await?);
        }
        Ok(located)
    }

    fn locates_without_cells(&self, variable: usize) -> bool {
        let variable = self.file.hierarchy().variables.get(variable);
        variable.is_none_or(|variable| match &variable.cell {
            CellType::Record(record) => {
                record.fields.first().is_none_or(|field| field.width().is_some())
            }
            cell => cell.width().is_some(),
        })
    }

    fn facts(&self) -> StoreFacts {
        let version = if self.file.is_netcdf() { "NetCDF-4" } else { "HDF5" };
        let superblock = self.file.superblock_version();
        StoreFacts {
            format: "netcdf",
            version: version.to_owned(),
            noun: format!("{version} file, superblock version {superblock}"),
            size: Some(self.size),
            more: vec![],
            warnings: vec![],
        }
    }

    fn codec(&self, variable: usize) -> Option<String> {
        let filters = self.file.filters(variable)?;
        Some(if filters.is_empty() { "raw".to_owned() } else { filters })
    }

    async fn stored(&self, variable: usize) -> Result<Option<StoredTotals>> {
        // Each node of an index of chunks is a request.
        if self.objects.is_remote() { Ok(None) } else { located_totals(self, variable).await }
    }

    async fn check_index(&self, variable: usize) -> Result<Option<u64>> {
        let machine = self.file.check_index(variable);
        drive(machine.map_err(|error| self.objects.named(error))?, &self.objects).await
    }
}
