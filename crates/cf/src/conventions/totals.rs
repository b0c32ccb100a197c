//! The stored chunks of a variable, which locating finds.

use super::labels::{grid, variable};
use super::store::{StoredTotals, VariableStore};
use gridfusion_core::Result;
use gridfusion_core::format::Layer;

/// The most chunks to find for a description.
const MOST_CHUNKS: u64 = 1 << 20;

/// The chunks that are found at once.
const CHUNKS_AT_ONCE: u64 = 4096;

/// Locates all chunks of a variable, and adds up their bytes. Returns `None` if there are too many chunks, or for values
/// of any length, because locating them may read cells.
pub async fn located_totals<S: VariableStore>(
    store: &S,
    number: usize,
) -> Result<Option<StoredTotals>> {
    let variable = variable(store, number)?;
    let grid = grid(variable)?;
    if variable.cell.width().is_none() || grid.chunks() > MOST_CHUNKS {
        return Ok(None);
    }
    let (mut totals, mut raw_bytes, mut next) = (StoredTotals::default(), 0, 0);
    while next < grid.chunks() {
        let end = next.saturating_add(CHUNKS_AT_ONCE).min(grid.chunks());
        let chunks = (next..end).map(|number| grid.chunk_coordinates(number)).collect();
        for stored in store.locate(number, chunks).await? {
            totals.chunks += u64::from(!stored.layers.is_empty());
            for payload in stored.layers.iter().flat_map(Layer::payloads) {
                // Nothing tells the length of a whole object before it is read.
                let Some(len) = payload.at.range.most() else { return Ok(None) };
                totals.bytes = totals.bytes.saturating_add(len);
                raw_bytes = payload.raw_len.saturating_add(raw_bytes);
            }
        }
        next = end;
    }
    Ok(Some(StoredTotals { raw_bytes: Some(raw_bytes), ..totals }))
}
