//! The chunk source of a variable.

use std::sync::Arc;

use async_trait::async_trait;

use super::complex::half;
use super::store::VariableStore;
use crate::hierarchy::CellType;
use gridfusion_core::Result;
use gridfusion_core::array::ChunkSource;
use gridfusion_core::format::StoredChunk;
use gridfusion_core::grid::ChunkTask;
use gridfusion_core::tile::{ObjectVersion, Objects};

/// The chunks of one variable. Values 0 and 1 of complex numbers are their real and imaginary parts.
#[derive(Debug)]
pub(super) struct VariableChunks {
    pub(super) store: Arc<dyn VariableStore>,
    /// The number of the variable in the store.
    pub(super) variable: usize,
    pub(super) cell: CellType,
    /// The complex number that is missing data.
    pub(super) missing: Option<Vec<u8>>,
}

#[async_trait]
impl ChunkSource for VariableChunks {
    fn objects(&self) -> &Arc<Objects> {
        self.store.objects()
    }

    fn versions(&self) -> Vec<ObjectVersion> {
        self.store.versions()
    }

    fn contents(&self) -> Result<Vec<ObjectVersion>> {
        self.store.contents(self.variable)
    }

    async fn explain_absence(&self, _: usize, _: u32) -> Result<Option<String>> {
        self.store.explain_absence(self.variable).await
    }

    async fn locate(&self, tasks: &[ChunkTask], values: &[usize]) -> Result<Vec<Vec<StoredChunk>>> {
        let chunks = tasks.iter().map(|task| task.coordinates.clone()).collect();
        let stored = self.store.locate(self.variable, chunks).await?;
        let of_values = |chunk: StoredChunk| match &self.cell {
            CellType::Complex(element) => {
                let missing = self.missing.as_deref();
                values.iter().map(|value| half(chunk.clone(), *value, *element, missing)).collect()
            }
            _ => vec![chunk; values.len()],
        };
        Ok(stored.into_iter().map(of_values).collect())
    }
}
