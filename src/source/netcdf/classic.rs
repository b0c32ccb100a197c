//! An opened file of the classic format.

use std::sync::Arc;

use async_trait::async_trait;

use crate::error::Result;
use crate::format::StoredChunk;
use crate::format::hierarchy::Hierarchy;
use crate::format::netcdf3::{NetCdf3File, OpenNetCdf3};
use crate::io::ByteSource;
use crate::source::hierarchy::VariableStore;
use crate::tile::{Objects, drive};

/// An opened file, whose header is in memory.
#[derive(Debug)]
pub(super) struct ClassicFile {
    file: NetCdf3File,
    objects: Arc<Objects>,
}

impl ClassicFile {
    /// Reads the header.
    ///
    /// # Errors
    /// `Corrupt` if it cannot be parsed.
    pub(super) async fn open(source: Arc<dyn ByteSource>) -> Result<Self> {
        let open = OpenNetCdf3::new(source.size());
        let objects = Arc::new(Objects::One(source));
        let file = drive(open, &objects).await?;
        Ok(Self { file, objects })
    }
}

#[async_trait]
impl VariableStore for ClassicFile {
    fn hierarchy(&self) -> &Hierarchy {
        self.file.hierarchy()
    }

    fn objects(&self) -> &Arc<Objects> {
        &self.objects
    }

    async fn locate(&self, variable: usize, chunks: Vec<Vec<u64>>) -> Result<Vec<StoredChunk>> {
        let located = chunks.iter().map(|chunk| self.file.locate(variable, chunk)).collect();
        let located: Result<_> = located;
        located.map_err(|error| self.objects.named(error))
    }
}
