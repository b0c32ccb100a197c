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
//!
//! [`SparseRows`] weigh cells for joins, in which a cell belongs to many groups.
//!
//! ```text
//!   dense     one variable: elements, and the parts of an aggregation over it
//!   ├ cell_test, masks    conditions on other variables: cells that are left out of a batch
//!   └ member  the states of groups for one condition on the value
//!     └ loops     passes over a batch, compiled for each processor
//!       └ moments, pairs, weighted, cell_states
//!         └ lanes, columns, statistic
//! ```

mod axis_cells;
mod batch;
mod bounds;
mod cell;
mod cell_lanes;
mod cell_number;
mod cell_states;
mod cell_test;
mod columns;
mod contracted;
mod dense;
mod elements;
mod folds;
mod form_cells;
mod form_stats;
mod forms;
mod gathered_values;
mod group_cells;
mod group_stats;
mod group_table;
mod grouped_chunk;
mod keep;
mod lanes;
mod loops;
mod masks;
mod member;
mod moments;
mod packing;
mod pair_sums;
mod pairs;
mod plane_groups;
mod quantile;
mod reducer;
mod repeated_values;
mod row_places;
mod rows;
mod sliding;
mod sparse_blocks;
mod sparse_rows;
mod statistic;
#[cfg(test)]
mod tests;
mod value_range;
mod walk;
mod weighted;

pub use cell_lanes::{CellLanes, CellReader, LANES, TileCells, cell_reader};
pub use cell_number::CellNumber;
pub use cell_test::{CellTest, TestedTile};
pub use contracted::Coarser;
pub use dense::reducer;
pub use folds::{FirstKnown, FloatSum, Greatest, IntegerSum, LastKnown, Least, Spread, ValueCount};
pub use forms::reducer_of_forms;
pub use gathered_values::{GatheredValues, GroupedValues, TotalOrder};
pub use group_cells::{FirstCells, GroupCells};
pub use group_stats::{GroupStats, RequestedCells, RequestedMember, RequestedStats};
pub use group_table::{AxisGroups, GroupTable};
pub use grouped_chunk::GroupedChunk;
pub use moments::Moments;
pub use pair_sums::{PairSums, Pairs};
pub use plane_groups::PlaneGroups;
pub use quantile::Quantile;
pub use reducer::Reducer;
pub use row_places::RowPlaces;
pub use rows::rows_per_group;
pub use sliding::{Fold, SlidingFold};
pub use sparse_blocks::SparseBlocks;
pub use sparse_rows::{SparseEntry, SparseRows, SparseRowsBuilder, SparseSums};
pub use value_range::{Limit, Number, ValueRange};
pub use weighted::{CellWeights, WeightedStates};
