//! Aggregation without rows: the cells of a chunk are folded into one state per group where they lie.
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
//! Each key is over one axis, so it was evaluated once per label and numbered ([`AxisGroups`]). A
//! [`GroupTable`] turns those numbers into places; a [`Reducer`] holds an array of states per statistic
//! and folds chunk after chunk into them; outer axes only move a base, and the innermost axis is one of
//! three loops. No row, no hash, no allocation per cell.

mod bounds;
mod cell;
mod count;
mod dense;
mod keep;
mod kernel;
mod numbers;
mod optimistic;
mod places;
mod rows;
mod statistic;
mod walk;

pub use dense::{Chunk, Found, Reducer, Wanted, reducer};
pub use keep::{Limit, Number, ValueRange};
pub use numbers::RowPlaces;
pub use places::{AxisGroups, GroupTable};
pub use rows::count_rows;
pub use statistic::Moments;
