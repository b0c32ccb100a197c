//! Queries that DataFusion 55.2 answers wrongly or refuses, planned in another way.
//!
//! Each file avoids one fault. `UPSTREAM.md` beside this file shows all of them on plain DataFusion, and a test compares it with what
//! DataFusion answers today. If that test reports that a fault is mended, delete the file. Only `when_executed` mends nothing itself: it keeps
//! prepared statements as they are until the other files have seen them.
//!
//! ```text
//!   SQL ─▶ logical plan ─▶ MendedLogic ─▶ optimizer ─▶ MendedEnd ─▶ physical plan ─▶ physical rules
//!                          meaning                     what the        │             what plans declare
//!                                                      optimizer made
//! ```

mod at_end;
mod before;
mod changed_rows;
mod constants;
mod copies;
mod distinct_from;
mod doubled_keys;
mod empty_subquery;
mod exists;
mod forgotten;
mod in_null;
mod intervals;
mod kept_offsets;
mod key_columns;
mod lossy_filters;
mod nth_value;
mod one_row;
mod same_names;
mod shift;
mod time_of_day;
mod when_executed;
mod zeros_in_lists;

#[cfg(feature = "codec")]
use std::sync::Arc;

#[cfg(feature = "codec")]
use datafusion::logical_expr::{ScalarUDF, WindowUDF};

pub(crate) use at_end::MendedEnd;
pub(crate) use before::{MendedLogic, with_names};
pub(super) use forgotten::with_forgotten_constants;
pub(crate) use intervals::interval_length;
pub(super) use kept_offsets::{with_kept_offsets, with_open_offsets};
pub(super) use lossy_filters::with_honest_filters;
pub(super) use same_names::PushdownByIndex;
pub(crate) use time_of_day::time_of_day;
pub(crate) use when_executed::WhenExecuted;

/// Returns the functions that rewritten plans call. Other processes need them, too.
#[cfg(feature = "codec")]
pub(crate) fn functions() -> [Arc<ScalarUDF>; 3] {
    [interval_length(), time_of_day(), super::date_function()]
}

/// Returns the window functions that take the places of those of DataFusion with the same names. They can be reversed.
#[cfg(feature = "codec")]
pub(crate) fn window_functions() -> [Arc<WindowUDF>; 2] {
    shift::functions()
}
