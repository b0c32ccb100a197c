//! The questions of rules about a plan, each answered in one place.
//!
//! ```text
//!   AggregateExec / HashJoinExec / WindowAggExec     which function is this?           known_function, windows, debug_text
//!     ProjectionExec, FilterExec, …                  which operators lie between?      input
//!       GridScanExec                                 may I replace this scan?          scan_below
//!                                                    which keys are over which axis?   axis_keys, axis_labels
//!                                                    are there both zeros?             zeros
//!                                                    may this expression fail?         fallible
//! ```
//!
//! The rules themselves decide only what to make of the answers.

mod axis_keys;
mod axis_labels;
mod debug_text;
mod fallible;
mod input;
mod known_function;
mod scan_below;
mod windows;
mod zeros;

pub(super) use axis_keys::{KeysByAxis, NumberedKeys, Over, group_count};
pub(super) use axis_labels::{has_merged_zeros, number_axis, selected_labels, values_of_labels};
pub use debug_text::messages_lose_parts;
pub(super) use debug_text::{FunctionMode, standard_function, unfiltered_aggregate};
pub(super) use fallible::may_fail;
pub(super) use input::InputOperators;
pub(super) use known_function::known_window;
pub(crate) use known_function::{known_aggregate, known_scalar};
pub(super) use scan_below::{ScanBelow, ScanCells};
pub(super) use windows::window_functions;
pub(super) use zeros::{has_both_zeros, with_one_zero};
