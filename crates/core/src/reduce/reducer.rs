//! The interface of reducers, which add the cells of chunks to groups.

use super::cell_test::TestedTile;
use super::group_stats::GroupStats;
use super::grouped_chunk::GroupedChunk;
use crate::error::Result;
use crate::format::{Zone, ZoneBound};
use crate::tile::Tile;

/// A reducer adds chunks to the states of groups. Each partition has its own.
pub trait Reducer: Send {
    /// Adds the selected cells of a chunk. `tile` holds all cells of the chunk, and `tests` are those of the chunk's other
    /// variables, of which members have numbers.
    ///
    /// # Errors
    /// `Internal` if a tile is smaller than its chunk.
    fn add(
        &mut self,
        chunk: GroupedChunk<'_>,
        tile: &Tile,
        may_hold_nulls: bool,
        tests: &[TestedTile<'_>],
    ) -> Result<()>;

    /// Whether `zone` is enough, so that the chunk need not be read. This is true if the chunk holds no
    /// value.
    ///
    /// Otherwise the chunk must be selected whole and lie in one group. The zone must have the
    /// requested statistics, without a condition on the values.
    fn is_answered(&self, chunk: GroupedChunk<'_>, zone: &Zone) -> bool;

    /// Adds the statistics of `zone` for a chunk for which [`Reducer::is_answered`] is true.
    fn add_zone(&mut self, chunk: GroupedChunk<'_>, zone: &Zone);

    /// Returns the least and the greatest stored number so far of the group at `place`, of the first member.
    /// `None` where not requested, or without a value.
    fn extremes(&self, place: usize) -> (Option<ZoneBound>, Option<ZoneBound>);

    /// Returns the bytes of scratch memory, for chunks that are converted.
    fn scratch_bytes(&self) -> usize;

    /// Returns the statistics of all groups, per member.
    ///
    /// # Errors
    /// `Internal` if statistics of several forms cannot be merged.
    fn finish(self: Box<Self>) -> Result<Vec<GroupStats>>;
}
