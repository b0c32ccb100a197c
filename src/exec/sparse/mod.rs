//! Scans of sparse arrays.
//!
//! ```text
//!   filters of a query ──▶ planning ─▶ SparsePlan: tiles per partition
//!                            ├ bounds      rectangles and statistics, against predicates
//!                            ├ merge       tiles that may hold the same coordinates
//!                            └ split       equal shares, in ranges of a dimension where tiles overlap
//!
//!   SparseScanExec ─▶ SparseStream ┬─▶ TileReader   tile by tile: coordinates first, then variables
//!                                  └─▶ Merge        overlapping tiles: which cell of several is the newest
//! ```
//!
//! Above an aggregation, [`SparseAnswerExec`] takes the states of whole tiles from their statistics.
//!
//! Two cells with the same coordinates are one row, the newer one. Most tiles cannot share coordinates with
//! others, because their rectangles do not overlap. Only the others are merged.
//!
//! A scan accounts for each tile that it holds, and fails if the pool refuses it. There is no reduction by axes, because
//! a sparse array has none.

mod answer;
mod answer_rule;
mod bounds;
mod display;
mod filters;
mod merge;
mod merged_tile;
mod metrics;
mod open_tile;
mod plan;
pub(crate) mod planning;
mod properties;
mod pruner;
mod scan;
mod shares;
mod split;
mod stream;
mod tile_reader;

pub use answer::SparseAnswerExec;
pub(super) use answer_rule::answer_by_statistics;
#[cfg(feature = "codec")]
pub(crate) use bounds::KnownTiles;
pub(crate) use filters::pushdown;
#[cfg(feature = "codec")]
pub(crate) use filters::{RowFilter, SparseFilters};
#[cfg(feature = "codec")]
pub(crate) use plan::{MergeTask, PartitionTasks, TileTask};
pub use plan::{SparsePlan, TileCounts};
pub use scan::SparseScanExec;
