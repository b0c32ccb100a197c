//! Aggregation without rows: the cells of a chunk are added to one state per group, directly from the
//! tile.
//!
//! ```text
//!   GROUP BY month, station                       table of groups
//!                                                          station 0 1 2 3
//!   chunk   time 0  . . . .                       month 0  [ s  s  s  s ]   ◀─┐
//!                1  . . . .   each axis knows its          [            ]     │ += row by row, where
//!                2  . . . .   part of the place:  month 1  [ s  s  s  s ]   ◀─┘ the innermost axis
//!                   station   month × 4 + station                               decides the loop
//! ```
//!
//! Each key is over one axis, so it is evaluated once per label, and its results are numbered
//! ([`AxisGroups`]). A [`GroupTable`] turns these numbers into places.
//!
//! A [`Reducer`] holds an array of states per statistic and adds chunk after chunk to them. Outer axes
//! only move a base, and the innermost axis chooses one of three loops. No rows, no hashing, and no
//! allocation per cell.

mod bounds;
mod cell;
mod dense;
mod group_stats;
mod group_table;
mod grouped_chunk;
mod keep;
mod kernel;
mod reducer;
mod row_places;
mod rows;
mod speculate;
mod statistic;
mod subtract;
mod value_range;
mod walk;

pub use dense::reducer;
pub use group_stats::{GroupStats, Requested};
pub use group_table::{AxisGroups, GroupTable};
pub use grouped_chunk::GroupedChunk;
pub use reducer::Reducer;
pub use row_places::RowPlaces;
pub use rows::count_rows;
pub use statistic::Moments;
pub use value_range::{Limit, Number, ValueRange};
