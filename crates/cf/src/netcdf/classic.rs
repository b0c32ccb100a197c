//! An opened file of the classic format.

use std::sync::Arc;

use async_trait::async_trait;

use crate::conventions::{StoreFacts, StoredTotals, VariableStore};
use crate::hierarchy::Hierarchy;
use crate::netcdf3::{NetCdf3File, OpenNetCdf3};
use gridfusion_core::Result;
use gridfusion_core::format::StoredChunk;
use gridfusion_core::io::ByteSource;
use gridfusion_core::tile::{Objects, drive};

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
        let objects = Arc::new(Objects::one(source));
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

    fn facts(&self) -> StoreFacts {
        let records = self.file.record_dimension();
        let records = records.map(|name| format!("{} records of {name}", self.file.records()));
        let missing = self.file.missing_bytes();
        let is_short = missing > 0;
        let short = || format!("the file ends {missing} bytes before the last value of its header");
        let version = self.file.version();
        StoreFacts {
            format: "netcdf",
            version: version.to_string(),
            noun: format!("NetCDF classic file, {version}"),
            size: Some(self.file.size()),
            more: records.into_iter().collect(),
            warnings: is_short.then(short).into_iter().collect(),
        }
    }

    fn codec(&self, _: usize) -> Option<String> {
        Some("raw".to_owned())
    }

    /// All chunks are there, and the header tells how long they are.
    async fn stored(&self, variable: usize) -> Result<Option<StoredTotals>> {
        Ok(self.file.stored(variable).map(|(chunks, bytes)| StoredTotals {
            chunks,
            bytes,
            raw_bytes: Some(bytes),
        }))
    }
}
