//! [`FoundChunks`]: whether a query has found stored chunks, and why not.

use std::collections::HashMap;

use super::grid_array::GridArray;
use crate::error::Result;
use crate::format::StoredChunk;

/// Whether a query has found a chunk of each variable in each member that should have it. Where it has found none, either
/// none was written, or the query looked in the wrong places.
#[derive(Debug, Default)]
pub struct FoundChunks {
    /// By the position of the variable, and the member of the objects.
    found: HashMap<(usize, u32), bool>,
}

impl FoundChunks {
    /// Notes the layers of a chunk, one list per variable, before absent ones are left out. A chunk of which the index has
    /// nothing counts for the first member.
    pub fn note_requested(&mut self, stored: &[StoredChunk]) {
        for (at, chunk) in stored.iter().enumerate() {
            let members = chunk.layers.iter().map(|layer| layer.values.at.member);
            let without = chunk.layers.is_empty().then_some(0);
            for member in members.chain(without) {
                self.found.entry((at, member)).or_insert(false);
            }
        }
    }

    /// Notes the layers of a chunk that were found.
    pub fn note_found(&mut self, stored: &[StoredChunk]) {
        for (at, chunk) in stored.iter().enumerate() {
            let members = chunk.layers.iter().map(|layer| layer.values.at.member);
            self.found.extend(members.map(|member| ((at, member), true)));
        }
    }

    /// Proves that what was not found is absent, and warns of variables of which nothing is stored. `values` has the
    /// number of the variable at each position. Forgets all notes.
    ///
    /// # Errors
    /// `Corrupt` if chunks are stored under other names than the metadata sets.
    pub async fn explain(&mut self, array: &GridArray, values: &[usize]) -> Result<()> {
        let found = std::mem::take(&mut self.found);
        for ((at, member), _) in found.into_iter().filter(|(_, found)| !found) {
            if let Some(warning) = array.explain_absence(values[at], member).await? {
                log::warn!("{}: {warning}", array.objects().name());
            }
        }
        Ok(())
    }
}
