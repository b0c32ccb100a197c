//! The chunk source of a variable.

use std::sync::Arc;

use async_trait::async_trait;

use super::complex::half;
use super::parts::{Part, parts};
use super::records::part;
use super::store::VariableStore;
use crate::hierarchy::{CellType, Record, RecordField};
use gridfusion_core::array::ChunkSource;
use gridfusion_core::format::StoredChunk;
use gridfusion_core::grid::ChunkTask;
use gridfusion_core::tile::{ObjectVersion, Objects};
use gridfusion_core::{Error, Result};

/// The chunks of one variable. Values 0 and 1 of complex numbers are their real and imaginary parts, and those of compounds
/// are their fields.
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
        let chunks: Vec<_> = tasks.iter().map(|task| task.coordinates.clone()).collect();
        if let CellType::Record(record) = &self.cell {
            return self.locate_fields(record, chunks, values).await;
        }
        let stored = self.store.locate(self.variable, chunks).await?;
        let CellType::Complex(element) = &self.cell else {
            return Ok(stored.into_iter().map(|chunk| vec![chunk; values.len()]).collect());
        };
        let missing = self.missing.as_deref();
        let halves: Vec<Part> = values.iter().map(|it| half(*it, *element, missing)).collect();
        let of_values = |chunk| parts(chunk, 2 * element.size() as usize, &halves);
        Ok(stored.into_iter().map(of_values).collect())
    }
}

impl VariableChunks {
    /// Returns the chunks of fields of compounds. Values in a heap are located apart from the others.
    async fn locate_fields(
        &self,
        record: &Record,
        chunks: Vec<Vec<u64>>,
        values: &[usize],
    ) -> Result<Vec<Vec<StoredChunk>>> {
        let field = |value: &usize| {
            let field = record.fields.get(*value);
            field.ok_or_else(|| Error::internal("a field that does not exist"))
        };
        let wanted: Vec<&RecordField> = values.iter().map(field).collect::<Result<_>>()?;
        let has_width = |field: &&RecordField| field.width().is_some();
        let mut located: Vec<Vec<StoredChunk>> = match wanted.iter().any(has_width) {
            false => vec![vec![StoredChunk::default(); wanted.len()]; chunks.len()],
            true => {
                let whole = self.store.locate(self.variable, chunks.clone()).await?;
                let of_fields: Vec<Part> = wanted.iter().map(|it| part(it)).collect();
                let fields = |chunk| parts(chunk, record.width as usize, &of_fields);
                whole.into_iter().map(fields).collect()
            }
        };
        for (place, (value, field)) in values.iter().zip(&wanted).enumerate() {
            if has_width(field) {
                continue;
            }
            let of_heap = self.store.locate_field(self.variable, *value, chunks.clone()).await?;
            for (chunk, of_heap) in located.iter_mut().zip(of_heap) {
                if let Some(place) = chunk.get_mut(place) {
                    *place = of_heap;
                }
            }
        }
        Ok(located)
    }
}
