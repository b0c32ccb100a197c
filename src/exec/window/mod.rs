//! Windows over whole partitions: the aggregates are reductions of the array, joined back to its rows.
//!
//! ```text
//!   SELECT value - avg(value) OVER (PARTITION BY lat, lon) FROM sst
//!
//!   WindowAgg  partition by lat, lon            Project  lat, lon, value, avg
//!     Sort  lat, lon                              Join  lat = lat, lon = lon
//!       Repartition  lat, lon              ──▶      GridReduce  gby=[lat, lon]: avg(value)
//!         GridScan                                  GridScan
//! ```
//!
//! Nothing is sorted, and rows stay in the order of the array. Each row has exactly one partition, so the join keeps each
//! row once.
//!
//! The rule `WindowReduce` finds them.

mod partition;

pub(super) use partition::reduce_windows;
