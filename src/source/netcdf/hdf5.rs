//! An opened HDF5 file, such as NetCDF-4 files are.

use std::sync::Arc;

use async_trait::async_trait;

use crate::error::Result;
use crate::format::StoredChunk;
use crate::format::hdf5::{Hdf5File, OpenHdf5};
use crate::format::hierarchy::{CellType, Hierarchy};
use crate::io::ByteSource;
use crate::source::hierarchy::VariableStore;
use crate::tile::{Objects, drive};

/// The chunks of texts of any length that are located together.
const TEXT_CHUNKS: usize = 8;

/// An opened file, whose object headers are in memory.
#[derive(Debug)]
pub(super) struct Hdf5Reader {
    file: Hdf5File,
    objects: Arc<Objects>,
}

impl Hdf5Reader {
    /// Reads the headers of all groups and datasets.
    ///
    /// # Errors
    /// `Corrupt` or `Unsupported` if they cannot be parsed.
    pub(super) async fn open(source: Arc<dyn ByteSource>) -> Result<Self> {
        let open = OpenHdf5::new(source.size());
        let objects = Arc::new(Objects::One(source));
        let file = drive(open, &objects).await?;
        Ok(Self { file, objects })
    }
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
}
