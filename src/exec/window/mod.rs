//! Windows along a dimension: frames that move along one axis, in all partitions at once.
//!
//! ```text
//!   SELECT time, station, avg(value) OVER (PARTITION BY station ORDER BY time ROWS 23 PRECEDING) FROM t
//!
//!   BoundedWindowAgg  avg                       GridWindow  avg, along time
//!     Sort  station, time
//!       Repartition  station           ──▶
//!         GridScan
//!
//!              station
//!   time   ┌──┬──┬──┬──┐
//!        0 │  │  │  │  │   a line: one cell per partition
//!        1 │▒▒│▒▒│▒▒│▒▒│ ┐
//!        2 │▒▒│▒▒│▒▒│▒▒│ │ the frame of line 3 is the same lines for all partitions
//!        3 │▒▒│▒▒│▒▒│▒▒│ ┘
//! ```
//!
//! Because all partitions have the same labels along the axis, each frame is found once. Nothing is sorted, hashed or
//! repartitioned: chunks are read along the axis, and rows come in the order of the array. Lines that later frames need are
//! kept over the borders of chunks.
//!
//! - Frames are aggregated by `reduce::SlidingFold`, which takes nothing back. So NaN, infinity and large numbers leave
//!   no trace, and `min` is as simple as `sum`.
//! - Functions that pick another line (`lag`, `first_value`) keep chunks of arguments and copy runs of lines, of any
//!   type.
//! - `IGNORE NULLS` of `first_value` and `last_value` is an aggregate, the last known value.
//! - Functions of positions (`row_number`) are evaluated once, by DataFusion.
//! - Partitions of the plan cut columns along the axis only if the chunks that are read on both sides are at most half of
//!   all.
//! - The memory of lines and waiting chunks is known at planning. If a part for each partition of the plan exceeds `reduce_memory` or
//!   half of the pool, there are fewer parts. If one part does, rows are sorted instead.
//! - NULL sorts before all labels or behind them, wherever the axis has it. Its lines are read on their own.
//!
//! | file | contents |
//! |---|---|
//! | `rule` | the optimizer rule for frames that move |
//! | `grid_window` | a window over an array, taken apart |
//! | `window_axis` | the axis, and its partitions and order |
//! | `frames`, `range_frames` | the frame of each position |
//! | `call`, `function`, `shift` | the functions of the window |
//! | `lines` | the chunks along the axis, in the order of lines |
//! | `parts`, `memory` | the division among partitions of the plan, and the memory |
//! | `node` | the operator |
//! | `stream`, `open_column` | the rows of a partition of the plan |
//! | `window_state`, `totals`, `picks` | the state of a function in a column of chunks |
//! | `steps`, `edge_value` | an aggregate function before and after frames |
//! | `whole_partitions` | the rule for aggregates of whole partitions, which are reductions |
//! | `ignored_nulls` | `IGNORE NULLS`, which DataFusion's messages lose |

mod call;
mod edge_value;
mod frames;
mod function;
mod grid_window;
#[cfg(feature = "codec")]
mod ignored_nulls;
mod lines;
mod memory;
mod node;
mod open_column;
mod parts;
mod picks;
mod range_frames;
mod rule;
mod shift;
mod steps;
mod stream;
#[cfg(test)]
mod tests;
mod totals;
mod whole_partitions;
mod window_axis;
mod window_state;

#[cfg(feature = "codec")]
pub(crate) use ignored_nulls::{ignored_nulls, with_ignored_nulls};
pub use node::GridWindowExec;
pub use parts::WindowPart;
pub(super) use rule::run_on_arrays;
pub(in crate::exec) use steps::{Extreme, Steps, SumStep, Variance};
pub(super) use whole_partitions::reduce_windows;
pub(super) use window_axis::come_in_order;
