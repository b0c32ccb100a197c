//! Joins that find the matches of a cell by its labels' places, without hashing a row.
//!
//! ```text
//!   SELECT t.value - c.mean FROM t JOIN c ON t.station = c.station AND date_part('month', t.time) = c.month
//!
//!   HashJoin  station = station, month = month        GridLookup  station = station, month = month
//!     c                                         ──▶     c
//!     GridScan  t                                       (reads t)
//!
//!   table of places      station 0 1 2              rows of c are put into their places once;
//!              month 1   [ c4 c7  · ]               a cell of t knows its place by its indices
//!                    2   [ c0 c1 c5 ]
//! ```
//!
//! Each key of the array is over one axis, so it is evaluated once per label, as for a reduction. Labels without a match are
//! left out before any chunk is read, if the join returns only matches.
//!
//! All rows of the other side are in memory, as those of a hash join are. So it must not seem larger than the array, and
//! a cluster hashes instead.
//!
//! | file | contents |
//! |---|---|
//! | `rule` | the optimizer rule |
//! | `grid_lookup` | a hash join, taken apart |
//! | `build_side` | the rows of the other side, by the numbers of their keys |
//! | `matched_chunks` | the chunks that have a cell with a match |
//! | `matches` | the rows of the other side at each place of a partition |
//! | `node` | the operator |
//! | `stream`, `joined_rows` | the rows of a partition |

mod build_side;
mod grid_lookup;
mod joined_rows;
mod matched_chunks;
mod matches;
mod node;
mod rule;
mod stream;
#[cfg(test)]
mod tests;

pub(super) use build_side::BuildSide;
pub(super) use grid_lookup::{GridLookup, ReturnedRows};
pub(super) use matched_chunks::matched_tasks;
pub(super) use matches::{Matches, NONE};
pub use node::GridLookupExec;
pub(super) use rule::look_up_rows;
