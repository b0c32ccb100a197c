//! Queries on workers: the same answers as in one process, and what happens when workers fail.

/// Workers that die, freeze, are of another version, or see other files.
mod faults;
/// Plans of queries on workers, and the metrics of all workers together.
mod plans;
/// Counters of workers while a query runs.
mod progress;
/// Starting workers, and sessions of coordinators.
pub(crate) mod workers;
