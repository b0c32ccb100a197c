//! Pruning: finds the chunks, and the cells in them, that a query does not need.
//!
//! ```text
//!                      filters of a query                     dynamic filters, made while it runs
//!                             │                                            │
//!   scope     one dimension? several? values?                 dynamic     of a TopK, a join, an aggregate
//!                │              │                                │
//!   labels    evaluated      too many labels ─┐               runtime     the filters of a scan as they are
//!             per label,     several axes     │                  │        now, against chunks to be read
//!   intervals or bisected       │             │                  │
//!                │              │             │                  │
//!   planning     │              └──── mask ◀──┴── statistics ────┤        least and greatest label and value
//!                ▼                      │             ▲          │        of each chunk
//!             selection                 │           zones        │        worth reading, or not
//!                └──▶ ScanRequest ◀─────┘                        └─ priority   most promising chunks first
//! ```
//!
//! The provider calls [`planning`] and [`FilterScope`]; the reader of chunks calls [`RuntimePruner`]. A
//! reduction evaluates filters over its group keys itself, with [`dynamic::snapshot_filter`] and
//! [`labels::satisfied`].

mod bound_filter;
pub(crate) mod containers;
mod coordinates;
pub(crate) mod dynamic;
mod intervals;
pub(crate) mod labels;
pub(crate) mod planning;
pub(crate) mod priority;
pub(crate) mod runtime;
mod scope;
pub(crate) mod statistics;
pub(crate) mod zones;

/// The indices between two selected ones of the last axis that are read with them: that takes less time than to begin anew.
pub(in crate::exec) const SHORT_GAP: u64 = 64;

pub(crate) use dynamic::DynamicFilters;
pub(crate) use priority::Priority;
pub(crate) use runtime::RuntimePruner;
pub(crate) use scope::{FilterScope, is_immutable};
