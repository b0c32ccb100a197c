//! Eager aggregation: an array that is joined with tables is reduced before the join, by its join keys and group keys.
//!
//! ```text
//!   SELECT s.region, avg(t.value) FROM t JOIN stations s ON t.station = s.station GROUP BY s.region
//!
//!   Final   gby=[region]                          Final   gby=[region]
//!     Partial   gby=[region], avg(value)            Project   region, states of avg
//!       Join   station = station            ──▶       Join   station = station
//!         stations                                      stations
//!         GridScan   one row per cell                   GridReduce   gby=[station]: states of avg(value)
//! ```
//!
//! A partial state stands for the rows of its group: all of them have the same join keys. So the join keeps, drops and repeats
//! a state as it would each of the rows, and the final stage merges the states. See Yan and Larson, "Eager Aggregation and
//! Lazy Aggregation", VLDB 1995. It is exact for any number of matches.
//!
//! - Keys of the reduction are the join keys, and what expressions above the join need to know of a cell: functions of
//!   one column.
//! - The states of `scale * x + shift` follow from those of `x`: the sum is the value at the mean times the count. Some
//!   values may be infinite where that is not. So unless the scale is too small to make a value infinite, the least and
//!   the greatest `x` are reduced too.
//! - Cells without a match are below the join. So no expression that may fail on them moves there.
//! - Keys of a reduction have one zero, so those of the other side get one, too: the filter of a join compares bits.
//! - The states of some functions differ with and without groups. Such functions stay above the join unless the
//!   aggregation has groups.
//! - A state must stand for eight rows, or rows are joined.
//! - The filter of the join reaches the reduction. On the innermost axis the reduction fills short gaps of it, because
//!   strides cost more than cells.
//!
//! | file | contents |
//! |---|---|
//! | `join_sides` | the join: its sides, and which columns come from which |
//! | `keys` | the keys of the reduction below the join; expressions over its output |
//! | `states` | the aggregates below the join, and the states above it as expressions over theirs |
//! | `affine`, `affine_aggregate` | `scale * x + shift`, where `x` is of the array and the rest of the other side |
//! | `constant` | arguments of the other side only |
//! | `single_state` | the states of one row, or of none |
//! | `expressions` | small expressions of which states are made |
//! | `pushed` | the plan with the reduction below the join, and the rule `EagerAggregate` that finds it |

mod affine;
mod affine_aggregate;
mod constant;
mod expressions;
mod join_sides;
mod keys;
mod pushed;
mod single_state;
mod states;

pub(super) use pushed::reduce_below_joins;
