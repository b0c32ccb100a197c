//! Folds the cells of chunks into groups.

use super::group_stats::GroupStats;
use super::grouped_chunk::GroupedChunk;
use crate::error::Result;
use crate::format::{Bound, Zone};
use crate::tile::Tile;

/// Folds chunks into the states of groups; one per partition.
pub trait Reducer: Send {
    /// Adds the selected cells of a chunk; `tile` holds all of it.
    ///
    /// # Errors
    /// `Internal` if the tile is smaller than its chunk.
    fn add(&mut self, chunk: GroupedChunk<'_>, tile: &Tile, may_hold_nulls: bool) -> Result<()>;

    /// Whether `zone` gives all that is requested of a chunk: it holds no value, or the chunk is selected
    /// whole, lies in one group, and the zone has these statistics.
    fn is_answered(&self, chunk: GroupedChunk<'_>, zone: &Zone) -> bool;

    /// Adds the statistics of `zone` for a chunk that it answers.
    fn add_zone(&mut self, chunk: GroupedChunk<'_>, zone: &Zone);

    /// The least and the greatest value so far of the group at `place`, as far as they are requested
    /// and there is a value.
    fn extremes(&self, place: usize) -> (Option<Bound>, Option<Bound>);

    /// Bytes held apart from the states: a chunk in another form.
    fn scratch_bytes(&self) -> usize;

    /// The states of all groups.
    fn finish(self: Box<Self>) -> GroupStats;
}
